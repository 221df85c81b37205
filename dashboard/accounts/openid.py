"""Signing in by an OpenID provider: allauth's flow with code and PKCE, and what it doesn't check by itself.

A request to the provider carries a nonce; the ID token's signature, issuer, audience, times and nonce are
verified; userinfo is believed of the same subject alone.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests
from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.accounts.id_tokens import TokenRefused, verify_id_token
from dashboard.accounts.openid_settings import OpenIDSettings

logger = logging.getLogger(__name__)

UNREACHABLE = "{name} can't be reached just now: try again, or sign in with a password."
UNVERIFIED = "What {name} answered couldn't be verified: sign in again."
CANCELLED = "Signing in by {name} was cancelled."


class VerifyingAdapter(OpenIDConnectOAuth2Adapter):
    """`nonce` is the one that this sign-in was begun with."""

    nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        """The provider's own description, if it is that of the configured issuer and names real addresses."""
        config: dict[str, Any] = super().openid_config
        issuer = chosen_provider().issuer
        if config.get("issuer") != issuer:
            raise OAuth2Error(f"The provider says that it is {config.get('issuer')!r}, not {issuer!r}.")
        allowed = ("https",) if issuer.startswith("https:") else ("https", "http")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if urlsplit(str(config.get(name))).scheme not in allowed:
                raise OAuth2Error(
                    f"The provider's {name} is {config.get(name)!r}, which is no https address."
                )
        return config

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **named: Any) -> Any:
        id_token = named["response"].get("id_token")
        if not isinstance(id_token, str):
            raise OAuth2Error("The provider sent no ID token.")
        try:
            claims = verify_id_token(
                id_token,
                self._fetch_keys(),
                issuer=chosen_provider().issuer,
                client_id=app.client_id,
                nonce=self.nonce,
            )
        except TokenRefused as error:
            raise OAuth2Error(str(error)) from error
        person = {**claims, **self._person(claims, token.token)}
        return self.get_provider().sociallogin_from_response(
            request, {"id_token": claims, "userinfo": person}
        )

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:  # noqa: ARG002
        """Never with the request's Host header."""
        return settings.PACELINE_URL + reverse("openid_connect_callback")

    def _fetch_keys(self) -> dict[str, Any]:
        with get_adapter().get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
            keys: dict[str, Any] = answer.json()
        return keys

    def _person(self, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
        """What the provider says beside the token; nothing where it says nothing."""
        if not self.openid_config.get("userinfo_endpoint"):
            return {}
        person: dict[str, Any] = self._fetch_user_info(access_token)
        # Else a token that was swapped would bring another person's address and groups along.
        if not hmac.compare_digest(str(person.get("sub")).encode(), str(claims["sub"]).encode()):
            raise OAuth2Error("The provider's userinfo is of another subject.")
        return person


class AnswerView(OAuth2CallbackView):
    """Hands the nonce of the sign-in that this is the answer to on to what verifies the token."""

    adapter: VerifyingAdapter

    def _get_state(self, request: HttpRequest, provider: Any) -> tuple[Any, Any]:
        state, response = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce", "")
        return state, response


@require_POST
@never_cache
def start_sign_in(request: HttpRequest, **_: Any) -> HttpResponseBase:
    """Send the browser to the provider; who is signed in may link their account by `process=connect`."""
    chosen = chosen_provider()
    process = AuthProcess.LOGIN
    if request.POST.get("process") == "connect" and request.user.is_authenticated:
        raise_if_reauthentication_required(request, app="allauth.socialaccount")
        process = AuthProcess.CONNECT
    provider = get_adapter(request).get_provider(request, chosen.provider_id)
    nonce = secrets.token_urlsafe(32)
    try:
        response = provider.redirect(
            request, process, next_url=_next_page(request), auth_params={"nonce": nonce}, nonce=nonce
        )
    except (requests.RequestException, OAuth2Error) as error:
        logger.warning("Nobody can sign in by the OpenID provider: %s", error)
        return refuse_sign_in(request, UNREACHABLE, HTTPStatus.BAD_GATEWAY)
    if not isinstance(response, HttpResponseRedirect):
        return response
    # A page that goes on by itself: a redirect would count as where the form sends, and our policy lets
    # forms send to the site alone. The provider may lead on to others.
    return render(
        request, "account/to_provider.html", {"address": response.url, "provider_name": chosen.name}
    )


@require_safe
@never_cache
def take_answer(request: HttpRequest, **_: Any) -> HttpResponseBase:
    """The provider has sent the browser back, with a code or with a reason."""
    view = AnswerView.adapter_view(VerifyingAdapter(request, chosen_provider().provider_id))
    try:
        response: HttpResponseBase = view(request)
    except (requests.RequestException, OAuth2Error) as error:
        # Before the code is traded in, which allauth looks after by itself.
        logger.warning("An answer of the OpenID provider can't be used: %s", error)
        return refuse_sign_in(request, UNVERIFIED)
    return response


def chosen_provider() -> OpenIDSettings:
    """404 where the site has none."""
    if settings.PACELINE_OIDC is None:
        raise Http404("Nobody signs in by OpenID Connect here.")
    chosen: OpenIDSettings = settings.PACELINE_OIDC
    return chosen


def refuse_sign_in(
    request: HttpRequest, sentence: str, status: HTTPStatus = HTTPStatus.FORBIDDEN
) -> HttpResponse:
    """One sentence, in which `{name}` is the provider's."""
    name = chosen_provider().name
    user_login_failed.send(sender=__name__, credentials={"provider": name}, request=request)
    context = {"sentence": sentence.format(name=name)}
    return render(request, "account/refused.html", context, status=status)


def _next_page(request: HttpRequest) -> str:
    address = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if safe else ""
