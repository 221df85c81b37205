"""GitHub: what its webhooks say, and its REST API in version 2022-11-28. Gitea's are modelled on them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from dashboard.forges.client import Client, readable_answers
from dashboard.forges.errors import ForgeRefused
from dashboard.forges.events import (
    Action,
    CommentEvent,
    Event,
    OtherEvent,
    PingEvent,
    PullRequestEvent,
    PushEvent,
)
from dashboard.forges.forge_api import (
    LONGEST_TITLE,
    HeadLocation,
    Issue,
    Role,
    StatusState,
    status_description,
)
from dashboard.forges.json_fields import LONGEST_COMMENT, Fields
from dashboard.forges.json_fields import LONGEST_TITLE as LONGEST_READ_TITLE
from dashboard.forges.signatures import check_hex

API_ADDRESS = "https://api.github.com"
SIGNATURE = "X-Hub-Signature-256"
REPOSITORY_FIELD = "repository.full_name"
ACTIONS = {
    "opened": Action.OPENED,
    "reopened": Action.OPENED,
    "synchronize": Action.UPDATED,
    "synchronized": Action.UPDATED,  # As Gitea spells it.
    "ready_for_review": Action.UPDATED,
    "converted_to_draft": Action.UPDATED,
    "closed": Action.CLOSED,
}
PAGE = 100


def check_signature(headers: Mapping[str, str], secret: str, body: bytes) -> None:
    check_hex(headers, SIGNATURE, secret, body, "sha256=")


def delivery_identity(headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG001
    """The body's own: X-GitHub-Delivery isn't signed, so whoever repeats a request could change it. Each body
    holds the time of its event."""
    return hashlib.sha256(body).hexdigest()


def read_events(headers: Mapping[str, str], payload: Fields) -> tuple[Event, ...]:
    return (read_event(headers.get("x-github-event", ""), payload),)


def read_event(name: str, payload: Fields) -> Event:
    if name == "ping":
        return PingEvent()
    if name == "push":
        return read_push(payload)
    if name == "pull_request":
        return read_pull_request_event(payload)
    if name == "issue_comment" and payload.text("action") == "created":
        return read_comment(payload)
    return OtherEvent(name[:100])


def read_push(payload: Fields) -> PushEvent:
    before, after = payload.commit("before", optional=True), payload.commit("after", optional=True)
    return PushEvent(
        ref=payload.ref("ref"),
        before="" if payload.flag("forced") else before,
        after=after,
        created=payload.flag("created", default=not before),
        deleted=payload.flag("deleted", default=not after),
    )


def read_pull_request_event(payload: Fields) -> PullRequestEvent:
    name = payload.text("action")
    action = ACTIONS.get(name, Action.OTHER)
    if name == "edited" and payload.has("changes.base"):
        action = Action.UPDATED
    return read_pull_request(payload.inside("pull_request"), action)


def read_pull_request(request: Fields, action: Action) -> PullRequestEvent:
    merged = request.flag("merged", default=request.has("merged_at"))
    head, base = request.inside("head"), request.inside("base")
    # The fork of a pull request may be gone. To Gitea's `refs/for/BRANCH` whoever may read pushes a proposal,
    # whose head the repository itself has, on no branch: nobody with the right to write has seen it either.
    head_ref = head.ref("ref")
    from_fork = head.get("repo.full_name") != base.get("repo.full_name") or head_ref.startswith("refs/")
    return PullRequestEvent(
        number=request.number("number"),
        action=Action.MERGED if action == Action.CLOSED and merged else action,
        title=request.text("title", LONGEST_READ_TITLE),
        author=request.text("user.login", default=""),
        url=request.url("html_url"),
        head_commit=head.commit("sha"),
        head_ref=head_ref,
        base_ref=base.ref("ref"),
        base_commit=base.commit("sha", optional=True),
        is_fork=from_fork,
        head_repository=head.repository("repo.full_name", default=""),
        is_draft=request.flag("draft"),
        merge_commit=request.commit("merge_commit_sha", optional=True) if merged else "",
        author_account=request.text("user.login", default=""),
        updated_at=request.moment("updated_at"),
    )


def read_comment(payload: Fields) -> CommentEvent:
    return CommentEvent(
        number=payload.number("issue.number"),
        author=payload.text("comment.user.login"),
        body=payload.text("comment.body", LONGEST_COMMENT),
        is_pull_request=payload.has("issue.pull_request") or payload.flag("is_pull"),
        comment_id=payload.number("comment.id"),
        url=payload.url("comment.html_url"),
        author_account=payload.text("comment.user.login"),
    )


class GitHubForge:
    """A repository of GitHub. `app_id` is set where an app acts, not an account."""

    NAME = "GitHub"
    STATES: ClassVar[Mapping[StatusState, str]] = {
        StatusState.PENDING: "pending",
        StatusState.SUCCESS: "success",
        StatusState.NEUTRAL: "success",
        StatusState.FAILURE: "failure",
        StatusState.ERROR: "error",
    }
    ROLES: ClassVar[Mapping[str, Role]] = {
        "admin": Role.ADMIN,
        "write": Role.WRITE,
        "read": Role.READ,
        "none": Role.NONE,
    }
    PAGES: ClassVar[Mapping[str, int]] = {"per_page": PAGE}
    COMMENT_PAGES: ClassVar[Mapping[str, int]] = PAGES
    NEWEST: ClassVar[Mapping[str, str]] = {"state": "all", "sort": "created", "direction": "desc"}

    def __init__(self, client: Client, repository: str, app_id: str = "") -> None:
        self.client, self.repository, self.app_id = client, repository, app_id
        self.base = f"/repos/{repository}"
        self._own_account: int | None = None

    def check_access(self) -> None:
        self.client.get_object(self.base)

    def set_status(self, commit: str, state: StatusState, description: str, url: str, context: str) -> None:
        body = {
            "state": self.STATES[state],
            "description": status_description(state, description),
            "target_url": url,
            "context": context,
        }
        self.client.send_object("POST", f"{self.base}/statuses/{commit}", body)

    def post_comment(self, number: int, markdown: str) -> int:
        with readable_answers(self.NAME):
            path = f"{self.base}/issues/{number}/comments"
            return self.client.send_object("POST", path, {"body": markdown}).number("id")

    def edit_comment(self, number: int, comment_id: int, markdown: str) -> None:  # noqa: ARG002
        path = f"{self.base}/issues/comments/{comment_id}"
        self.client.send_object("PATCH", path, {"body": markdown})

    def find_own_comment(self, number: int, marker: str) -> int | None:
        with readable_answers(self.NAME):
            for comment in self.client.get_pages(f"{self.base}/issues/{number}/comments", self.COMMENT_PAGES):
                # Anybody can write the marker.
                if marker in comment.text("body", LONGEST_COMMENT, default="") and self.is_own(comment):
                    return comment.number("id")
        return None

    def is_own(self, comment: Fields) -> bool:
        if self.app_id:
            return str(comment.get("performed_via_github_app.id")) == self.app_id
        if self._own_account is None:
            self._own_account = self.client.get_object("/user").number("id")
        return bool(comment.get("user.id") == self._own_account)

    def role_of(self, account: str) -> Role:
        path = f"{self.base}/collaborators/{quote(account, safe='')}/permission"
        try:
            with readable_answers(self.NAME):
                return self.ROLES.get(self.client.get_object(path).text("permission"), Role.NONE)
        except ForgeRefused as error:
            if error.status == 404:
                return Role.NONE
            raise

    def list_open_pull_requests(self) -> list[PullRequestEvent]:
        rows = self.client.get_pages(f"{self.base}/pulls", {"state": "open", **self.PAGES})
        with readable_answers(self.NAME):
            return [read_pull_request(row, Action.UPDATED) for row in rows]

    def read_pull_request(self, number: int) -> PullRequestEvent:
        with readable_answers(self.NAME):
            row = self.client.get_object(f"{self.base}/pulls/{number}")
            action = Action.CLOSED if row.text("state") == "closed" else Action.UPDATED
            return read_pull_request(row, action)

    def locate_head(self, number: int) -> HeadLocation:
        return HeadLocation(f"refs/pull/{number}/head")

    def create_issue(self, title: str, markdown: str) -> Issue:
        with readable_answers(self.NAME):
            body = {"title": title[:LONGEST_TITLE], "body": markdown}
            made = self.client.send_object("POST", f"{self.base}/issues", body)
            return Issue(made.number("number"), made.url("html_url"))

    def find_own_issue(self, marker: str) -> int | None:
        with readable_answers(self.NAME):
            for issue in self.client.get_pages(f"{self.base}/issues", {**self.NEWEST, **self.PAGES}, most=1):
                if marker in issue.text("body", LONGEST_COMMENT, default="") and self.is_own(issue):
                    return issue.number("number")
        return None

    def comment_issue(self, number: int, markdown: str) -> None:
        self.post_comment(number, markdown)

    def set_issue_open(self, number: int, *, is_open: bool) -> None:
        body = {"state": "open" if is_open else "closed"}
        self.client.send_object("PATCH", f"{self.base}/issues/{number}", body)
