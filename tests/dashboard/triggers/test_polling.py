"""New commits and pull requests of which no hook tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from dashboard import dispatch, runs, triggers
from dashboard.forges.events import Action, PullRequestEvent
from dashboard.forges.signals import pull_request_received
from dashboard.models import Commit, ForgeConnection, Project, RepositoryPoll, Run, Trigger
from dashboard.triggers import polling
from dashboard.triggers.reading_commits import read_newest_commits
from tests.dashboard.conftest import MANIFEST, Repository
from tests.dashboard.forges.conftest import OpenStandIn, connection_to
from tests.dashboard.forges.conftest import open_stand_in as open_stand_in
from tests.dashboard.forges.payloads import read_example
from tests.dashboard.forges.stand_ins import Forced, StandIn

pytestmark = pytest.mark.django_db
PULLS = "GET /repos/{owner}/{repo}/pulls"
PULL = "GET /repos/{owner}/{repo}/pulls/{pull_number}"


def let_time_pass(minutes: int) -> None:
    earlier = timedelta(minutes=minutes)
    for poll in RepositoryPoll.objects.all():
        RepositoryPoll.objects.filter(pk=poll.pk).update(next_at=poll.next_at - earlier)


def look_again(project: Project) -> None:
    """One look, as the sweep and the worker do it."""
    polling.claim_poll(project)
    triggers.poll_project(project.pk)


def resolve_all() -> None:
    for pk in Trigger.objects.filter(state="received").values_list("pk", flat=True):
        runs.resolve_trigger(pk)


def test_each_project_is_looked_at_when_its_time_has_come(polled: Project, sent: list[Any]) -> None:
    Project.objects.create(slug="quiet", repository="/nowhere")
    Project.objects.create(slug="imported", repository="", poll_minutes=1)
    triggers.send_due_polls()
    triggers.send_due_polls()
    assert sent == [(dispatch.POLL, polled.pk)]
    let_time_pass(6)
    triggers.send_due_polls()
    assert sent == [(dispatch.POLL, polled.pk)] * 2


def test_a_look_is_one_callers(polled: Project) -> None:
    assert [polling.claim_poll(polled), polling.claim_poll(polled)] == [True, False]


def test_what_is_pushed_is_requested(polled: Project, tmp_path: Path, repository: Repository) -> None:
    """A real push into a bare repository without hooks."""
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", str(repository.folder), str(bare))
    repository.git("remote", "add", "origin", str(bare))
    Project.objects.update(repository=str(bare))
    look_again(polled)
    first = repository.git("rev-parse", "HEAD")
    assert Trigger.objects.get().revisions == {"commit": first}
    repository.commit("One", paceline_toml=MANIFEST + "\n")
    last = repository.commit("Two")
    repository.git("push", "--quiet", "origin", "main")
    look_again(polled)
    resolve_all()
    newest = Trigger.objects.latest("pk")
    assert (newest.source, newest.revisions) == ("poll", {"range": f"{first}..{last}"})
    assert newest.detail == "6 runs at 2 commits."
    assert (Commit.objects.count(), Run.objects.count()) == (3, 9)


def test_nothing_new_asks_for_nothing(polled: Project) -> None:
    for _ in range(3):
        look_again(polled)
    assert Trigger.objects.count() == 1


@pytest.mark.parametrize("told", ["commit", "range"])
def test_what_a_hook_told_is_not_doubled(polled: Project, repository: Repository, told: str) -> None:
    tip = repository.git("rev-parse", "HEAD")
    revisions = {"commit": tip} if told == "commit" else {"range": f"{'a' * 40}..{tip}"}
    polled.triggers.create(source="hook", revisions=revisions)
    look_again(polled)
    assert not Trigger.objects.filter(source="poll").exists()
    after = repository.commit("More")
    look_again(polled)
    assert Trigger.objects.get(source="poll").revisions == {"range": f"{tip}..{after}"}


def test_what_a_hook_tells_later_is_measured_once(polled: Project, repository: Repository) -> None:
    look_again(polled)
    tip = repository.git("rev-parse", "HEAD")
    polled.triggers.create(source="forge", revisions={"commit": tip})
    resolve_all()
    assert (Trigger.objects.count(), Run.objects.count()) == (2, 3)


def test_a_refused_request_is_asked_again_by_the_next_commit(polled: Project, repository: Repository) -> None:
    tip = repository.git("rev-parse", "HEAD")
    polled.triggers.create(source="hook", revisions={"commit": tip}, state="refused")
    look_again(polled)
    assert Trigger.objects.get(source="poll").revisions == {"commit": tip}


def test_rewritten_history_is_followed(polled: Project, repository: Repository) -> None:
    look_again(polled)
    repository.git("commit", "--quiet", "--amend", "--message", "Another word")
    look_again(polled)
    resolve_all()
    assert [trigger.detail for trigger in Trigger.objects.order_by("pk")][-1] == "3 runs at 1 commit."


def test_a_failure_is_told_once_and_the_pauses_grow(polled: Project, repository: Repository) -> None:
    moved = repository.folder.rename(repository.folder.with_name("moved"))
    pauses = []
    for _ in range(8):
        let_time_pass(1000)
        look_again(polled)
        pauses.append(round((RepositoryPoll.objects.get().next_at - timezone.now()).total_seconds() / 60))
    assert pauses == [10, 20, 40, 80, 160, 320, 360, 360]
    trigger = Trigger.objects.get()
    assert (trigger.source, trigger.state) == ("poll", "refused")
    assert "can't be asked: git ls-remote failed" in trigger.detail
    moved.rename(repository.folder)
    look_again(polled)
    assert RepositoryPoll.objects.get().failures == 0
    assert Trigger.objects.latest("pk").state == "received"


def test_a_branch_that_is_gone_is_told(polled: Project) -> None:
    Project.objects.update(branch="gone")
    look_again(polled)
    assert Trigger.objects.get().detail.endswith("has no branch 'gone'.")


def test_a_project_that_is_no_longer_polled_is_left_alone(polled: Project) -> None:
    Project.objects.update(poll_minutes=0)
    triggers.poll_project(polled.pk)
    assert not Trigger.objects.exists()


def test_the_mirror_may_be_missing(polled: Project) -> None:
    assert not polled.mirror.folder.exists()
    look_again(polled)
    assert Trigger.objects.exists()


@pytest.fixture
def github(polled: Project, open_stand_in: OpenStandIn) -> StandIn:
    """A connected GitHub that has one open pull request."""
    stand_in = open_stand_in("github")
    connection_to(stand_in, polled).save()
    stand_in.responses[PULLS] = [read_example("github/pull-request-opened")["pull_request"]]
    return stand_in


@pytest.fixture
def heard() -> Iterator[list[PullRequestEvent]]:
    events: list[PullRequestEvent] = []

    def hear(sender: object, event: PullRequestEvent, **_: Any) -> None:
        events.append(event)

    pull_request_received.connect(hear)
    yield events
    pull_request_received.disconnect(hear)


def test_pull_requests_are_told_as_they_change(
    polled: Project, github: StandIn, heard: list[PullRequestEvent]
) -> None:
    look_again(polled)
    look_again(polled)
    (request,) = github.responses[PULLS]
    request["head"]["sha"] = "d" * 40
    look_again(polled)
    github.responses |= {PULLS: [], PULL: {**request, "state": "closed", "merged": True}}
    look_again(polled)
    look_again(polled)
    told = [(event.number, event.action) for event in heard]
    assert told == [(2, Action.OPENED), (2, Action.UPDATED), (2, Action.MERGED)]
    assert ForgeConnection.objects.get().open_pull_requests == {}


def test_a_pull_request_that_is_gone_is_forgotten(
    polled: Project, github: StandIn, heard: list[PullRequestEvent]
) -> None:
    look_again(polled)
    github.responses[PULLS] = []
    look_again(polled)
    assert (len(heard), ForgeConnection.objects.get().open_pull_requests) == (1, {})


def test_a_forge_that_limits_requests_is_left_alone_until_then(polled: Project, github: StandIn) -> None:
    github.forced = [Forced(429, {"Retry-After": "3000"})]
    look_again(polled)
    waits = RepositoryPoll.objects.filter(forge_next_at__gt=Now() + timedelta(minutes=45), forge_failures=0)
    assert (waits.count(), Trigger.objects.filter(state="refused").count()) == (1, 0)
    asked = len(github.requests)
    look_again(polled)
    assert len(github.requests) == asked


def test_a_forge_that_says_no_holds_up_no_commit(polled: Project, github: StandIn) -> None:
    github.forced = [Forced(401, {}, b'{"message": "Bad credentials"}')] * 3
    for _ in range(3):
        RepositoryPoll.objects.update(forge_next_at=None)
        look_again(polled)
    poll = RepositoryPoll.objects.get()
    assert (poll.failures, poll.forge_failures) == (0, 3)
    assert poll.next_at < poll.forge_next_at


def test_a_forge_that_says_no_is_told_once(polled: Project, github: StandIn) -> None:
    github.forced = [Forced(401, {}, b'{"message": "Bad credentials"}')] * 2
    look_again(polled)
    look_again(polled)
    (refused,) = Trigger.objects.filter(state="refused")
    assert refused.detail.startswith("GitHub answered 401: Bad credentials. Its token is wrong")
    assert Trigger.objects.exclude(state="refused").count() == 1


def test_commits_that_were_only_read_are_asked_for(polled: Project, repository: Repository) -> None:
    """By the next look, as if nobody had read them."""
    look_again(polled)
    resolve_all()
    first = repository.git("rev-parse", "HEAD")
    newer = [repository.commit(subject) for subject in ("One", "Two")]
    asked_before = Run.objects.count()
    assert read_newest_commits(polled, 40) == 3
    assert (Trigger.objects.count(), Run.objects.count()) == (1, asked_before)
    look_again(polled)
    resolve_all()
    newest = Trigger.objects.latest("pk")
    assert (newest.source, newest.revisions) == ("poll", {"range": f"{first}..{newer[-1]}"})
    measured = Run.objects.filter(commit__hash__in=newer).values_list("commit__hash", flat=True)
    assert set(measured) == set(newer)


def test_a_person_who_asks_for_the_newest_alone_takes_nothing_from_the_look(
    polled: Project, repository: Repository
) -> None:
    look_again(polled)
    resolve_all()
    newer = [repository.commit(subject) for subject in ("One", "Two", "Three")]
    read_newest_commits(polled, 40)
    polled.triggers.create(source="web", revisions={"commit": newer[-1]})
    resolve_all()
    for _ in range(2):
        look_again(polled)
        resolve_all()
    assert Trigger.objects.filter(source="poll").count() == 2
    runs_of = Run.objects.filter(commit__hash__in=newer)
    assert {sha: runs_of.filter(commit__hash=sha).count() for sha in newer} == dict.fromkeys(newer, 3)
    # One that follows at once leaves nothing out.
    after = repository.commit("Four")
    polled.triggers.create(source="web", revisions={"commit": after})
    resolve_all()
    look_again(polled)
    assert Trigger.objects.filter(source="poll").count() == 2
