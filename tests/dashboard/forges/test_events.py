from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dashboard.forges.errors import ForgeError
from dashboard.forges.events import (
    Action,
    CommentEvent,
    ForgeKind,
    OtherEvent,
    PingEvent,
    PullRequestEvent,
    PushEvent,
)
from dashboard.forges.json_fields import Fields
from dashboard.models import ForgeConnection
from tests.dashboard.forges.payloads import Sender, deliver_example, read_example


def pull_request(name: str, **changes: Any) -> PullRequestEvent:
    event = deliver_example(name, **changes).event
    assert isinstance(event, PullRequestEvent)
    return event


def test_the_kinds_of_the_table_are_those_that_are_read() -> None:
    assert ForgeConnection.Kind.values == [kind.value for kind in ForgeKind]


def test_github_pushes() -> None:
    tag = deliver_example("github/push")
    assert tag.event == PushEvent(
        "refs/tags/simple-tag", "6113728f27ae82c7b1a177c8d03f9e96e0adf246", "", deleted=True
    )
    made = deliver_example("github/push-with-new-branch").event
    after = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
    assert made == PushEvent("refs/heads/master", "", after, created=True)
    assert tag.repository == "Codertocat/Hello-World"


def test_a_forced_push_of_github_begins_nowhere() -> None:
    event = deliver_example("github/push", forced=True, after="a" * 40, deleted=False).event
    assert event == PushEvent("refs/tags/simple-tag", "", "a" * 40)


def test_a_pull_request_of_github() -> None:
    assert pull_request("github/pull-request-opened") == PullRequestEvent(
        number=2,
        action=Action.OPENED,
        title="Update the README with new information.",
        author="Codertocat",
        url="https://github.com/Codertocat/Hello-World/pull/2",
        head_commit="ec26c3e57ca3a959ca5aad62de7213c562f8c821",
        head_ref="changes",
        base_ref="master",
        base_commit="f95f852bd8fca8fcc58a9a2d6c842781e32a215e",
        is_fork=False,
        head_repository="Codertocat/Hello-World",
        is_draft=False,
        merge_commit="",
        author_account="Codertocat",
        updated_at=datetime(2019, 5, 15, 15, 20, 33, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("name", "changes", "action"),
    [
        ("github/pull-request-synchronize", {}, Action.UPDATED),
        ("github/pull-request-closed", {}, Action.CLOSED),
        ("github/pull-request-closed", {"pull_request__merged": True}, Action.MERGED),
        ("github/pull-request-labeled", {}, Action.OTHER),
        ("github/pull-request-labeled", {"action": "edited"}, Action.OTHER),
        ("github/pull-request-labeled", {"action": "edited", "changes": {"base": {}}}, Action.UPDATED),
        ("github/pull-request-opened", {"action": "reopened"}, Action.OPENED),
        ("github/pull-request-opened", {"action": "ready_for_review"}, Action.UPDATED),
        ("gitlab/merge-request", {}, Action.OPENED),
        ("gitlab/merge-request", {"object_attributes__action": "merge"}, Action.MERGED),
        ("gitlab/merge-request", {"object_attributes__action": "close"}, Action.CLOSED),
        ("gitlab/merge-request", {"object_attributes__action": "approved"}, Action.OTHER),
        ("gitlab/merge-request", {"object_attributes__action": "update", "changes": {}}, Action.OTHER),
        (
            "gitlab/merge-request",
            {"object_attributes__action": "update", "object_attributes__oldrev": "a" * 40},
            Action.UPDATED,
        ),
        ("gitea/pull-request", {}, Action.OPENED),
        ("gitea/pull-request", {"action": "synchronized"}, Action.UPDATED),
        ("gitea/pull-request", {"action": "closed", "pull_request__merged": True}, Action.MERGED),
        ("bitbucket/pull-request-created", {}, Action.OPENED),
        ("bitbucket/pull-request-updated", {}, Action.UPDATED),
        ("bitbucket/pull-request-merged", {}, Action.MERGED),
    ],
)
def test_what_happened_is_one_of_five(name: str, changes: dict[str, Any], action: Action) -> None:
    assert pull_request(name, **changes).action == action


def test_a_merged_pull_request_names_what_it_became() -> None:
    changes = {"pull_request__merged": True, "pull_request__merge_commit_sha": "b" * 40}
    assert pull_request("github/pull-request-closed", **changes).merge_commit == "b" * 40
    assert pull_request("bitbucket/pull-request-merged").merge_commit == "764413d85e29"
    assert pull_request("bitbucket/pull-request-created").merge_commit == ""


def test_a_fork_is_known_as_one_also_when_it_is_gone() -> None:
    assert pull_request("github/pull-request-opened", pull_request__head__repo=None).is_fork
    assert pull_request("gitlab/merge-request", object_attributes__source_project_id=99).is_fork
    assert pull_request("bitbucket/pull-request-created", pullrequest__source__repository=None).is_fork
    assert pull_request("gitea/pull-request").is_fork


@pytest.mark.parametrize(("head_ref", "is_fork"), [("topic", False), ("refs/pull/2/head", True)])
def test_a_proposal_without_a_branch_is_as_a_fork(head_ref: str, is_fork: bool) -> None:
    """Gitea takes it from whoever may read, by a push to refs/for/main: its head is of the repository."""
    own = read_example("gitea/pull-request")["pull_request"]["base"]["repo"]
    changes = {"pull_request__head__repo": own, "pull_request__head__ref": head_ref}
    assert pull_request("gitea/pull-request", **changes).is_fork is is_fork


def test_a_merge_request_of_gitlab_names_its_author_if_it_can() -> None:
    event = pull_request("gitlab/merge-request")
    assert (event.number, event.author, event.author_account) == (1, "", "id:51")
    assert (event.head_commit, event.base_commit) == ("da1560886d4f094c3e6c9ef40349f7d38b5d27d7", "")
    assert pull_request("gitlab/merge-request", object_attributes__author_id=1).author == "root"


def test_a_pull_request_of_bitbucket_has_short_hashes() -> None:
    event = pull_request("bitbucket/pull-request-created")
    assert (event.head_commit, event.base_commit) == ("d3022fc0ca3d", "ce5965ddd289")
    assert event.author_account == "{a54f16da-24e9-4d7f-a3a7-b1ba2cd98aa3}"


@pytest.mark.parametrize(
    ("name", "number", "author", "account"),
    [
        ("gitlab/comment-merge-request", 1, "root", "id:1"),
        ("gitea/pull-request-comment", 2, "example", "example"),
    ],
)
def test_comments_on_pull_requests(name: str, number: int, author: str, account: str) -> None:
    event = deliver_example(name).event
    assert isinstance(event, CommentEvent)
    assert (event.number, event.author, event.author_account) == (number, author, account)
    assert event.is_pull_request


def test_a_comment_of_github_is_on_an_issue_or_a_pull_request() -> None:
    event = deliver_example("github/issue-comment-created").event
    assert isinstance(event, CommentEvent)
    assert (event.number, event.comment_id, event.is_pull_request) == (1, 492700400, False)
    assert event.body.startswith("You are totally right!")
    asked = deliver_example("github/issue-comment-created", issue__pull_request={"url": "x"}).event
    assert isinstance(asked, CommentEvent)
    assert asked.is_pull_request


def test_a_comment_of_bitbucket() -> None:
    payload = read_example("bitbucket/pull-request-created")
    payload["comment"] = {"id": 17, "content": {"raw": "/paceline compare"}, "links": {}}
    event = Sender("bitbucket").read("pullrequest:comment_created", payload).event
    assert event == CommentEvent(
        1, "emmap1", "/paceline compare", True, 17, "", "{a54f16da-24e9-4d7f-a3a7-b1ba2cd98aa3}"
    )


def test_a_changed_or_deleted_comment_is_none() -> None:
    assert deliver_example("github/issue-comment-created", action="edited").event == OtherEvent(
        "issue_comment"
    )
    edited = deliver_example("gitlab/comment-merge-request", object_attributes__action="update")
    assert edited.event == OtherEvent("note")


def test_a_push_of_bitbucket_may_move_several_branches() -> None:
    payload = read_example("bitbucket/repo-push")
    (change,) = payload["push"]["changes"]
    payload["push"]["changes"] += [{**change, "new": None}, {**change, "old": None, "created": True}]
    before, after = change["old"]["target"]["hash"], change["new"]["target"]["hash"]
    events = Sender("bitbucket").read("repo:push", payload).events
    ref = "refs/heads/name-of-branch"
    assert events == (
        PushEvent(ref, before, after),
        PushEvent(ref, before, "", deleted=True),
        PushEvent(ref, "", after, created=True),
    )


def test_a_ping_and_what_nobody_waits_for() -> None:
    assert deliver_example("github/ping").event == PingEvent()
    assert Sender("github").read("star", {"action": "created"}).event == OtherEvent("star")
    assert Sender("gitlab").read("Pipeline Hook", {"object_kind": "pipeline"}).event == OtherEvent("pipeline")


@pytest.mark.parametrize(
    ("name", "path", "value", "sentence"),
    [
        ("github/push", "before", "HEAD", "before must be a commit's full hash."),
        ("github/push", "after", "A" * 40, "after must be a commit's full hash."),
        ("github/push", "after", ["a"], "after must be a commit's full hash."),
        ("github/push", "ref", "refs/heads/a\nb", "ref must be the name of a branch or a tag."),
        ("github/push", "ref", "--upload-pack=x", "ref must be the name of a branch or a tag."),
        ("github/push", "forced", "yes", "forced must be true or false."),
        ("github/pull-request-opened", "pull_request__number", -1, "pull_request.number must be a whole"),
        ("github/pull-request-opened", "pull_request__number", True, "pull_request.number must be a whole"),
        ("github/pull-request-opened", "pull_request__head", "x", "pull_request.head must be an object."),
        ("gitlab/merge-request", "object_attributes__iid", 1.5, "object_attributes.iid must be a whole"),
        ("bitbucket/repo-push", "push__changes", {}, "push.changes must be a list of objects."),
        ("bitbucket/repo-push", "push__changes", [{}] * 2000, "push.changes must be a list of 1000 objects"),
        ("github/push", "repository__full_name", "../x y", "repository.full_name must be a repository"),
    ],
)
def test_a_wrong_field_is_named(name: str, path: str, value: object, sentence: str) -> None:
    with pytest.raises(ForgeError) as caught:
        deliver_example(name, **{path: value})
    assert caught.value.status == 400
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2015-05-17 18:21:36 UTC", datetime(2015, 5, 17, 18, 21, 36, tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("2015-05-17T18:21:36", None),
        ("yesterday", None),
    ],
)
def test_a_time_is_one_of_a_calendar(text: str, moment: datetime | None) -> None:
    """PostgreSQL keeps more than can be read again: such a row would stop whoever reads all of them."""
    assert Fields({"at": text}).moment("at") == moment


def test_what_no_database_holds_is_replaced() -> None:
    event = deliver_example("github/pull-request-opened", pull_request__title="a\0b\ud800c").event
    assert isinstance(event, PullRequestEvent)
    assert event.title == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
