"""A text field whose column holds a Fernet token, keyed by the site's SECRET_KEY.

What an earlier key encrypted is read as long as SECRET_KEY_FALLBACKS names it. Without its key a secret is
lost: it reads as empty, and nothing else suffers.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models


class LostSecret(str):
    """A secret that no key of the site opens: empty, and written back as it stands in the database."""

    token: str

    def __new__(cls, token: str) -> LostSecret:
        lost = super().__new__(cls)
        lost.token = token
        return lost


def is_lost(secret: str) -> bool:
    """Whether there is a secret that can't be read with this SECRET_KEY."""
    return isinstance(secret, LostSecret)


@functools.lru_cache(maxsize=8)
def _fernet_of_keys(keys: tuple[str, ...]) -> MultiFernet:
    digests = [hashlib.sha256(b"paceline.secrets/1:" + key.encode()).digest() for key in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])


def _site_fernet() -> MultiFernet:
    return _fernet_of_keys((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


def encrypt_text(plain: str) -> str:
    """The token of a text, by SECRET_KEY itself; an empty text has none."""
    return _site_fernet().encrypt(plain.encode()).decode() if plain else ""


def decrypt_token(token: str) -> str:
    """The text of a token; a LostSecret where no key of the site encrypted it."""
    try:
        return _site_fernet().decrypt(token.encode()).decode() if token else ""
    except InvalidToken:
        return LostSecret(token)


# Generic for the type checker alone: at run time the class takes no parameters.
if TYPE_CHECKING:
    _TextField = models.TextField[str, str]
else:
    _TextField = models.TextField


class EncryptedField(_TextField):
    """Text that is plain in Python and encrypted in the database; it can't be searched."""

    def get_prep_value(self, value: Any) -> str | None:
        if isinstance(value, LostSecret):
            return value.token
        return None if value is None else encrypt_text(str(value))

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return None if value is None else decrypt_token(value)
