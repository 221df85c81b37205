"""The interface of every forge: statuses, comments, issues, roles, pull requests. Each kind implements it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dashboard.forges.events import PullRequestEvent

LONGEST_DESCRIPTION = 140
LONGEST_TITLE = 250
# Before the description of a status whose state a forge doesn't have.
NO_VERDICT = "No verdict: "


class StatusState(StrEnum):
    """The state of a commit. No forge has a neutral one that lets a merge through: it is sent as a success
    whose description begins with NO_VERDICT."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"
    ERROR = "error"


class Role(StrEnum):
    """What an account may do in the repository."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True)
class Issue:
    """An issue that was created."""

    number: int
    url: str


@dataclass(frozen=True)
class HeadLocation:
    """The ref that leads to a pull request's head: of `fork`, or of the connected repository where that is
    empty."""

    ref: str
    fork: str = ""


class Forge(Protocol):
    """One repository of a forge. Each method may raise ForgeBusy, ForgeAway and ForgeRefused."""

    def check_access(self) -> None:
        """Read the repository, or raise."""

    def set_status(self, commit: str, state: StatusState, description: str, url: str, context: str) -> None:
        """Tell the state of a commit; a later one of the same `context` replaces it."""

    def post_comment(self, number: int, markdown: str) -> int:
        """Comment a pull request; the comment's id."""

    def edit_comment(self, number: int, comment_id: int, markdown: str) -> None:
        """Replace the text of a comment."""

    def find_own_comment(self, number: int, marker: str) -> int | None:
        """The id of the first comment that holds the marker and was written by this connection's account."""

    def role_of(self, account: str) -> Role:
        """What the `author_account` of an event may do here."""

    def list_open_pull_requests(self) -> list[PullRequestEvent]:
        """Each as an event UPDATED."""

    def read_pull_request(self, number: int) -> PullRequestEvent:
        """As it is now: UPDATED, CLOSED or MERGED. Its hashes are whole, save for a head that is gone."""

    def locate_head(self, number: int) -> HeadLocation:
        """Where a pull request's head can be fetched."""

    def create_issue(self, title: str, markdown: str) -> Issue: ...

    def find_own_issue(self, marker: str) -> int | None:
        """Of the newest issues the one that holds the marker and was written by this connection's account."""

    def comment_issue(self, number: int, markdown: str) -> None: ...

    def set_issue_open(self, number: int, *, is_open: bool) -> None:
        """Close an issue, or open it again; one that is so already stays so."""


def status_description(state: StatusState, description: str) -> str:
    """At most LONGEST_DESCRIPTION characters, on one line."""
    text = " ".join(description.split())
    if state == StatusState.NEUTRAL:
        text = NO_VERDICT + text
    return text if len(text) <= LONGEST_DESCRIPTION else text[: LONGEST_DESCRIPTION - 1] + "…"
