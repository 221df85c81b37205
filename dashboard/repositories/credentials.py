"""The user and password that the address of a repository may carry."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def split_credentials(address: str) -> tuple[str, str]:
    """The address without them, and `USER:PASSWORD`; of ssh the user is no secret and stays."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return address, ""
    credentials, at, host = parts.netloc.rpartition("@")
    if not at or parts.scheme not in ("http", "https"):
        return address, ""
    return urlunsplit(parts._replace(netloc=host)), credentials


def join_credentials(address: str, credentials: str) -> str:
    """The address as git takes it."""
    if not credentials:
        return address
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=f"{credentials}@{parts.netloc}"))
