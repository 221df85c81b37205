"""The example payloads, signed and sent as each forge does."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from dashboard.forges.deliveries import read_delivery
from dashboard.forges.events import WebhookDelivery
from dashboard.forges.signatures import digest_hex, standard_digest

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "forges"
SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes ...").decode()
# File of each example -> the event's name in the forge's header.
EXAMPLES = {
    "github/ping": "ping",
    "github/push": "push",
    "github/push-with-new-branch": "push",
    "github/pull-request-opened": "pull_request",
    "github/pull-request-synchronize": "pull_request",
    "github/pull-request-closed": "pull_request",
    "github/pull-request-labeled": "pull_request",
    "github/issue-comment-created": "issue_comment",
    "gitlab/push": "Push Hook",
    "gitlab/merge-request": "Merge Request Hook",
    "gitlab/comment-merge-request": "Note Hook",
    "gitea/push": "push",
    "gitea/pull-request": "pull_request",
    "gitea/pull-request-comment": "pull_request_comment",
    "bitbucket/repo-push": "repo:push",
    "bitbucket/pull-request-created": "pullrequest:created",
    "bitbucket/pull-request-updated": "pullrequest:updated",
    "bitbucket/pull-request-merged": "pullrequest:fulfilled",
}


def read_example(name: str) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return whole


def change_field(payload: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a path with dots; a list is gone into by its index."""
    *before, last = path.split(".")
    place: Any = payload
    for name in before:
        place = place[int(name)] if isinstance(place, list) else place[name]
    place[int(last) if isinstance(place, list) else last] = value


@dataclass
class Sender:
    """Sends what a forge of a kind would send."""

    kind: str
    secret: str = field(default=SECRET, repr=False)

    def headers(self, event: str, body: bytes) -> dict[str, str]:
        identity = str(uuid4())
        made = {
            "github": {
                "X-GitHub-Event": event,
                "X-GitHub-Delivery": identity,
                "X-Hub-Signature-256": f"sha256={digest_hex(self.secret, body)}",
            },
            "gitlab": {
                "X-Gitlab-Event": event,
                "X-Gitlab-Event-UUID": identity,
                "Idempotency-Key": identity,
                "X-Gitlab-Token": self.secret,
            },
            "gitea": {
                "X-Gitea-Event": event,
                "X-Gitea-Delivery": identity,
                "X-GitHub-Event": event,
                "X-Gitea-Signature": digest_hex(self.secret, body),
            },
            "bitbucket": {
                "X-Event-Key": event,
                "X-Request-UUID": identity,
                "X-Hub-Signature": f"sha256={digest_hex(self.secret, body)}",
            },
        }
        return made[self.kind]

    def read(self, event: str, payload: dict[str, Any]) -> WebhookDelivery:
        body = json.dumps(payload).encode()
        return read_delivery(self.kind, self.headers(event, body), body, self.secret)


def signed_by_gitlab(body: bytes, *, stamp: float | None = None, secret: str = SECRET) -> dict[str, str]:
    """The headers of GitLab's newer signature."""
    identity, made = str(uuid4()), str(int(stamp or time.time()))
    signature = base64.b64encode(standard_digest(secret, identity, made, body)).decode()
    return {
        "webhook-id": identity,
        "webhook-timestamp": made,
        "webhook-signature": f"v1,{signature}",
    }


def deliver_example(name: str, **changes: Any) -> WebhookDelivery:
    """What an example says, with the values at some paths (`__` for the dots) changed."""
    payload = read_example(name)
    for path, value in changes.items():
        change_field(payload, path.replace("__", "."), value)
    return Sender(name.partition("/")[0]).read(EXAMPLES[name], payload)
