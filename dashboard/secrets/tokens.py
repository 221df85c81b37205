"""Secrets that hosts and scripts prove themselves with. Kept are hashes: of what is random one is enough."""

from __future__ import annotations

import hashlib
import secrets


def make_token(prefix: str, size: int = 32) -> str:
    """A new secret of `size` random bytes; its prefix says what was found where it lies about."""
    return f"{prefix}_{secrets.token_urlsafe(size)}"


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
