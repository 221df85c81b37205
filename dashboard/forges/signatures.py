"""Whether a request comes from who knows the secret: compared in constant time, over the body's bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping

from dashboard.forges.errors import ForgeError, UnknownSender

# GitLab's newer signature names its time: so far from ours it may be.
WINDOW_SECONDS = 300
SIGNING_TOKEN = "whsec_"  # noqa: S105 - the beginning of one
LONGEST_SIGNATURES = 1000


def digest_hex(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def check_hex(headers: Mapping[str, str], name: str, secret: str, body: bytes, prefix: str = "") -> None:
    """That a header holds the HMAC-SHA256 of the body, in hexadecimal."""
    if not is_same(headers.get(name.lower(), ""), prefix + digest_hex(secret, body)):
        raise UnknownSender(401, f"The signature in {name} isn't that of this body.")


def check_token(headers: Mapping[str, str], name: str, secret: str) -> None:
    if not is_same(headers.get(name.lower(), ""), secret):
        raise UnknownSender(401, f"The token in {name} isn't this project's.")


def check_standard(headers: Mapping[str, str], secret: str, body: bytes) -> None:
    """That `webhook-signature` is that of the specification Standard Webhooks, made within five minutes."""
    identity, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    expected = base64.b64encode(standard_digest(secret, identity, stamp, body)).decode()
    given = headers.get("webhook-signature", "")[:LONGEST_SIGNATURES].split()
    # All of them are compared: which one fits takes no longer or shorter.
    if not any([is_same(signature, f"v1,{expected}") for signature in given]):  # noqa: C419
        raise UnknownSender(401, "The signature in webhook-signature isn't that of this body.")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        raise ForgeError(401, "webhook-timestamp must be Unix seconds.")
    if abs(time.time() - int(stamp)) > WINDOW_SECONDS:
        raise ForgeError(
            401, f"webhook-timestamp is more than {WINDOW_SECONDS} seconds off: check the clock."
        )


def standard_digest(secret: str, identity: str, stamp: str, body: bytes) -> bytes:
    return hmac.new(signing_key(secret), f"{identity}.{stamp}.".encode() + body, hashlib.sha256).digest()


def signing_key(secret: str) -> bytes:
    """The key that a signing token stands for; of any other secret its own bytes."""
    if secret.startswith(SIGNING_TOKEN):
        try:
            return base64.b64decode(secret.removeprefix(SIGNING_TOKEN), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def is_same(given: str, expected: str) -> bool:
    # Bytes: of other characters compare_digest would raise. Without a secret nothing is the same.
    return bool(expected) and hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
