"""A small OpenID provider that speaks HTTP: discovery, code with PKCE, keys, signed ID tokens, userinfo.

Tests tell it who signs in (`person`), and change what it would say by right (`claims`, `signing`, ...).
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT_ID = "paceline"
CLIENT_SECRET = "a client's secret"


@cache
def provider_key() -> Any:
    """The key of every provider: to make one takes a tenth of a second."""
    return rsa.generate_private_key(65537, 2048)


@dataclass
class Provider:
    """Its state; `codes` are those that it gave, with what each was asked with."""

    person: dict[str, Any] = field(default_factory=lambda: {"sub": "42", "preferred_username": "ada"})
    # Over what the ID token says by right; None takes a claim out.
    claims: dict[str, Any] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    key: Any = field(default_factory=provider_key)
    signing_key: Any = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    issuer: str = ""
    refusals: list[str] = field(default_factory=list)

    def description(self) -> dict[str, Any]:
        names = ("authorization", "token", "userinfo")
        return {
            "issuer": self.issuer,
            **{f"{name}_endpoint": f"{self.issuer}/{name}" for name in names},
            "jwks_uri": f"{self.issuer}/keys",
            **self.described,
        }

    def published_keys(self) -> dict[str, Any]:
        key = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**key, "kid": "key-1", "alg": "RS256", "use": "sig"}]}

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def give_tokens(self, sent: dict[str, str]) -> dict[str, Any] | None:
        asked = self.codes.pop(sent.get("code", ""), None)
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        right = {
            "code": asked is not None,
            "code_verifier": asked is not None and challenge == asked["code_challenge"],
            "redirect_uri": asked is not None and sent.get("redirect_uri") == asked["redirect_uri"],
            "client_secret": sent.get("client_secret") == CLIENT_SECRET,
        }
        self.refusals += [name for name, holds in right.items() if not holds]
        if asked is None or not all(right.values()):
            return None
        return {"access_token": "access", "token_type": "Bearer", "id_token": self.id_token(asked["nonce"])}

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {
            **self.person,
            **{"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce},
            **self.claims,
        }
        kept = {name: value for name, value in claims.items() if value is not None}
        key = self.signing_key if self.signing_key is not None else self.key
        return jwt.encode(kept, key, algorithm=self.algorithm, headers={"kid": "key-1"})


def make_handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/authorization":
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
                return
            answers = {
                "/.well-known/openid-configuration": provider.description,
                "/keys": provider.published_keys,
                "/userinfo": lambda: {**provider.person, **provider.userinfo},
            }
            self.answer(answers[parts.path]() if parts.path in answers else None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.answer(provider.give_tokens({name: values[-1] for name, values in parse_qs(body).items()}))

        def answer(self, content: dict[str, Any] | None) -> None:
            body = json.dumps({"error": "invalid_grant"} if content is None else content).encode()
            self.send_response(400 if content is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests print nothing."""

    return Handler


def start_provider() -> tuple[Provider, ThreadingHTTPServer]:
    provider = Provider()
    server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(provider))
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    return provider, server
