"""Which people of the provider may sign in, and what they are here."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base.constants import AuthError
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest

from dashboard.accounts.openid import CANCELLED, UNVERIFIED, VerifyingAdapter, chosen_provider, refuse_sign_in
from dashboard.accounts.openid_settings import OpenIDSettings

logger = logging.getLogger(__name__)

KIND = "openid_connect"


class ProviderAdapter(DefaultSocialAccountAdapter):
    """One provider, named by the settings; accounts are linked by its subject and never by an address."""

    def list_apps(
        self,
        request: HttpRequest,  # noqa: ARG002
        provider: str | None = None,
        client_id: str | None = None,
    ) -> list[SocialApp]:
        chosen: OpenIDSettings | None = settings.PACELINE_OIDC
        if chosen is None or provider not in (None, KIND, chosen.provider_id):
            return []
        if client_id not in (None, chosen.client_id):
            return []
        app = SocialApp(
            provider=KIND,
            provider_id=chosen.provider_id,
            name=chosen.name,
            client_id=chosen.client_id,
            secret=chosen.client_secret,
            settings={
                "server_url": chosen.issuer.rstrip("/"),
                "oauth_pkce_enabled": True,
                "scope": list(chosen.scopes),
            },
        )
        return [app]

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Any:
        found = super().get_provider(request, provider, client_id)
        found.oauth2_adapter_class = VerifyingAdapter
        return found

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        person = claims_of(sociallogin)
        if refused := refusal_of(person, chosen_provider()):
            raise ImmediateHttpResponse(refuse_sign_in(request, refused))
        # An address links no accounts; one that isn't verified isn't even kept.
        sociallogin.email_addresses = []
        if not has_verified_email(person) and not sociallogin.is_existing:
            sociallogin.user.email = ""
        if sociallogin.is_existing:
            follow_admin_group(sociallogin.user, person)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:  # noqa: ARG002
        """Who has come so far is allowed: the account is made at the first sign-in."""
        return True

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        user: User = super().save_user(request, sociallogin, form)
        follow_admin_group(user, claims_of(sociallogin))
        return user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,  # noqa: ARG002
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,  # noqa: ARG002
    ) -> None:
        logger.warning("A sign-in by the OpenID provider failed: %s", exception or error)
        sentence = CANCELLED if error == AuthError.CANCELLED else UNVERIFIED
        raise ImmediateHttpResponse(refuse_sign_in(request, sentence, HTTPStatus.FORBIDDEN))


def claims_of(sociallogin: SocialLogin) -> Mapping[str, Any]:
    data: dict[str, Any] = sociallogin.account.extra_data
    return data.get("userinfo", data)


def refusal_of(person: Mapping[str, Any], chosen: OpenIDSettings) -> str:
    """Why this person may not sign in, in one sentence; empty where they may."""
    if chosen.allowed_domains:
        if not has_verified_email(person):
            return "{name} hasn't verified your e-mail address, so you can't sign in here."
        if str(person["email"]).rpartition("@")[2].lower() not in chosen.allowed_domains:
            return "Your e-mail address is of no domain that may sign in here: ask an administrator."
    if chosen.allowed_groups and not chosen.allowed_groups & groups_of(person, chosen):
        return "You are in no group that may sign in here: ask an administrator."
    return ""


def has_verified_email(person: Mapping[str, Any]) -> bool:
    return bool(person.get("email")) and person.get("email_verified") in (True, "true")


def groups_of(person: Mapping[str, Any], chosen: OpenIDSettings) -> frozenset[str]:
    named = person.get(chosen.groups_claim)
    if isinstance(named, str):
        return frozenset({named})
    return frozenset(map(str, named)) if isinstance(named, list) else frozenset()


def follow_admin_group(user: User, person: Mapping[str, Any]) -> None:
    """Where a group is named for it, who is in it is an administrator, and who isn't is none."""
    chosen = chosen_provider()
    if not chosen.admin_group:
        return
    is_admin = chosen.admin_group in groups_of(person, chosen)
    if (user.is_superuser, user.is_staff) != (is_admin, is_admin):
        user.is_superuser = user.is_staff = is_admin
        user.save(update_fields=["is_superuser", "is_staff"])
