"""An account with a password, a browser, and what an authenticator app does."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth.models import User
from django.test import Client

PASSWORD = "a long secret"


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", "ada@example.org", PASSWORD)


@pytest.fixture
def admin_user(db: None) -> User:
    return User.objects.create_superuser("grace", "grace@example.org", PASSWORD)


def sign_in(client: Client, name: str = "ada", password: str = PASSWORD, **more: Any) -> Any:
    return client.post("/sign-in/", {"login": name, "password": password, **more})


def is_signed_in(client: Client) -> bool:
    return "Sign out" in client.get("/").content.decode()


def shown_code(key: str, periods: int = 0) -> str:
    """What the app shows, or showed so many half minutes before now."""
    return format_hotp_value(hotp_value(key, int(time.time()) // 30 - periods))


def set_up_second_factor(client: Client) -> tuple[str, list[str]]:
    """The app's key, and the recovery codes."""
    page = client.get("/account/second-factor/set-up/").content.decode()
    match = re.search(r'class="app-key">([A-Z2-7=]+)<', page)
    assert match, page
    done = client.post("/account/second-factor/set-up/", {"code": shown_code(match[1])})
    assert done["Location"] == "/account/recovery-codes/"
    codes = re.findall(r"^\d{8}$|(?<=>)\d{8}$", client.get(done["Location"]).content.decode(), re.MULTILINE)
    assert len(codes) == 10
    return match[1], codes
