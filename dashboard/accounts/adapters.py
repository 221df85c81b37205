"""What allauth may do here."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from dashboard.accounts import second_factors, sign_in_delays
from dashboard.secrets import decrypt_token, encrypt_text, is_lost
from dashboard.throttling.refusals import refuse_for_now

PASSWORD_CHANGED = "account/messages/password_changed.txt"  # noqa: S105 - a template
# What a connection through a unix socket without a proxy's word has in the list of sessions.
UNKNOWN_ADDRESS = "0.0.0.0"  # noqa: S104 - never bound to


class AccountAdapter(DefaultAccountAdapter):
    """Passwords: growing delays, no open sign-up, links to the address that people use."""

    error_messages = {  # noqa: RUF012 - as in its base
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": "The name or the password is wrong.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def is_ajax(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """Answers are pages, never allauth's JSON."""
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        return request.META.get("REMOTE_ADDR") or UNKNOWN_ADDRESS

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str | None = None,
        message_context: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Of a password that was set by a link as it is: allauth has one sentence for all changes of it."""
        if message_template == PASSWORD_CHANGED:
            message_template = request.__dict__.get("password_message", PASSWORD_CHANGED)
        super().add_message(request, level, message_template, message_context, **options)

    def is_safe_url(self, url: str) -> bool:
        """Whether signing in may lead there: to this site alone. allauth takes all hosts of ALLOWED_HOSTS, of
        which some mean the computer of whoever signs in."""
        request = context.request
        hosts, secure = {request.get_host()}, request.is_secure()
        return url_has_allowed_host_and_scheme(url, allowed_hosts=hosts, require_https=secure)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        if seconds := sign_in_delays.reserve_sign_in(request, credentials.get("username", "")):
            raise ImmediateHttpResponse(refuse_for_now(request, seconds, "failed sign-ins"))

    def authenticate(self, request: HttpRequest, **credentials: Any) -> AbstractBaseUser | None:
        user: AbstractBaseUser | None = super().authenticate(request, **credentials)
        if user is not None:
            sign_in_delays.note_success(request, credentials.get("username", ""))
        return user

    def post_login(self, request: HttpRequest, user: AbstractBaseUser, **options: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().post_login(request, user, **options)
        if second_factors.lacks_second_factor(request, user):
            response = HttpResponseRedirect(reverse("mfa_activate_totp"))
        sign_in_delays.remember_browser(request, response, user)
        return response

    def is_reauthentication_required(self, *, app: str, **options: Any) -> bool:
        """Who has just signed in isn't asked again."""
        user = self.request.user
        records = get_authentication_records(self.request, user if user.is_authenticated else None)
        newest = max((record["at"] for record in records), default=0.0)
        if timezone.now().timestamp() - newest < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT:
            return False
        return bool(super().is_reauthentication_required(app=app, **options))

    def send_password_reset_mail(self, user: AbstractBaseUser, email: str, context: dict[str, Any]) -> None:
        """Not to who signs in by the provider: a password would be a way around it."""
        if user.has_usable_password() or not SocialAccount.objects.filter(user_id=user.pk).exists():
            super().send_password_reset_mail(user, email, context)

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Never with the request's Host header."""
        identity, _, token = key.partition("-")
        path = reverse("account_reset_password_from_key", kwargs={"uidb36": identity, "key": token})
        return settings.PACELINE_URL + path


class SecondFactorAdapter(DefaultMFAAdapter):
    """Second factors: encrypted at rest, and not removed where they are required."""

    def encrypt(self, text: str) -> str:
        return encrypt_text(text)

    def decrypt(self, encrypted_text: str) -> str:
        plain = decrypt_token(encrypted_text)
        # Without this the codes of an empty secret would be right.
        if not plain or is_lost(plain):
            raise ValidationError(
                "This second factor can't be read any more: an administrator has to reset it."
            )
        return plain

    def get_totp_label(self, user: AbstractBaseUser) -> str:
        return user.get_username()

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return not second_factors.must_have_second_factor(context.request, authenticator.user)
