"""Typed readers of environment variables; each raises with the variable's name."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Collection
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = {"1", "true", "yes", "on"}
FALSE_WORDS = {"0", "false", "no", "off", ""}
# Of libpq: seconds to connect, and after which a server whose machine no longer answers is given up. A long
# statement isn't cut by it: the machine answers for it.
CONNECTION_LIMITS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "6",
    "tcp_user_timeout": "90000",  # milliseconds
}


def read_text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def read_name(name: str, default: str, *, most: int) -> str:
    """A name that becomes a row's."""
    value = read_text(name, default)
    if len(value) > most or not value.isprintable():
        raise ImproperlyConfigured(f"{name} must be a printable name of at most {most} characters.")
    return value


def read_choice(name: str, default: str, choices: Collection[str]) -> str:
    """One of the choices, as it is spelt there; capitals don't matter."""
    value = read_text(name, default)
    for choice in choices:
        if choice.casefold() == value.casefold():
            return choice
    raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")


def read_url(name: str, default: str, schemes: Collection[str]) -> str:
    """An address that begins with one of the schemes, without a slash at its end."""
    value = read_text(name, default).rstrip("/")
    if split_url(name, value).scheme not in schemes:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ImproperlyConfigured(f"{name} must begin with {wanted}, not be {value!r}.")
    return value


def read_site_url(name: str, default: str) -> str:
    """The address under which people reach the site."""
    value = read_url(name, default, ("http", "https"))
    parts = split_url(name, value)
    if not parts.hostname or "@" in parts.netloc or parts.path or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"{name} must be like https://host or http://host:8000, not {value!r}.")
    return value


def site_host(url: str) -> str:
    """The host of the site's address, as the Host header spells it without a port."""
    parts = urlsplit(url)
    return parts.netloc.removesuffix(f":{parts.port}")


def is_loopback_site(url: str, host: str) -> bool:
    """Whether only this machine reaches the site: by its address, and by what it listens on."""
    return all(_is_loopback(name) for name in (urlsplit(url).hostname or "", host))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def split_url(name: str, url: str) -> SplitResult:
    """The parts of an address, of which the port is a number where there is one."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it is read here for its error
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is no address: {error}.") from None
    return parts


def read_integer(name: str, default: int, *, least: int = 0, most: int = 2**31 - 1) -> int:
    raw = read_text(name, str(default))
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.") from None
    if value < least:
        raise ImproperlyConfigured(f"{name} must be at least {least}, not {value}.")
    if value > most:
        raise ImproperlyConfigured(f"{name} must be at most {most}, not {value}.")
    return value


def read_boolean(name: str, default: bool = False) -> bool:
    raw = read_text(name, str(default)).lower()
    if raw in TRUE_WORDS:
        return True
    if raw in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {raw!r}.")


def read_folder(name: str, default: Path) -> Path:
    path = Path(read_text(name, str(default))).expanduser()
    return path if path.is_absolute() else Path.cwd() / path


def read_list(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in read_text(name, default).split(",") if word.strip()]


def read_networks(name: str, default: str) -> str:
    """Addresses and networks, comma-separated, or `*`."""
    value = read_text(name, default)
    try:
        for part in value.split(",") if value != "*" else ():
            ipaddress.ip_network(part.strip(), strict=False)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} has no address or network: {error}.") from None
    return value


def read_secret(name: str) -> str:
    """The value itself, or the first line of the file that NAME_FILE names."""
    file = read_text(f"{name}_FILE")
    if not file:
        return read_text(name)
    try:
        return Path(file).expanduser().read_text().partition("\n")[0].strip()
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(f"{name}_FILE can't be read: {error}.") from None


def database_settings(url: str) -> dict[str, object]:
    """The Django DATABASES entry of a URL such as `postgresql://user:password@host:port/name`.

    Its query may hold user, password, host (a socket's folder) and port; all else in it is for the driver.
    """
    parts = split_url("DATABASE_URL", url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(
            "DATABASE_URL must begin with postgresql://, as in postgresql://host/paceline."
        )
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ImproperlyConfigured("DATABASE_URL must name a database, as in postgresql://host/paceline.")
    return {
        "ENGINE": "dashboard.postgresql.backend",
        "NAME": name,
        "USER": unquote(parts.username or query.pop("user", "")),
        "PASSWORD": unquote(parts.password or query.pop("password", "")),
        "HOST": query.pop("host", None) or unquote(parts.hostname or ""),
        "PORT": str(parts.port or query.pop("port", "")),
        "OPTIONS": {**CONNECTION_LIMITS, **query},
        # Long enough for statements that are prepared once to be asked often.
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
    }


def email_settings(url: str) -> dict[str, object]:
    """Django's EMAIL_* settings from `smtp://user:password@host:port`, `smtps://...`, or `console:`."""
    parts = split_url("EMAIL_URL", url)
    if parts.scheme == "console":
        return {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
    if parts.scheme not in {"smtp", "smtps", "smtp+tls"}:
        raise ImproperlyConfigured("EMAIL_URL must begin with smtp://, smtp+tls://, smtps:// or console:.")
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname or "localhost",
        "EMAIL_PORT": parts.port or (465 if parts.scheme == "smtps" else 25),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_TIMEOUT": 20,
    }
