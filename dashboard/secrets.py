"""Secrets at rest: a text field whose column holds a Fernet token, keyed by the site's SECRET_KEY."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.db import models


def _site_fernet() -> Fernet:
    digest = hashlib.sha256(b"paceline.secrets/1:" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))


def encrypt_text(plain: str) -> str:
    return _site_fernet().encrypt(plain.encode()).decode() if plain else ""


def decrypt_token(token: str) -> str:
    """Raises cryptography.fernet.InvalidToken where SECRET_KEY isn't the one that encrypted it."""
    return _site_fernet().decrypt(token.encode()).decode() if token else ""


# Generic for the type checker alone: at run time the class takes no parameters.
if TYPE_CHECKING:
    _TextField = models.TextField[str, str]
else:
    _TextField = models.TextField


class EncryptedField(_TextField):
    """Text that is plain in Python and encrypted in the database; it can't be searched."""

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else encrypt_text(str(value))

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return None if value is None else decrypt_token(value)
