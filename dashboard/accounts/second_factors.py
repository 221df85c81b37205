"""Who must have a second factor: a code of an app beside the password."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from dashboard.problem_details import answer_problem, is_api_request
from dashboard.secrets import decrypt_token, encrypt_text, is_lost

NEEDS_FACTOR = "Your account needs a second factor: set it up first."
SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
# Pages that are only there to write.
FORMS = ("experiment-new",)
# What one may do to get a second factor, or to leave.
ALLOWED = ("sign-in", "sign-out", "account_reauthenticate", "account_change_password", "usersessions_list")
ENCRYPTED = ("secret", "seed")


def must_have_second_factor(request: HttpRequest, user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether the settings ask one of this account. Who signed in by the provider has its own there."""
    required = settings.PACELINE_REQUIRE_SECOND_FACTOR
    if required == "none" or (required == "admins" and not getattr(user, "is_superuser", False)):
        return False
    provider = settings.PACELINE_OIDC
    return not (provider and provider.has_second_factor and signed_in_by_provider(request, user))


def signed_in_by_provider(request: HttpRequest, user: AbstractBaseUser | AnonymousUser) -> bool:
    records = get_authentication_records(request, user if isinstance(user, AbstractBaseUser) else None)
    return bool(records) and records[0]["method"] == "socialaccount"


def has_second_factor(user: AbstractBaseUser | AnonymousUser) -> bool:
    return Authenticator.objects.filter(user_id=user.pk, type=Authenticator.Type.TOTP).exists()


def lacks_second_factor(request: HttpRequest, user: AbstractBaseUser | AnonymousUser) -> bool:
    return must_have_second_factor(request, user) and not has_second_factor(user)


def reset_second_factor(user: AbstractBaseUser) -> bool:
    """Take the account's second factor and its recovery codes away; whether there was one."""
    return bool(Authenticator.objects.filter(user_id=user.pk).delete()[0])


def reencrypt_second_factors() -> int:
    """Encrypt them all with SECRET_KEY, and say how many; those that can't be read stay as they are."""
    with transaction.atomic():
        count = 0
        for authenticator in Authenticator.objects.select_for_update().order_by("pk"):
            for name in ENCRYPTED:
                plain = decrypt_token(authenticator.data.get(name, ""))
                if plain and not is_lost(plain):
                    authenticator.data[name] = encrypt_text(plain)
                    count += 1
            authenticator.save(update_fields=["data"])
    return count


class RequireSecondFactors:
    """The middleware that leads who lacks a required second factor to its set-up before they write."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _arguments: Any, _named: Any
    ) -> HttpResponseBase | None:
        # Before a session is read: most requests only look.
        if settings.PACELINE_REQUIRE_SECOND_FACTOR == "none" or not changes_something(request):
            return None
        # A token is no browser: it was made by somebody who had signed in.
        in_session = request.user.is_authenticated and SESSION_KEY in request.session
        if not in_session or not lacks_second_factor(request, request.user):
            return None
        if is_api_request(request):
            return answer_problem(HTTPStatus.FORBIDDEN, NEEDS_FACTOR)
        messages.warning(request, NEEDS_FACTOR)
        back = request.get_full_path() if request.method in SAFE else ""
        query = f"?{urlencode({'next': back})}" if back else ""
        return HttpResponseRedirect(reverse("mfa_activate_totp") + query)


def changes_something(request: HttpRequest) -> bool:
    """Whether a page changes something, or is there to: all of the administration is."""
    match = request.resolver_match
    name = match.url_name or "" if match else ""
    if name in ALLOWED or name.startswith("mfa_"):
        return False
    return request.method not in SAFE or name in FORMS or request.path.startswith(reverse("admin:index"))
