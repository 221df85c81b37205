"""allauth's forms for codes of second factors, with our delays, and no code taken twice."""

from __future__ import annotations

from typing import Any

from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.contrib.auth.signals import user_login_failed
from django.core.cache import cache
from django.core.exceptions import ValidationError

from dashboard.accounts import sign_in_delays
from dashboard.throttling.keys import hash_key
from dashboard.throttling.refusals import refuse_for_now

# A code is right from half a minute before to half a minute after its own.
CODE_LIVES_SECONDS = 120


class DelayedCode:
    """Counts a code before it is looked at; `user` is the account's."""

    user: Any

    def clean_code(self) -> str:
        if seconds := sign_in_delays.reserve_code(self.user):
            raise ImmediateHttpResponse(refuse_for_now(context.request, seconds, "wrong codes"))
        try:
            code: str = super().clean_code()  # type: ignore[misc]
        except ValidationError:
            wrong = {"username": self.user.get_username(), "second_factor": "wrong"}
            user_login_failed.send(sender=__name__, credentials=wrong, request=context.request)
            raise
        used = hash_key("code", str(self.user.pk), "".join(code.split()))
        if not cache.add(f"used-code:{used}", True, CODE_LIVES_SECONDS):
            raise ValidationError("This code was used just now: wait for the next one.")
        sign_in_delays.note_right_code(self.user)
        return code


class DelayedAuthenticateForm(DelayedCode, AuthenticateForm):
    pass


class DelayedReauthenticateForm(DelayedCode, ReauthenticateForm):
    pass


class DelayedActivateForm(DelayedCode, ActivateTOTPForm):
    pass
