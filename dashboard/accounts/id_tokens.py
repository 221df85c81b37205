"""What an OpenID provider's ID token must prove before it is believed: OpenID Connect Core, 3.1.3.7."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

import jwt

# Signatures by a public key. `none`, and those keyed by the client's secret, are none.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"})
REQUIRED = ["aud", "exp", "iat", "iss", "nonce", "sub"]
# By so many seconds two clocks may differ.
LEEWAY = 60


class TokenRefused(Exception):  # noqa: N818 - reads as a fact
    """Why a token isn't believed: for the log."""


def verify_id_token(
    token: str, keys: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str
) -> dict[str, Any]:
    """The claims of a token that `issuer` signed with one of its keys for this client and this sign-in."""
    try:
        algorithm, key = _signing_key(token, keys)
        claims: dict[str, Any] = jwt.decode(
            token,
            key=key,
            algorithms=[algorithm],
            audience=client_id,
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": REQUIRED},
        )
    except jwt.PyJWTError as error:
        raise TokenRefused(f"The ID token is refused: {error}") from error
    if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
        raise TokenRefused("The ID token has the nonce of another sign-in.")
    if claims.get("azp", client_id) != client_id:
        raise TokenRefused("The ID token was made for another client (azp).")
    return claims


def _signing_key(token: str, keys: Mapping[str, Any]) -> tuple[str, Any]:
    """The algorithm that the token names, and the provider's key for it."""
    header = jwt.get_unverified_header(token)
    algorithm = str(header.get("alg"))
    if algorithm not in ALGORITHMS:
        raise TokenRefused(f"The ID token is signed by {algorithm}, which isn't accepted.")
    usable = [key for key in jwt.PyJWKSet.from_dict(dict(keys)).keys if key.public_key_use in (None, "sig")]
    if "kid" in header:
        usable = [key for key in usable if key.key_id == header["kid"]]
    if len(usable) != 1:
        raise TokenRefused("The ID token isn't signed by a key that the provider publishes.")
    return algorithm, usable[0].key
