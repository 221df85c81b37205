"""How long one waits after failed sign-ins: of an account, and of an address, whichever accounts it tries.

A browser in which the account has signed in before has a count of its own: guessing elsewhere doesn't lock
its owner out.
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dashboard.throttling.attempts import forget_attempts, forgive_attempt, reserve_attempt
from dashboard.throttling.keys import hash_key, network_of

FREE_OF_ACCOUNT = 5
FREE_OF_ADDRESS = 20
FREE_OF_CODE = 5
COOKIE_SALT = "paceline.known_browser"
COOKIE_AGE = 365 * 86_400
MOST_ACCOUNTS = 8


def reserve_sign_in(request: HttpRequest, name: str) -> int:
    """0 where a password may be tried now, else the seconds to wait."""
    longest = settings.PACELINE_LONGEST_SIGN_IN_DELAY
    if seconds := reserve_attempt(*_address_key(request), free=FREE_OF_ADDRESS, longest=longest):
        return seconds
    seconds = reserve_attempt(*_account_key(request, name), free=FREE_OF_ACCOUNT, longest=longest)
    if seconds:
        # Nothing was tried: the address pays for what it tries.
        forgive_attempt(*_address_key(request))
    return seconds


def note_success(request: HttpRequest, name: str) -> None:
    """The password was right. What else failed from the address still counts: it may own one account."""
    forget_attempts(*_account_key(request, name))
    forgive_attempt(*_address_key(request))


def reserve_code(user: AbstractBaseUser) -> int:
    """0 where a code of a second factor may be tried now, else the seconds to wait."""
    longest = settings.PACELINE_LONGEST_SIGN_IN_DELAY
    return reserve_attempt("code", str(user.pk), free=FREE_OF_CODE, longest=longest)


def note_right_code(user: AbstractBaseUser) -> None:
    forget_attempts("code", str(user.pk))


def remember_browser(request: HttpRequest, response: HttpResponseBase, user: AbstractBaseUser) -> None:
    """From now on the browser has a count of its own for this account."""
    browser, accounts = _known_browser(request)
    account = _account_hash(user.get_username())
    kept = [account, *(other for other in accounts if other != account)][:MOST_ACCOUNTS]
    response.set_cookie(
        settings.PACELINE_BROWSER_COOKIE_NAME,
        signing.dumps([browser or secrets.token_urlsafe(12), kept], salt=COOKIE_SALT),
        max_age=COOKIE_AGE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _address_key(request: HttpRequest) -> tuple[str, ...]:
    return "address", network_of(request.META.get("REMOTE_ADDR", ""))


def _account_key(request: HttpRequest, name: str) -> tuple[str, ...]:
    browser, accounts = _known_browser(request)
    account = _account_hash(name)
    return "account", account, browser if account in accounts else ""


def _account_hash(name: str) -> str:
    return hash_key("account", name.casefold())


def _known_browser(request: HttpRequest) -> tuple[str, list[str]]:
    """The browser's own name and the accounts that signed in there; nothing where nobody has."""
    try:
        browser, accounts = signing.loads(
            request.COOKIES.get(settings.PACELINE_BROWSER_COOKIE_NAME, ""),
            salt=COOKIE_SALT,
            max_age=COOKIE_AGE,
        )
    except (signing.BadSignature, ValueError, TypeError):
        return "", []
    return browser, accounts
