"""Bitbucket Cloud: what its webhooks say, and its REST API 2.0. It has no ref of a pull request."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
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
from dashboard.forges.json_fields import FULL_HASH, LONGEST_COMMENT, Fields
from dashboard.forges.json_fields import LONGEST_TITLE as LONGEST_READ_TITLE
from dashboard.forges.signatures import check_hex

API_ADDRESS = "https://api.bitbucket.org/2.0"
WEB_ADDRESS = "https://bitbucket.org/"
NAME = "Bitbucket"
SIGNATURE = "X-Hub-Signature"
REPOSITORY_FIELD = "repository.full_name"
MOST_CHANGES = 1000
LONGEST_KEY = 40
ACTIONS = {
    "pullrequest:created": Action.OPENED,
    "pullrequest:updated": Action.UPDATED,
    "pullrequest:fulfilled": Action.MERGED,
    "pullrequest:rejected": Action.CLOSED,
}
COMMENT = "pullrequest:comment_created"
OPEN_STATES = {
    "OPEN": Action.UPDATED,
    "MERGED": Action.MERGED,
    "DECLINED": Action.CLOSED,
    "SUPERSEDED": Action.CLOSED,
}
STATES = {
    StatusState.PENDING: "INPROGRESS",
    StatusState.SUCCESS: "SUCCESSFUL",
    StatusState.NEUTRAL: "SUCCESSFUL",
    StatusState.FAILURE: "FAILED",
    StatusState.ERROR: "FAILED",
}
ROLES = {"admin": Role.ADMIN, "write": Role.WRITE, "read": Role.READ}
# Nicknames aren't unique: an account is its UUID.
ACCOUNT = re.compile(r"\{[0-9a-fA-F-]{36}\}")
PAGE = {"pagelen": 50}


def check_signature(headers: Mapping[str, str], secret: str, body: bytes) -> None:
    check_hex(headers, SIGNATURE, secret, body, "sha256=")


def delivery_identity(headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG001
    """The header's, which Bitbucket keeps when it tries again. A body can't tell: one that says the same push
    a second time, after it was taken back, is the same."""
    return headers.get("x-request-uuid", "")


def read_events(headers: Mapping[str, str], payload: Fields) -> tuple[Event, ...]:
    name = headers.get("x-event-key", "")
    if name == "repo:push":
        changes = payload.items("push.changes", MOST_CHANGES)
        return tuple(read_change(change) for change in changes) or (OtherEvent(name),)
    if name == COMMENT:
        return (read_comment(payload),)
    if name in ACTIONS:
        return (read_pull_request(payload.inside("pullrequest"), ACTIONS[name]),)
    return (OtherEvent(name[:100]),)


def read_change(change: Fields) -> PushEvent:
    """One ref of a push: `old` is null where it is new, `new` where it was deleted."""
    side = change.inside("new" if change.has("new") else "old")
    folder = "tags" if side.get("type") in ("tag", "annotated_tag") else "heads"
    before = change.commit("old.target.hash", optional=True)
    return PushEvent(
        ref=f"refs/{folder}/{side.ref('name')}",
        before="" if change.flag("forced") else before,
        after=change.commit("new.target.hash", optional=True),
        created=not change.has("old"),
        deleted=not change.has("new"),
    )


def read_pull_request(request: Fields, action: Action) -> PullRequestEvent:
    source, target = request.inside("source"), request.inside("destination")
    merged = action == Action.MERGED
    return PullRequestEvent(
        number=request.number("id"),
        action=action,
        title=request.text("title", LONGEST_READ_TITLE),
        author=author_name(request, "author"),
        url=request.url("links.html.href"),
        head_commit=source.commit("commit.hash", short=True),
        head_ref=source.ref("branch.name"),
        base_ref=target.ref("branch.name"),
        base_commit=target.commit("commit.hash", optional=True, short=True),
        # The repository of a fork may be gone.
        is_fork=source.get("repository.full_name") != target.get("repository.full_name"),
        head_repository=source.repository("repository.full_name", default=""),
        is_draft=request.flag("draft"),
        merge_commit=request.commit("merge_commit.hash", optional=True, short=True) if merged else "",
        author_account=request.text("author.uuid", default=""),
        updated_at=request.moment("updated_on"),
    )


def read_comment(payload: Fields) -> CommentEvent:
    comment = payload.inside("comment")
    return CommentEvent(
        number=payload.number("pullrequest.id"),
        author=author_name(payload, "actor"),
        body=comment.text("content.raw", LONGEST_COMMENT),
        is_pull_request=True,
        comment_id=comment.number("id"),
        url=comment.url("links.html.href"),
        author_account=payload.text("actor.uuid", default=""),
    )


def author_name(fields: Fields, path: str) -> str:
    nickname = fields.text(f"{path}.nickname", default="")
    return nickname or fields.text(f"{path}.display_name", default="")


class BitbucketForge:
    """A repository of Bitbucket Cloud."""

    def __init__(self, client: Client, repository: str) -> None:
        self.client, self.repository = client, repository
        self.base = f"/repositories/{repository}"
        self._own_account: str | None = None

    def check_access(self) -> None:
        self.client.get_object(self.base)

    def set_status(self, commit: str, state: StatusState, description: str, url: str, context: str) -> None:
        body = {
            "type": "build",
            "key": status_key(context),
            "name": context,
            "state": STATES[state],
            "description": status_description(state, description),
            "url": url,
        }
        self.client.send_object("POST", f"{self.base}/commit/{commit}/statuses/build", body)

    def post_comment(self, number: int, markdown: str) -> int:
        with readable_answers(NAME):
            made = self.client.send_object("POST", self.comments(number), comment_body(markdown))
            return made.number("id")

    def edit_comment(self, number: int, comment_id: int, markdown: str) -> None:
        self.client.send_object("PUT", f"{self.comments(number)}/{comment_id}", comment_body(markdown))

    def comments(self, number: int) -> str:
        return f"{self.base}/pullrequests/{number}/comments"

    def find_own_comment(self, number: int, marker: str) -> int | None:
        with readable_answers(NAME):
            for comment in self.client.get_pages(self.comments(number), {"sort": "created_on", **PAGE}):
                text = comment.text("content.raw", LONGEST_COMMENT, default="")
                if marker in text and not comment.flag("deleted") and self.is_own(comment):
                    return comment.number("id")
        return None

    def is_own(self, written: Fields, author: str = "user") -> bool:
        if self._own_account is None:
            self._own_account = self.client.get_object("/user").text("uuid")
        return bool(written.get(f"{author}.uuid") == self._own_account)

    def role_of(self, account: str) -> Role:
        """By the account's UUID alone."""
        if not ACCOUNT.fullmatch(account):
            return Role.NONE
        workspace, name = self.repository.split("/", 1)
        path = f"/workspaces/{quote(workspace, safe='')}/permissions/repositories/{quote(name, safe='')}"
        with readable_answers(NAME):
            for row in self.client.get_pages(path, {"q": f'user.uuid="{account}"', **PAGE}, most=1):
                if row.get("user.uuid") == account:
                    return ROLES.get(row.text("permission"), Role.NONE)
        return Role.NONE

    def list_open_pull_requests(self) -> list[PullRequestEvent]:
        rows = self.client.get_pages(f"{self.base}/pullrequests", {"state": "OPEN", **PAGE})
        with readable_answers(NAME):
            return [read_pull_request(row, Action.UPDATED) for row in rows]

    def read_pull_request(self, number: int) -> PullRequestEvent:
        with readable_answers(NAME):
            request = self._abbreviated_request(number)
            return replace(
                request,
                head_commit=self._full_head(request),
                base_commit=self._full_commit(request.base_commit),
                merge_commit=self._full_commit(request.merge_commit),
            )

    def _abbreviated_request(self, number: int) -> PullRequestEvent:
        row = self.client.get_object(f"{self.base}/pullrequests/{number}")
        return read_pull_request(row, OPEN_STATES.get(row.text("state"), Action.OTHER))

    def _full_head(self, request: PullRequestEvent) -> str:
        """From the pull request's own list: the repository doesn't know a fork's commits by their hash."""
        if FULL_HASH.fullmatch(request.head_commit):
            return request.head_commit
        path = f"{self.base}/pullrequests/{request.number}/commits"
        with unless_missing():
            rows = [row.commit("hash") for row in self.client.get_pages(path, PAGE)]
            found = [commit for commit in rows if commit.startswith(request.head_commit)]
            # Two commits of the same 12 digits are made within minutes: neither is known to be the head.
            if len(found) == 1:
                return found[0]
        return request.head_commit

    def _full_commit(self, commit: str) -> str:
        """Of the repository's own; empty where it has none such any more."""
        if not commit or FULL_HASH.fullmatch(commit):
            return commit
        with unless_missing():
            found = self.client.get_object(f"{self.base}/commit/{quote(commit, safe='')}").commit("hash")
            return found if found.startswith(commit) else ""
        return ""

    def locate_head(self, number: int) -> HeadLocation:
        """The head's branch: there is no ref of a pull request, and a fork's branch is in the fork alone."""
        with readable_answers(NAME):
            request = self._abbreviated_request(number)
        ref = f"refs/heads/{request.head_ref}"
        if not request.is_fork:
            return HeadLocation(ref)
        names = request.head_repository.split("/")
        if len(names) != 2 or {".", ".."} & set(names):
            raise ForgeRefused(
                f"The fork that pull request {number} comes from is gone, or the token may not see it."
            )
        return HeadLocation(ref, request.head_repository)

    def create_issue(self, title: str, markdown: str) -> Issue:
        body = {"type": "issue", "title": title[:LONGEST_TITLE], "content": {"raw": markdown}}
        with readable_answers(NAME):
            made = self.client.send_object("POST", f"{self.base}/issues", body)
            return Issue(made.number("id"), made.url("links.html.href"))

    def find_own_issue(self, marker: str) -> int | None:
        with readable_answers(NAME):
            for issue in self.client.get_pages(
                f"{self.base}/issues", {"sort": "-created_on", **PAGE}, most=1
            ):
                text = issue.text("content.raw", LONGEST_COMMENT, default="")
                if marker in text and self.is_own(issue, "reporter"):
                    return issue.number("id")
        return None

    def comment_issue(self, number: int, markdown: str) -> None:
        body = {"type": "issue_comment", "content": {"raw": markdown}}
        self.client.send_object("POST", f"{self.base}/issues/{number}/comments", body)

    def set_issue_open(self, number: int, *, is_open: bool) -> None:
        body = {"type": "issue", "state": "open" if is_open else "resolved"}
        self.client.send_object("PUT", f"{self.base}/issues/{number}", body)


@contextmanager
def unless_missing() -> Iterator[None]:
    """What a forge no longer knows leaves things as they are."""
    try:
        yield
    except ForgeRefused as error:
        if error.status != 404:
            raise


def comment_body(markdown: str) -> dict[str, object]:
    return {"type": "pullrequest_comment", "content": {"raw": markdown}}


def status_key(context: str) -> str:
    """The context, or where it is too long for a key, its digest."""
    return context if len(context) <= LONGEST_KEY else hashlib.sha1(context.encode()).hexdigest()  # noqa: S324
