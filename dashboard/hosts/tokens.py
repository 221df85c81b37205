"""Secrets that a host proves itself with. The site keeps their hashes: random as they are, one is enough."""

from __future__ import annotations

import hashlib
import secrets

from dashboard.models import Machine


def make_token(prefix: str, size: int = 32) -> str:
    """A new secret of `size` random bytes; its prefix says what was found where it lies about."""
    return f"{prefix}_{secrets.token_urlsafe(size)}"


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def machine_with_token(token: str) -> Machine | None:
    """The machine whose token this is; None for one that was revoked or never given."""
    if not token:
        return None
    return Machine.objects.select_related("pool").filter(token_hash=hash_token(token)).first()
