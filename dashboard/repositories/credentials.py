"""The user and password that the address of a repository may carry."""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit, urlunsplit


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


def credential_variables(address: str, credentials: str) -> dict[str, str]:
    """The variables by which git sends the credentials to the address' host, and to no other.

    In its arguments, or those of its helpers, every account of the machine could read them.
    """
    if not credentials:
        return {}
    parts = urlsplit(address)
    user, _, password = credentials.partition(":")
    token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {token}",
    }
