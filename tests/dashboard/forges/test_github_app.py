from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from dashboard.forges import github_app
from dashboard.forges.errors import ForgeRefused
from dashboard.forges.forge import forge_of
from dashboard.forges.forge_api import Forge
from dashboard.models import Project
from tests.dashboard.forges.conftest import OpenStandIn, connection_to
from tests.dashboard.forges.stand_ins import Sent, StandIn

INSTALLATION = "GET /repos/{owner}/{repo}/installation"
TOKENS = "POST /app/installations/{installation_id}/access_tokens"
REPOSITORY = "GET /repos/{owner}/{repo}"
COMMENTS = "GET /repos/{owner}/{repo}/issues/{issue_number}/comments"
MINTED = "ghs_minted"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(autouse=True)
def _no_tokens() -> Iterator[None]:
    github_app._tokens.clear()
    yield
    github_app._tokens.clear()


def pem_of(key: Any) -> str:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def decode_part(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class AppStandIn:
    """GitHub, as an app meets it: statements are verified, tokens minted for `lasting` seconds."""

    def __init__(self, stand_in: StandIn, key: rsa.RSAPrivateKey, lasting: float = 3600) -> None:
        self.stand_in, self.key, self.lasting, self.minted = stand_in, key, lasting, 0
        stand_in.authorization = ("User-Agent", "Paceline")
        stand_in.responses |= {
            TOKENS: self.mint_token,
            INSTALLATION: self.find_installation,
            REPOSITORY: self.read_repository,
        }

    def verify_statement(self, sent: Sent) -> dict[str, Any]:
        head, claims, signature = sent.headers["Authorization"].removeprefix("Bearer ").split(".")
        text = f"{head}.{claims}".encode()
        self.key.public_key().verify(decode_part(signature), text, padding.PKCS1v15(), hashes.SHA256())
        assert json.loads(decode_part(head)) == {"alg": "RS256", "typ": "JWT"}
        said: dict[str, Any] = json.loads(decode_part(claims))
        assert said["exp"] - time.time() <= 600
        return said

    def mint_token(self, sent: Sent) -> dict[str, Any]:
        assert self.verify_statement(sent)["iss"] == "4711"
        assert (sent.places, sent.body) == ({"installation_id": "12"}, {"repositories": ["Hello-World"]})
        self.minted += 1
        ends = datetime.fromtimestamp(time.time() + self.lasting, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"token": MINTED, "expires_at": ends}

    def find_installation(self, sent: Sent) -> dict[str, Any]:
        self.verify_statement(sent)
        return {"id": 12}

    def read_repository(self, sent: Sent) -> dict[str, Any]:
        assert sent.headers["Authorization"] == f"Bearer {MINTED}"
        return {"id": 1}

    def forge(self, **fields: str) -> Forge:
        values = {"app_id": "4711", "token": pem_of(self.key), **fields}
        return forge_of(connection_to(self.stand_in, Project(slug="snakes"), **values))


def test_a_token_is_minted_once_and_kept(open_stand_in: OpenStandIn, key: rsa.RSAPrivateKey) -> None:
    app = AppStandIn(open_stand_in("github"), key)
    for _ in range(3):
        app.forge(installation="12").check_access()
    assert app.minted == 1


def test_the_installation_is_found(open_stand_in: OpenStandIn, key: rsa.RSAPrivateKey) -> None:
    app = AppStandIn(open_stand_in("github"), key)
    app.forge().check_access()
    assert [sent.name for sent in app.stand_in.requests] == [INSTALLATION, TOKENS, REPOSITORY]


def test_a_token_that_ends_soon_is_replaced(open_stand_in: OpenStandIn, key: rsa.RSAPrivateKey) -> None:
    app = AppStandIn(open_stand_in("github"), key, lasting=200)
    forge = app.forge(installation="12")
    forge.check_access()
    forge.check_access()
    assert app.minted == 2


def test_an_app_knows_its_own_comments(open_stand_in: OpenStandIn, key: rsa.RSAPrivateKey) -> None:
    app = AppStandIn(open_stand_in("github"), key)
    app.stand_in.responses[COMMENTS] = [
        {"id": 1, "body": "ours", "user": {"id": 9}, "performed_via_github_app": None},
        {"id": 2, "body": "ours", "user": {"id": 8}, "performed_via_github_app": {"id": 4711}},
    ]
    assert app.forge(installation="12").find_own_comment(5, "ours") == 2


@pytest.mark.parametrize("kind", ["text", "elliptic"])
def test_a_key_of_another_kind_is_refused(
    open_stand_in: OpenStandIn, key: rsa.RSAPrivateKey, kind: str
) -> None:
    app = AppStandIn(open_stand_in("github"), key)
    wrong = "-----BEGIN x" if kind == "text" else pem_of(ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(ForgeRefused, match="must be an RSA key as PEM"):
        app.forge(token=wrong, installation="12").check_access()
