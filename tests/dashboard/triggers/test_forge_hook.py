"""What a forge tells, from the request to the runs that it asks for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection as database
from django.http import HttpResponse
from django.test import Client

from dashboard import runs
from dashboard.forges.events import CommentEvent, PullRequestEvent
from dashboard.forges.signals import comment_received, pull_request_received
from dashboard.models import Commit, ForgeConnection, ForgeDelivery, Project, Run, Trigger
from dashboard.runs import planning
from dashboard.secrets import LostSecret
from tests.dashboard.conftest import MANIFEST, Repository
from tests.dashboard.forges.payloads import EXAMPLES, SECRET, Sender, change_field, read_example

pytestmark = pytest.mark.django_db
BEFORE, AFTER = "a" * 40, "b" * 40
REPOSITORIES = {
    "github": "Codertocat/Hello-World",
    "gitlab": "mike/diaspora",
    "gitea": "example/example",
    "bitbucket": "team_name/repo_name",
}
PUSHES = {
    "github": "github/push",
    "gitlab": "gitlab/push",
    "gitea": "gitea/push",
    "bitbucket": "bitbucket/repo-push",
}


def example_of_project(name: str) -> dict[str, Any]:
    """The examples are of several repositories; this one is of the connected one."""
    payload = read_example(name)
    change_field(payload, "repository.full_name", REPOSITORIES[name.partition("/")[0]])
    return payload


class Hooked:
    """A project that is connected with a forge, and the forge's webhook."""

    def __init__(self, project: Project, kind: str = "github") -> None:
        self.project, self.sender = project, Sender(kind)
        self.connection = ForgeConnection.objects.create(
            project=project,
            kind=kind,
            api_address="https://forge.example",
            repository=REPOSITORIES[kind],
            token="a token",
            webhook_secret=SECRET,
        )

    def push(self, before: str = BEFORE, after: str = AFTER, ref: str = "refs/heads/main") -> dict[str, Any]:
        kind = self.sender.kind
        payload = read_example(PUSHES[kind])
        if kind == "bitbucket":
            change = payload["push"]["changes"][0]
            change["new"] |= {"name": ref.removeprefix("refs/heads/"), "target": {"hash": after}}
            change["old"]["target"]["hash"] = before
        else:
            payload |= {"before": before, "after": after, "ref": ref}
            payload |= (
                {"created": not before.strip("0"), "deleted": not after.strip("0")}
                if kind == "github"
                else {}
            )
        return payload

    def send(self, event: str, payload: dict[str, Any], **headers: str) -> HttpResponse:
        body = json.dumps(payload).encode()
        return Client(enforce_csrf_checks=True).post(
            f"/hooks/{self.project.slug}/forge/",
            body,
            content_type="application/json",
            headers=self.sender.headers(event, body) | headers,
        )

    def send_push(self, **push: str) -> HttpResponse:
        return self.send(EXAMPLES[PUSHES[self.sender.kind]], self.push(**push))


@pytest.fixture
def hooked(project: Project) -> Hooked:
    return Hooked(project)


@pytest.mark.parametrize("kind", PUSHES)
def test_a_push_asks_for_all_of_its_commits(project: Project, kind: str) -> None:
    response = Hooked(project, kind).send_push()
    trigger = Trigger.objects.get()
    assert (response.status_code, response.json()["trigger"]) == (202, trigger.pk)
    assert (trigger.source, trigger.revisions) == ("forge", {"range": f"{BEFORE}..{AFTER}"})


def test_a_new_branch_asks_for_its_newest_commit(hooked: Hooked) -> None:
    hooked.send_push(before="0" * 40)
    assert Trigger.objects.get().revisions == {"commit": AFTER}


@pytest.mark.parametrize(
    ("push", "message"),
    [
        ({"ref": "refs/tags/v1"}, "Only refs/heads/main is measured."),
        ({"ref": "refs/heads/topic"}, "Only refs/heads/main is measured."),
        ({"after": "0" * 40}, "main was deleted: there is nothing to measure."),
    ],
)
def test_what_is_not_measured_is_said(hooked: Hooked, push: dict[str, str], message: str) -> None:
    response = hooked.send_push(**push)
    assert (response.status_code, response.json()) == (202, {"message": message})
    assert not Trigger.objects.exists()


def test_of_several_branches_the_projects_is_measured(project: Project) -> None:
    hooked = Hooked(project, "bitbucket")
    payload = hooked.push(ref="refs/heads/topic")
    payload["push"]["changes"] += hooked.push()["push"]["changes"]
    assert hooked.send("repo:push", payload).json()["trigger"] == Trigger.objects.get().pk


def test_a_delivery_has_its_effect_once(hooked: Hooked) -> None:
    assert hooked.send_push().status_code == 202
    response = hooked.send_push()
    assert (response.status_code, response.json()) == (
        200,
        {"message": "This delivery was received before."},
    )
    assert Trigger.objects.count() == 1


def test_two_projects_may_hear_of_the_same_push(hooked: Hooked) -> None:
    other = Hooked(Project.objects.create(slug="other", repository="/nowhere"))
    assert (hooked.send_push().status_code, other.send_push().status_code) == (202, 202)


def test_a_ping_is_answered(hooked: Hooked) -> None:
    response = hooked.send("ping", example_of_project("github/ping"))
    assert (response.status_code, response.json()) == (202, {"message": "snakes hears its forge."})


def test_an_organizations_hook_may_speak_of_another_repository(hooked: Hooked) -> None:
    payload = hooked.push()
    change_field(payload, "repository.full_name", "codertocat/Elsewhere")
    response = hooked.send("push", payload)
    assert response.status_code == 422
    sentence = "snakes is connected with Codertocat/Hello-World, not with codertocat/Elsewhere."
    assert response.json() == {"error": sentence}


@pytest.mark.parametrize(
    ("secret", "status", "sentence"),
    [
        (SECRET, 401, "isn't signed with the secret"),
        (LostSecret("gAAAA"), 401, "connect_forge --renew"),
    ],
)
def test_who_does_not_know_the_secret_is_refused(
    hooked: Hooked, secret: str, status: int, sentence: str
) -> None:
    hooked.connection.webhook_secret = secret
    hooked.connection.save()
    hooked.sender.secret = "another"
    response = hooked.send_push()
    assert response.status_code == status
    assert sentence in response.json()["error"]
    assert not ForgeDelivery.objects.exists()


def test_a_project_without_a_forge_takes_nothing(project: Project, client: Client) -> None:
    assert client.post("/hooks/snakes/forge/", b"{}", content_type="application/json").status_code == 401


def test_only_post_is_answered(hooked: Hooked, client: Client) -> None:
    response = client.get("/hooks/snakes/forge/")
    assert (response.status_code, response["Allow"]) == (405, "POST")


@pytest.fixture
def heard(hooked: Hooked) -> Iterator[list[Any]]:
    """What the receivers are told."""
    events: list[Any] = []

    def hear(sender: object, project: Project, event: object, **_: Any) -> None:
        events.append((project.slug, event))

    for signal in (pull_request_received, comment_received):
        signal.connect(hear)
    yield events
    for signal in (pull_request_received, comment_received):
        signal.disconnect(hear)


def test_pull_requests_and_comments_are_handed_on(hooked: Hooked, heard: list[Any]) -> None:
    first = hooked.send("pull_request", example_of_project("github/pull-request-opened"))
    second = hooked.send("issue_comment", example_of_project("github/issue-comment-created"))
    assert first.json() == {"message": "Pull request 2 is known as opened."}
    assert second.json() == {"message": "The comment on 1 was read."}
    assert [(slug, type(event)) for slug, event in heard] == [
        ("snakes", PullRequestEvent),
        ("snakes", CommentEvent),
    ]


def test_a_receiver_that_fails_leaves_the_delivery_to_be_sent_again(hooked: Hooked) -> None:
    def fail(sender: object, **_: Any) -> None:
        raise ValueError("no")

    pull_request_received.connect(fail)
    try:
        with pytest.raises(ValueError, match="no"):
            hooked.send("pull_request", example_of_project("github/pull-request-opened"))
    finally:
        pull_request_received.disconnect(fail)
    assert not ForgeDelivery.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_hundred_at_once_are_one(tracked: Project, repository: Repository) -> None:
    hooked = Hooked(tracked)
    push = hooked.push(repository.git("rev-parse", "HEAD~"), repository.git("rev-parse", "HEAD"))
    barrier = threading.Barrier(10)

    def send_ten(_: int) -> list[int]:
        barrier.wait()
        try:
            return [hooked.send("push", push).status_code for _ in range(10)]
        finally:
            database.close()

    with ThreadPoolExecutor(10) as pool:
        statuses = [status for answers in pool.map(send_ten, range(10)) for status in answers]
    assert sorted(statuses) == [200] * 99 + [202]
    runs.resolve_trigger(Trigger.objects.get().pk)
    assert (Commit.objects.count(), Run.objects.count()) == (1, 3)


def resolve_push(hooked: Hooked, before: str, after: str) -> Trigger:
    trigger = Trigger.objects.get(pk=hooked.send_push(before=before, after=after).json()["trigger"])
    runs.resolve_trigger(trigger.pk)
    trigger.refresh_from_db()
    return trigger


def test_a_large_push_is_thinned_and_says_so(
    tracked: Project, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MOST_PUSHED", 4)
    before = repository.git("rev-parse", "HEAD")
    commits = repository.commit_line(*[(f"Change {number}", {}) for number in range(40)])
    trigger = resolve_push(Hooked(tracked), before, commits[-1])
    assert trigger.detail == (
        "12 runs at 4 commits. The push has 40 commits: 4 of them, evenly spread, stand for all."
    )


def test_rewritten_history_is_measured_at_its_newest_commit(tracked: Project, repository: Repository) -> None:
    hooked = Hooked(tracked)
    first, before = repository.git("rev-parse", "HEAD~"), repository.git("rev-parse", "HEAD")
    resolve_push(hooked, first, before)
    repository.git("commit", "--quiet", "--amend", "--message", "Another word")
    after = repository.git("rev-parse", "HEAD")
    assert resolve_push(hooked, before, after).detail == "3 runs at 1 commit."
    assert resolve_push(hooked, "c" * 40, after).detail == "3 runs at 1 commit, asked for before."
    assert set(Commit.objects.values_list("hash", flat=True)) == {before, after}


@pytest.mark.parametrize("mark", ["[skip bench]", "[Bench Skip]"])
def test_a_push_may_say_that_it_is_not_measured(tracked: Project, repository: Repository, mark: str) -> None:
    before = repository.git("rev-parse", "HEAD")
    repository.commit("Work", paceline_toml=MANIFEST + "\n")
    after = repository.commit(f"Write a word\n\nIt changes no code. {mark}")
    trigger = resolve_push(Hooked(tracked), before, after)
    assert (trigger.state, Run.objects.count()) == ("resolved", 0)
    assert trigger.detail == f"Nothing is measured: the message of {after[:10]} says so."


def test_the_poll_knows_what_a_webhook_told(hooked: Hooked, heard: list[Any]) -> None:
    opened = example_of_project("github/pull-request-opened")
    hooked.send("pull_request", opened)
    hooked.connection.refresh_from_db()
    head = opened["pull_request"]["head"]["sha"]
    assert hooked.connection.open_pull_requests == {"2": [head, "master", False]}
    hooked.send("pull_request", example_of_project("github/pull-request-closed"))
    hooked.connection.refresh_from_db()
    assert hooked.connection.open_pull_requests == {}
