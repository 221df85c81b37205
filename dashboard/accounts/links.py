"""A link by which one sets a password, once and within a day."""

from __future__ import annotations

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.contrib.auth.models import User
from django.urls import reverse


def password_link(user: User) -> str:
    """It is worth nothing any more once the password has changed, or somebody has signed in."""
    key = default_token_generator.make_token(user)
    address = reverse(
        "account_reset_password_from_key", kwargs={"uidb36": user_pk_to_url_str(user), "key": key}
    )
    return settings.PACELINE_URL + address
