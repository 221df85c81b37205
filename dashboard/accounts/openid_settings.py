"""The OpenID provider by which people sign in, as the environment names it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from dashboard.environment_variables import read_boolean, read_list, read_secret, read_text, read_url

DEFAULT_SCOPES = "openid profile email"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class OpenIDSettings:
    """It lets in who is of an allowed domain and in an allowed group, where any of these are named."""

    issuer: str
    client_id: str
    client_secret: str
    name: str = "single sign-on"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    allowed_domains: frozenset[str] = frozenset()
    allowed_groups: frozenset[str] = frozenset()
    admin_group: str = ""
    groups_claim: str = "groups"
    has_second_factor: bool = True

    @property
    def provider_id(self) -> str:
        """Another issuer's subjects are other people, even where they are spelt alike."""
        return f"oidc-{hashlib.sha256(self.issuer.encode()).hexdigest()[:16]}"


def read_openid_settings() -> OpenIDSettings | None:
    """None where no issuer is named."""
    issuer = read_issuer()
    if not issuer:
        return None
    client_id = read_text("PACELINE_OIDC_CLIENT_ID")
    client_secret = read_secret("PACELINE_OIDC_CLIENT_SECRET")
    if not client_id or not client_secret:
        raise ImproperlyConfigured(
            "PACELINE_OIDC_ISSUER needs PACELINE_OIDC_CLIENT_ID and PACELINE_OIDC_CLIENT_SECRET (or _FILE)."
        )
    scopes = read_text("PACELINE_OIDC_SCOPES", DEFAULT_SCOPES).replace(",", " ").split()
    if "openid" not in scopes:
        raise ImproperlyConfigured("PACELINE_OIDC_SCOPES must have openid.")
    return OpenIDSettings(
        issuer=issuer,
        client_id=client_id,
        client_secret=client_secret,
        name=read_text("PACELINE_OIDC_NAME", OpenIDSettings.name),
        scopes=tuple(scopes),
        allowed_domains=frozenset(
            domain.lower().lstrip("@") for domain in read_list("PACELINE_OIDC_ALLOWED_DOMAINS")
        ),
        allowed_groups=frozenset(read_list("PACELINE_OIDC_ALLOWED_GROUPS")),
        admin_group=read_text("PACELINE_OIDC_ADMIN_GROUP"),
        groups_claim=read_text("PACELINE_OIDC_GROUPS_CLAIM", OpenIDSettings.groups_claim),
        has_second_factor=read_boolean("PACELINE_OIDC_HAS_SECOND_FACTOR", OpenIDSettings.has_second_factor),
    )


def read_issuer() -> str:
    """As the provider spells it, a slash at its end included; over TLS, but for one on this machine."""
    issuer = read_text("PACELINE_OIDC_ISSUER")
    if not issuer:
        return ""
    read_url("PACELINE_OIDC_ISSUER", issuer, ("http", "https"))
    parts = urlsplit(issuer)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ImproperlyConfigured(f"PACELINE_OIDC_ISSUER must begin with https://, not be {issuer!r}.")
    return issuer
