"""What a forge tells: frozen, checked, and the same for every kind of forge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ForgeKind(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"  # Forgejo too.
    BITBUCKET = "bitbucket"


# Which events to tick for a webhook, as each forge calls them.
EVENT_NAMES = {
    ForgeKind.GITHUB: "Pushes, Pull requests, Issue comments; content type application/json",
    ForgeKind.GITLAB: "Push events, Merge request events, Comments",
    ForgeKind.GITEA: "Push, Pull Request, Pull Request Synchronized and Comment; type Gitea or Forgejo",
    ForgeKind.BITBUCKET: "Repository push; pull request created, updated, merged, declined, comment created",
}


class Action(StrEnum):
    """What happened to a pull request, as far as it matters for its measurements."""

    OPENED = "opened"  # Or reopened.
    UPDATED = "updated"  # New commits, another target, or no longer a draft.
    CLOSED = "closed"
    MERGED = "merged"
    OTHER = "other"  # Labels, reviews, titles.


@dataclass(frozen=True)
class PushEvent:
    """A ref was moved from `before` to `after`. `before` is empty where it is new or was forced elsewhere, as
    far as the forge says so; `after` is empty where it was deleted."""

    ref: str
    before: str
    after: str
    created: bool = False
    deleted: bool = False


@dataclass(frozen=True)
class PullRequestEvent:
    """`base_commit` is the tip of the target, `merge_commit` what the merge made; each may be empty.

    Bitbucket abbreviates all three to 12 digits: `Forge.read_pull_request` has the whole ones. `is_fork`: who
    proposes it needn't be able to write to the repository.
    `author` is for people, `author_account` is what `Forge.role_of` takes.
    """

    number: int
    action: Action
    title: str
    author: str
    url: str
    head_commit: str
    head_ref: str
    base_ref: str
    base_commit: str
    is_fork: bool
    head_repository: str
    is_draft: bool
    merge_commit: str
    author_account: str = ""
    # When its forge changed it last: a delivery may come late. None: not known.
    updated_at: datetime | None = None


@dataclass(frozen=True)
class CommentEvent:
    """A new comment on an issue or on a pull request. `author_account` is what `Forge.role_of` takes."""

    number: int
    author: str
    body: str
    is_pull_request: bool
    comment_id: int
    url: str
    author_account: str = ""


@dataclass(frozen=True)
class PingEvent:
    """The forge tries whether anybody is there."""


@dataclass(frozen=True)
class OtherEvent:
    """Something that nobody here waits for."""

    name: str


Event = PushEvent | PullRequestEvent | CommentEvent | PingEvent | OtherEvent


@dataclass(frozen=True)
class WebhookDelivery:
    """What one request of a forge says. `identity` is the same for each repetition of the request, and no
    other's. Bitbucket tells all branches of a push in one request, so there may be several events.
    `repository` is empty where it isn't said."""

    identity: str
    events: tuple[Event, ...]
    repository: str = ""

    @property
    def event(self) -> Event:
        """The first, which is the only one save for Bitbucket's pushes."""
        return self.events[0]
