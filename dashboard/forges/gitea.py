"""Gitea and Forgejo: webhooks and an API that are modelled on GitHub's, with some words of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import ClassVar

from dashboard.forges.events import Event, OtherEvent
from dashboard.forges.forge_api import Role, StatusState
from dashboard.forges.github import GitHubForge, read_comment, read_pull_request_event, read_push
from dashboard.forges.json_fields import Fields
from dashboard.forges.signatures import check_hex

API_PATH = "/api/v1"
REPOSITORY_FIELD = "repository.full_name"
# Forgejo sends both, with the same content.
SIGNATURES = ("X-Forgejo-Signature", "X-Gitea-Signature")
EVENT_NAMES = ("x-forgejo-event", "x-gitea-event")
PULL_REQUESTS = {"pull_request", "pull_request_sync"}
COMMENTS = {"issue_comment", "pull_request_comment"}


def check_signature(headers: Mapping[str, str], secret: str, body: bytes) -> None:
    name = next((name for name in SIGNATURES if name.lower() in headers), SIGNATURES[1])
    check_hex(headers, name, secret, body)


def delivery_identity(headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG001
    """The body's own, as for GitHub: the headers aren't signed."""
    return hashlib.sha256(body).hexdigest()


def read_events(headers: Mapping[str, str], payload: Fields) -> tuple[Event, ...]:
    name = next((headers[name] for name in EVENT_NAMES if name in headers), "")
    return (read_event(name, payload),)


def read_event(name: str, payload: Fields) -> Event:
    if name == "push":
        return read_push(payload)
    if name in PULL_REQUESTS and payload.has("pull_request"):
        return read_pull_request_event(payload)
    if name in COMMENTS and payload.text("action") == "created" and payload.has("comment"):
        return read_comment(payload)
    return OtherEvent(name[:100])


class GiteaForge(GitHubForge):
    """A repository of Gitea or Forgejo."""

    NAME = "Gitea"
    STATES: ClassVar[Mapping[StatusState, str]] = GitHubForge.STATES
    ROLES: ClassVar[Mapping[str, Role]] = {**GitHubForge.ROLES, "owner": Role.ADMIN}
    PAGES: ClassVar[Mapping[str, int]] = {"limit": 50}
    # The newest first.
    NEWEST: ClassVar[Mapping[str, str]] = {"state": "all", "type": "issues"}
    # It answers all comments at once.
    COMMENT_PAGES: ClassVar[Mapping[str, int]] = {}
