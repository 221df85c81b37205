"""`manage.py sentinel`: lists, pins, turns off."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from dashboard.models import Commit, Machine, Project, Sentinel
from tests.dashboard import factories
from tests.dashboard.conftest import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def commit(tracked: Project, repository: Repository) -> Commit:
    """The repository's newest commit, measured just now."""
    made = factories.create_commit(tracked, 1, name=repository.git("rev-parse", "HEAD"))
    factories.store_measured_run(
        made, factories.create_case(tracked), {"step_time": 0.01}, finished_at=timezone.now()
    )
    Machine.objects.update(seen_at=timezone.now())
    return made


def run_sentinel(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("sentinel", "snakes", *arguments)
    return capsys.readouterr().out


def test_a_commit_is_pinned_and_listed(commit: Commit, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run_sentinel(capsys, "--commit", "main")
        == f"{commit} is the sentinel of 1 pair of case and machine.\n"
    )
    pinned = Sentinel.objects.get()
    assert (pinned.commit, pinned.by_hand) == (commit, True)
    assert run_sentinel(capsys).splitlines() == [
        "Sentinels of snakes are on; 1 is pinned.",
        f"snake_dqn on bench-1: {commit}, by hand, measured 1 time",
    ]


def test_they_are_turned_off_and_on(commit: Commit, capsys: pytest.CaptureFixture[str]) -> None:
    assert "aren't measured any more" in run_sentinel(capsys, "--off")
    assert not Project.objects.get().sentinels
    run_sentinel(capsys, "--on")
    assert Project.objects.get().sentinels


@pytest.mark.parametrize(
    ("revision", "sentence"), [("nowhere", "has no commit 'nowhere'"), ("main", "No case of snakes")]
)
def test_what_can_not_be_pinned_is_refused(commit: Commit, revision: str, sentence: str) -> None:
    Machine.objects.update(seen_at=None)
    with pytest.raises(CommandError, match=sentence):
        call_command("sentinel", "snakes", "--commit", revision)
