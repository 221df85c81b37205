"""From a forge's request to what it says: first its size, then its signature, then each field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType
from urllib.parse import parse_qs

from dashboard.forges import bitbucket, gitea, github, gitlab
from dashboard.forges.errors import ForgeError, UnknownSender
from dashboard.forges.events import ForgeKind, WebhookDelivery
from dashboard.forges.json_fields import parse_object

# A push of a thousand commits with the files of each has a few megabytes.
LARGEST_BODY = 8 * 1024 * 1024
IDENTITY = re.compile(r"[\x21-\x7e]{8,100}")
FORM = "application/x-www-form-urlencoded"

# Each has `check_signature`, `delivery_identity`, `read_events` and REPOSITORY_FIELD.
KINDS: dict[str, ModuleType] = {
    ForgeKind.GITHUB: github,
    ForgeKind.GITLAB: gitlab,
    ForgeKind.GITEA: gitea,
    ForgeKind.BITBUCKET: bitbucket,
}


def read_delivery(kind: str, headers: Mapping[str, str], body: bytes, secret: str) -> WebhookDelivery:
    """What a request says. Raises ForgeError, with a status and one sentence, for any that isn't right."""
    known = {name.lower(): value for name, value in headers.items()}
    if len(body) > LARGEST_BODY:
        raise ForgeError(413, f"A delivery has {LARGEST_BODY} bytes at most.")
    if not secret:
        raise UnknownSender(401, "No delivery is taken without a secret.")
    module = KINDS[kind]
    module.check_signature(known, secret, body)
    identity = module.delivery_identity(known, body)
    if not IDENTITY.fullmatch(identity):
        raise ForgeError(400, "The delivery has no identity of 8 to 100 printable characters.")
    payload = parse_object(payload_text(known, body))
    events = module.read_events(known, payload)
    return WebhookDelivery(identity, events, payload.repository(module.REPOSITORY_FIELD, default=""))


def payload_text(headers: Mapping[str, str], body: bytes) -> bytes | str:
    """The JSON of a body. GitHub and Gitea send it as a form's field `payload` where nobody chose JSON."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return body
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=10, strict_parsing=True)
    except ValueError:
        raise ForgeError(400, "The form must have a field payload.") from None
    return fields.get("payload", [""])[0]
