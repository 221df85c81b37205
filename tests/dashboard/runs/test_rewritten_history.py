from __future__ import annotations

from typing import Any

import pytest

from dashboard import dispatch, repositories, runs
from dashboard.models import Commit, Project, Run
from dashboard.repositories import DETACHED
from tests.dashboard.conftest import MANIFEST, Repository
from tests.dashboard.factories import create_commit

pytestmark = pytest.mark.django_db
Sent = list[tuple[Any, ...]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    calls: Sent = []
    monkeypatch.setattr(dispatch, "send_task", lambda *call: calls.append(call))
    return calls


def resolve_newest(project: Project, source: str = "hook", **revisions: str) -> Commit:
    trigger = project.triggers.create(source=source, revisions=revisions)
    runs.resolve_trigger(trigger.pk)
    return trigger.runs.latest("pk").commit


def rewritten_calls(sent: Sent) -> Sent:
    return [call for call in sent if call[0] == dispatch.HISTORY_REWRITTEN]


def test_an_amended_commit_leaves_the_line(tracked: Project, repository: Repository, sent: Sent) -> None:
    abandoned = resolve_newest(tracked)
    repository.git("commit", "--quiet", "--amend", "--message", "Add a better manifest")
    amended = resolve_newest(tracked)
    abandoned.refresh_from_db()
    assert (abandoned.branch, abandoned.left_branch) == (DETACHED, "main")
    assert (amended.branch, amended.position) == ("main", abandoned.position)
    states = {run.state for run in amended.runs.all()}
    assert states == {Run.State.REQUESTED}
    ended = {(run.state, run.reason) for run in abandoned.runs.all()}
    assert ended == {("cancelled", "Its commit is no longer on main, whose history was rewritten.")}
    assert rewritten_calls(sent) == [(dispatch.HISTORY_REWRITTEN, tracked.pk, [abandoned.pk], ["main"])]


def test_what_was_measured_stays_measured(tracked: Project, repository: Repository, sent: Sent) -> None:
    abandoned = resolve_newest(tracked)
    abandoned.runs.update(state=Run.State.DONE)
    repository.git("commit", "--quiet", "--amend", "--message", "Add a better manifest")
    resolve_newest(tracked)
    assert {run.state for run in abandoned.runs.all()} == {Run.State.DONE}


def test_a_commit_that_another_branch_holds_goes_there(
    tracked: Project, repository: Repository, sent: Sent
) -> None:
    moved = resolve_newest(tracked)
    repository.git("branch", "experimental")
    repository.git("commit", "--quiet", "--amend", "--message", "Add a better manifest")
    resolve_newest(tracked)
    moved.refresh_from_db()
    assert (moved.branch, moved.left_branch) == ("experimental", "")
    assert {run.state for run in moved.runs.all()} == {Run.State.REQUESTED}
    assert rewritten_calls(sent) == [
        (dispatch.HISTORY_REWRITTEN, tracked.pk, [moved.pk], ["experimental", "main"])
    ]


def test_a_commit_returns_with_its_branch(tracked: Project, repository: Repository, sent: Sent) -> None:
    first = resolve_newest(tracked)
    repository.git("commit", "--quiet", "--amend", "--message", "Add a better manifest")
    second = resolve_newest(tracked)
    repository.git("reset", "--quiet", "--hard", first.hash)
    assert resolve_newest(tracked) == first
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.branch, first.left_branch) == ("main", "")
    assert (second.branch, second.left_branch) == (DETACHED, "main")
    assert rewritten_calls(sent)[-1] == (
        dispatch.HISTORY_REWRITTEN,
        tracked.pk,
        [first.pk, second.pk],
        ["main"],
    )


def test_who_names_a_lost_commit_leaves_it_to_be_followed(
    tracked: Project, repository: Repository, sent: Sent
) -> None:
    abandoned = resolve_newest(tracked)
    repository.git("commit", "--quiet", "--amend", "--message", "Add a better manifest")
    tracked.mirror.fetch()
    facts = repositories.read_commits(tracked.mirror, [abandoned.hash])
    assert runs.get_or_create_commits(tracked, facts) == {abandoned.hash: abandoned}
    abandoned.refresh_from_db()
    assert (abandoned.branch, abandoned.left_branch) == ("main", "")
    resolve_newest(tracked)
    abandoned.refresh_from_db()
    assert (abandoned.branch, abandoned.left_branch) == (DETACHED, "main")
    assert {run.state for run in abandoned.runs.all()} == {Run.State.CANCELLED}


def test_what_is_lost_costs_later_triggers_no_walk(
    tracked: Project, repository: Repository, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_newest(tracked)
    repository.git("commit", "--quiet", "--amend", "--message", "Add a better manifest")
    resolve_newest(tracked)
    monkeypatch.setattr(repositories, "locate_commits", None)
    repository.commit("Go on", paceline_toml=MANIFEST + "\n")
    assert resolve_newest(tracked).subject == "Go on"


def test_a_refused_trigger_follows_too(tracked: Project, repository: Repository, sent: Sent) -> None:
    abandoned = resolve_newest(tracked)
    (repository.folder / "paceline.toml").write_text("nonsense")
    repository.git("commit", "--quiet", "--all", "--amend", "--message", "Break the manifest")
    trigger = tracked.triggers.create(source="hook")
    runs.resolve_trigger(trigger.pk)
    trigger.refresh_from_db()
    abandoned.refresh_from_db()
    assert (trigger.state, abandoned.left_branch) == ("refused", "main")


def test_a_history_that_grows_moves_nothing(tracked: Project, repository: Repository, sent: Sent) -> None:
    unknown = create_commit(tracked, 7)
    resolve_newest(tracked)
    repository.commit("Go on", paceline_toml=MANIFEST + "\n")
    resolve_newest(tracked)
    # A commit that the repository never had came with an imported history.
    unknown.refresh_from_db()
    assert unknown.branch == "main"
    assert rewritten_calls(sent) == []
    assert not Run.objects.exclude(state=Run.State.REQUESTED).exists()


def test_a_branch_beside_is_followed_while_it_waits(
    tracked: Project, repository: Repository, sent: Sent
) -> None:
    repository.git("checkout", "--quiet", "-b", "faster")
    repository.commit("Try", notes_txt="1")
    waiting = resolve_newest(tracked, commit="faster")
    repository.git("commit", "--quiet", "--amend", "--message", "Try again")
    resolve_newest(tracked, commit="main")
    waiting.refresh_from_db()
    assert (waiting.branch, waiting.left_branch) == (DETACHED, "faster")
    assert {run.state for run in waiting.runs.all()} == {Run.State.CANCELLED}


def test_a_deleted_branch_keeps_its_commits(tracked: Project, repository: Repository, sent: Sent) -> None:
    """A branch is deleted once it is merged, squashed or not: what it measured is told of it still."""
    repository.git("checkout", "--quiet", "-b", "faster")
    repository.commit("Try", notes_txt="1")
    waiting = resolve_newest(tracked, commit="faster")
    repository.git("checkout", "--quiet", "main")
    repository.git("branch", "-D", "faster")
    resolve_newest(tracked)
    waiting.refresh_from_db()
    assert (waiting.branch, waiting.left_branch) == ("faster", "")
    assert {run.state for run in waiting.runs.all()} == {Run.State.REQUESTED}
