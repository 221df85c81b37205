"""The request of a git hook: signed over its whole body, good for a few minutes and for one use.

The body is JSON: `delivery` (an identity of its own), `timestamp` (Unix seconds), `ref`, `commit`, and
`before`, the branch's commit before a push, or empty. The header Paceline-Signature holds `sha256=` and the
body's HMAC-SHA256 in hexadecimal; its key is the project's hook secret.
"""

from __future__ import annotations

import hmac
import json
import re
import time
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from dashboard.forges.signatures import digest_hex
from dashboard.models import Project, Trigger
from dashboard.projects.names import find_named_project
from dashboard.repositories import FULL_HASH
from dashboard.secrets import is_lost
from dashboard.triggers.posted_bodies import (
    REPEATED,
    HookError,
    RepeatedDelivery,
    read_posted_body,
    refuse_request,
)
from dashboard.triggers.receiving import TriggerOrigin, receive_trigger
from dashboard.triggers.refs import ignored_ref, stored_ref

SIGNATURE = "Paceline-Signature"
NOT_SIGNED = (
    f"The signature in {SIGNATURE} isn't that of this body by a project's hook of this name: "
    "install_hook makes a new secret."
)
LARGEST_BODY = 16 * 1024
WINDOW_SECONDS = 300
# Git refuses control characters and blanks in names too.
REF = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]{1,4000}")
DELIVERY_ID = re.compile(r"[A-Za-z0-9-]{16,36}")


@dataclass(frozen=True)
class HookPush:
    """`ref` was moved to `commit`, from `before` where that is among its ancestors."""

    delivery: str
    timestamp: int
    ref: str
    commit: str
    before: str

    @property
    def revisions(self) -> dict[str, Any]:
        return {"range": f"{self.before}..{self.commit}"} if self.before else {"commit": self.commit}


@csrf_exempt
def receive_hook(request: HttpRequest, slug: str) -> JsonResponse:
    """POST only. 202 with the trigger's id; 200 with a message of a repeated one; else `error` says why."""
    try:
        project, push = authenticate_request(request, slug)
        if ignored := ignored_ref(project, push.ref):
            return JsonResponse({"ignored": ignored}, status=202)
        return JsonResponse({"trigger": from_hook(project, push).pk}, status=202)
    except RepeatedDelivery:
        return JsonResponse({"message": REPEATED}, status=200)
    except HookError as error:
        return refuse_request(error.status, str(error))


def from_hook(project: Project, push: HookPush) -> Trigger:
    # Not by its name: after a renaming a replay is still one.
    delivery = f"{project.pk}:{push.delivery}"
    origin = TriggerOrigin(Trigger.Source.HOOK, stored_ref(project, push.ref), delivery)
    try:
        return receive_trigger(project, origin, push.revisions)
    except IntegrityError:
        # No error: curl sends a push again whose answer it didn't wait for, and shows the last answer.
        raise RepeatedDelivery from None


def authenticate_request(request: HttpRequest, slug: str) -> tuple[Project, HookPush]:
    """The project and the push that its hook reports. No body is parsed before its signature holds."""
    body = read_posted_body(request, "A hook", LARGEST_BODY)
    project = find_named_project(slug)
    # All alike: a name of a private project isn't distinguished from one that is free.
    if project is None or is_lost(project.hook_secret) or not project.hook_secret:
        raise HookError(401, NOT_SIGNED)
    expected = f"sha256={digest_hex(project.hook_secret, body)}"
    # Bytes: a signature of other characters must be refused, not raise.
    if not hmac.compare_digest(expected.encode(), request.headers.get(SIGNATURE, "").encode()):
        raise HookError(401, NOT_SIGNED)
    push = parse_body(body)
    if abs(time.time() - push.timestamp) > WINDOW_SECONDS:
        raise HookError(401, f"The timestamp is more than {WINDOW_SECONDS} seconds off: check the clock.")
    return project, push


def parse_body(body: bytes) -> HookPush:
    try:
        raw = json.loads(body)
        push = HookPush(**raw)
    except (ValueError, TypeError, RecursionError):
        raise HookError(
            400, "The body must be a JSON object with delivery, timestamp, ref, commit and before."
        ) from None
    if not _is_match(push.delivery, DELIVERY_ID):
        raise HookError(400, "delivery must have 16 to 36 letters, digits or dashes.")
    if not isinstance(push.timestamp, int) or not 0 <= push.timestamp < 2**40:
        raise HookError(400, "timestamp must be Unix seconds.")
    if not _is_match(push.ref, REF):
        raise HookError(400, "ref must be the whole name of a branch or tag.")
    if not _is_match(push.commit, FULL_HASH) or not (push.before == "" or _is_match(push.before, FULL_HASH)):
        raise HookError(400, "commit must be a full hash, and before a full hash or empty.")
    return push


def _is_match(value: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
