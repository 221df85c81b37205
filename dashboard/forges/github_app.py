"""A GitHub App as a connection's account: a signed statement of who it is brings tokens for an hour."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from dashboard.forges.client import Client, readable_answers
from dashboard.forges.errors import ForgeRefused
from dashboard.forges.json_fields import LONGEST_COMMENT

# GitHub takes ten minutes at most; clocks may differ by a minute.
VALID_SECONDS = 540
CLOCK_SECONDS = 60
# A token isn't used in the last minutes before its end: what it begins may take a while.
SPARE_SECONDS = 300
HOUR_SECONDS = 3600

# Digest of an app and what it is for -> its token, and when that ends. Each process has its own,
# and its threads may each ask for one at once: any of them is good.
_tokens: dict[str, tuple[str, float]] = {}


@dataclass(frozen=True)
class GitHubApp:
    """`installation` is the number of the app's installation; empty: GitHub is asked for the repository's."""

    app_id: str
    private_key: str = field(repr=False)
    repository: str
    installation: str = ""

    def authorization(self, client: Client) -> Mapping[str, str]:
        """The header for requests about the repository. `client` speaks as the app itself."""
        known = hashlib.sha256(repr((client.address, *vars(self).values())).encode()).hexdigest()
        token, until = _tokens.get(known, ("", 0.0))
        if until - SPARE_SECONDS < time.time():
            token, until = self.request_token(client)
            _tokens[known] = token, until
        return {"Authorization": f"Bearer {token}"}

    def app_authorization(self) -> Mapping[str, str]:
        """The header for requests about the app."""
        return {"Authorization": f"Bearer {self.sign_statement(int(time.time()))}"}

    def request_token(self, client: Client) -> tuple[str, float]:
        """A token for this repository alone, and when it ends."""
        path = f"/app/installations/{self.installation or self.find_installation(client)}/access_tokens"
        with readable_answers("GitHub"):
            name = self.repository.partition("/")[2]
            made = client.send_object("POST", path, {"repositories": [name]})
            ends = parse_iso_time(made.text("expires_at", default=""))
            return made.text("token", LONGEST_COMMENT), ends or time.time() + HOUR_SECONDS

    def find_installation(self, client: Client) -> int:
        with readable_answers("GitHub"):
            return client.get_object(f"/repos/{self.repository}/installation").number("id")

    def sign_statement(self, now: int) -> str:
        """A JSON Web Token (RS256) that says who the app is."""
        claims = {"iat": now - CLOCK_SECONDS, "exp": now + VALID_SECONDS, "iss": self.app_id}
        text = f"{encode_part({'alg': 'RS256', 'typ': 'JWT'})}.{encode_part(claims)}"
        signature = load_key(self.private_key).sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{encode_bytes(signature)}"


def load_key(pem: str) -> rsa.RSAPrivateKey:
    """Raises ForgeRefused."""
    try:
        key = serialization.load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise ForgeRefused("The app's private key can't be read: it must be an RSA key as PEM.") from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ForgeRefused("The app's private key can't be read: it must be an RSA key as PEM.")
    return key


def encode_part(value: Mapping[str, object]) -> str:
    return encode_bytes(json.dumps(value, separators=(",", ":")).encode())


def encode_bytes(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def parse_iso_time(text: str) -> float | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
