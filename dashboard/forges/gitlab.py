"""GitLab: what its webhooks say, and its REST API v4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from dashboard.forges.client import Client, readable_answers
from dashboard.forges.errors import ForgeRefused
from dashboard.forges.events import Action, CommentEvent, Event, OtherEvent, PullRequestEvent, PushEvent
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
from dashboard.forges.signatures import check_standard, check_token

API_ADDRESS = "https://gitlab.com/api/v4"
API_PATH = "/api/v4"
NAME = "GitLab"
REPOSITORY_FIELD = "project.path_with_namespace"
TOKEN = "X-Gitlab-Token"  # noqa: S105 - a header
# The same for each repetition of a delivery; the first is part of the newer signature.
IDENTITIES = ("webhook-id", "idempotency-key", "x-gitlab-event-uuid")
ACTIONS = {
    "open": Action.OPENED,
    "reopen": Action.OPENED,
    "close": Action.CLOSED,
    "merge": Action.MERGED,
}
OPEN_STATES = {
    "opened": Action.UPDATED,
    "locked": Action.UPDATED,
    "closed": Action.CLOSED,
    "merged": Action.MERGED,
}
STATES = {
    StatusState.PENDING: "pending",
    StatusState.SUCCESS: "success",
    StatusState.NEUTRAL: "success",
    StatusState.FAILURE: "failed",
    StatusState.ERROR: "failed",
}
# The least access level of each role, the highest first.
ROLES = ((40, Role.ADMIN), (30, Role.WRITE), (10, Role.READ))
# A user's number as an account: no user name holds a colon.
ACCOUNT = re.compile(r"id:(\d{1,15})")
PAGE = {"per_page": 100}


def check_signature(headers: Mapping[str, str], secret: str, body: bytes) -> None:
    """By the newer signature where there is one: a request with a wrong one isn't saved by its token."""
    if "webhook-signature" in headers:
        check_standard(headers, secret, body)
    else:
        check_token(headers, TOKEN, secret)


def delivery_identity(headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG001
    return next((headers[name] for name in IDENTITIES if name in headers), "")


def read_events(headers: Mapping[str, str], payload: Fields) -> tuple[Event, ...]:  # noqa: ARG001
    return (read_event(payload.text("object_kind", default=""), payload),)


def read_event(name: str, payload: Fields) -> Event:
    if name in ("push", "tag_push"):
        return read_push(payload)
    if name == "merge_request":
        return read_merge_request_event(payload)
    if name == "note" and payload.has("merge_request"):
        return read_note(payload, "merge_request.iid", is_merge_request=True)
    if name == "note" and payload.has("issue"):
        return read_note(payload, "issue.iid", is_merge_request=False)
    return OtherEvent(name[:100])


def read_push(payload: Fields) -> PushEvent:
    before, after = payload.commit("before", optional=True), payload.commit("after", optional=True)
    return PushEvent(payload.ref("ref"), before, after, created=not before, deleted=not after)


def read_merge_request_event(payload: Fields) -> PullRequestEvent:
    request = payload.inside("object_attributes")
    # The event's user is who acted, which may be somebody else than the author.
    account = author_account(request.get("author_id"))
    acted = author_account(payload.get("user.id"))
    author = payload.text("user.username", default="") if account and account == acted else ""
    return PullRequestEvent(
        number=request.number("iid"),
        action=merge_request_action(request.text("action", default=""), payload, request),
        title=request.text("title", LONGEST_READ_TITLE),
        author=author,
        url=request.url("url"),
        head_commit=request.commit("last_commit.id"),
        head_ref=request.ref("source_branch"),
        base_ref=request.ref("target_branch"),
        base_commit="",
        is_fork=request.get("source_project_id") != request.get("target_project_id"),
        head_repository=request.repository("source.path_with_namespace", default=""),
        is_draft=request.flag("draft", default=request.flag("work_in_progress")),
        merge_commit=request.commit("merge_commit_sha", optional=True),
        author_account=account,
        updated_at=request.moment("updated_at"),
    )


def merge_request_action(name: str, payload: Fields, request: Fields) -> Action:
    """An update is one where commits came, or what it is compared with has changed."""
    if name == "update":
        matters = (
            request.get("oldrev") or payload.has("changes.target_branch") or payload.has("changes.draft")
        )
        return Action.UPDATED if matters else Action.OTHER
    return ACTIONS.get(name, Action.OTHER)


def read_note(payload: Fields, number: str, *, is_merge_request: bool) -> Event:
    note = payload.inside("object_attributes")
    # GitLab's own remarks, and changes of a comment, come as notes too.
    if note.flag("system") or note.text("action", default="create") != "create":
        return OtherEvent("note")
    return CommentEvent(
        number=payload.number(number),
        author=payload.text("user.username"),
        body=note.text("note", LONGEST_COMMENT),
        is_pull_request=is_merge_request,
        comment_id=note.number("id"),
        url=note.url("url"),
        author_account=author_account(note.get("author_id")),
    )


def author_account(number: object) -> str:
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 10**15:
        return f"id:{number}"
    return ""


def read_merge_request(request: Fields, action: Action) -> PullRequestEvent:
    """A merge request as the API describes it."""
    is_fork = request.get("source_project_id") != request.get("target_project_id")
    return PullRequestEvent(
        number=request.number("iid"),
        action=action,
        title=request.text("title", LONGEST_READ_TITLE),
        author=request.text("author.username", default=""),
        url=request.url("web_url"),
        head_commit=request.commit("sha"),
        head_ref=request.ref("source_branch"),
        base_ref=request.ref("target_branch"),
        base_commit="",
        is_fork=is_fork,
        head_repository="",
        is_draft=request.flag("draft"),
        merge_commit=request.commit("merge_commit_sha", optional=True),
        author_account=author_account(request.get("author.id")),
        updated_at=request.moment("updated_at"),
    )


class GitLabForge:
    """A project of GitLab."""

    def __init__(self, client: Client, repository: str) -> None:
        self.client, self.repository = client, repository
        self.base = f"/projects/{quote(repository, safe='')}"
        self._own_account: int | None = None

    def check_access(self) -> None:
        self.client.get_object(self.base)

    def set_status(self, commit: str, state: StatusState, description: str, url: str, context: str) -> None:
        body = {
            "state": STATES[state],
            "description": status_description(state, description),
            "target_url": url,
            "name": context,
        }
        try:
            self.client.send_object("POST", f"{self.base}/statuses/{commit}", body)
        except ForgeRefused as error:
            # A commit that has the state already refuses to get it again.
            if not (error.status == 400 and "Cannot transition status" in str(error)):
                raise

    def post_comment(self, number: int, markdown: str) -> int:
        with readable_answers(NAME):
            return self.client.send_object("POST", self.notes(number), {"body": markdown}).number("id")

    def edit_comment(self, number: int, comment_id: int, markdown: str) -> None:
        self.client.send_object("PUT", f"{self.notes(number)}/{comment_id}", {"body": markdown})

    def notes(self, number: int) -> str:
        return f"{self.base}/merge_requests/{number}/notes"

    def find_own_comment(self, number: int, marker: str) -> int | None:
        query: dict[str, str | int] = {"sort": "asc", "order_by": "created_at", **PAGE}
        with readable_answers(NAME):
            for note in self.client.get_pages(self.notes(number), query):
                if marker in note.text("body", LONGEST_COMMENT, default="") and self.is_own(note):
                    return note.number("id")
        return None

    def is_own(self, note: Fields) -> bool:
        if self._own_account is None:
            self._own_account = self.client.get_object("/user").number("id")
        return bool(note.get("author.id") == self._own_account)

    def role_of(self, account: str) -> Role:
        user = self.user_number(account)
        try:
            with readable_answers(NAME):
                member = self.client.get_object(f"{self.base}/members/all/{user}") if user else None
                level = member.number("access_level") if member else 0
        except ForgeRefused as error:
            # Who is no member may still see a public project.
            if error.status != 404:
                raise
            level = 0
        return next((role for least, role in ROLES if level >= least), Role.NONE)

    def user_number(self, account: str) -> int | None:
        """The number of a user who is given by it (`id:7`), or by name; None where there is none."""
        if match := ACCOUNT.fullmatch(account):
            return int(match[1])
        with readable_answers(NAME):
            for user in self.client.get_pages("/users", {"username": account, **PAGE}, most=1):
                if user.text("username").lower() == account.lower():
                    return user.number("id")
        return None

    def list_open_pull_requests(self) -> list[PullRequestEvent]:
        rows = self.client.get_pages(f"{self.base}/merge_requests", {"state": "opened", **PAGE})
        with readable_answers(NAME):
            # One that was just opened has no commit yet.
            return [read_merge_request(row, Action.UPDATED) for row in rows if row.get("sha")]

    def read_pull_request(self, number: int) -> PullRequestEvent:
        with readable_answers(NAME):
            row = self.client.get_object(f"{self.base}/merge_requests/{number}")
            return read_merge_request(row, OPEN_STATES.get(row.text("state"), Action.OTHER))

    def locate_head(self, number: int) -> HeadLocation:
        return HeadLocation(f"refs/merge-requests/{number}/head")

    def create_issue(self, title: str, markdown: str) -> Issue:
        with readable_answers(NAME):
            body = {"title": title[:LONGEST_TITLE], "description": markdown}
            made = self.client.send_object("POST", f"{self.base}/issues", body)
            return Issue(made.number("iid"), made.url("web_url"))

    def find_own_issue(self, marker: str) -> int | None:
        query: dict[str, str | int] = {"sort": "desc", "order_by": "created_at", **PAGE}
        with readable_answers(NAME):
            for issue in self.client.get_pages(f"{self.base}/issues", query, most=1):
                if marker in issue.text("description", LONGEST_COMMENT, default="") and self.is_own(issue):
                    return issue.number("iid")
        return None

    def comment_issue(self, number: int, markdown: str) -> None:
        self.client.send_object("POST", f"{self.base}/issues/{number}/notes", {"body": markdown})

    def set_issue_open(self, number: int, *, is_open: bool) -> None:
        body = {"state_event": "reopen" if is_open else "close"}
        self.client.send_object("PUT", f"{self.base}/issues/{number}", body)
