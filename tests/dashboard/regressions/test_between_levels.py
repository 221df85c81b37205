"""A step that pairs saw nowhere, and that stands, is looked for between its levels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import Channel, Commit, Delivery, Experiment, Regression
from tests.dashboard import factories
from tests.dashboard.regressions.test_proved_again import LOST, end_proof, measure_step
from tests.dashboard.shared_rows import share_rows

# Many enough before it that pairs can look well inside the level.
LATE = 10
# Commits enough behind it that a lost proof would be asked for once more.
COUNT = 32


@pytest.fixture(scope="module")
def judged_line(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What each test's `refuted_twice` is read from."""
    with share_rows(django_db_blocker, judge_line):
        yield


def judge_line() -> None:
    project = factories.create_project()
    factories.create_case(project)
    line = factories.create_commits(project, COUNT)
    # Of the first points nothing is to be said: they are judged with those behind them.
    earlier = [
        (commit, {"step_time": 0.010 * factories.run_noise(commit.position)}) for commit in line[: LATE - 2]
    ]
    factories.store_measured_runs(earlier, project.cases.get())
    measure_step(line[LATE - 2 : LATE + 3], slow_from=LATE)
    for _ in range(2):
        end_proof("refuted", ratio=1.02, low=1.0, high=1.04)
    assert Regression.objects.get().state == "refuted"


@pytest.fixture
def refuted_twice(judged_line: None, db: None) -> list[Commit]:
    """The commits behind a step at LATE that pairs saw neither at its own commits nor with one more on both
    sides.
    """
    return list(Commit.objects.select_related("project").order_by("position"))[LATE + 3 :]


def test_what_stands_is_looked_for_between_its_levels(refuted_twice: list[Commit]) -> None:
    measure_step(refuted_twice[:7], slow_from=LATE)
    assert not Experiment.objects.filter(state="requested").exists()
    measure_step(refuted_twice[7:8], slow_from=LATE)
    proof = Experiment.objects.get(state="requested")
    assert proof.base_commit.position <= LATE - 6
    assert proof.head_commit.position >= LATE + 6


def test_what_its_levels_show_is_confirmed_between_them(refuted_twice: list[Commit]) -> None:
    """Without a repository there is no commit to bisect."""
    Channel.objects.create(project=refuted_twice[0].project, kind="email", address="a@example.org")
    measure_step(refuted_twice[:8], slow_from=LATE)
    proof = Experiment.objects.get(state="requested")
    end_proof("confirmed", ratio=1.38, low=1.36, high=1.4)
    regression = Regression.objects.get()
    assert regression.state == "confirmed"
    assert (regression.last_good, regression.first_bad) == (proof.base_commit, proof.head_commit)
    assert regression.culprit is None
    assert Delivery.objects.get().regression == regression
    measure_step(refuted_twice[8:], slow_from=LATE)
    assert Experiment.objects.count() == 3


def test_a_proof_between_levels_that_was_lost_is_measured_again(refuted_twice: list[Commit]) -> None:
    measure_step(refuted_twice[:8], slow_from=LATE)
    lost = Experiment.objects.get(state="requested")
    end_proof(**LOST)
    assert Regression.objects.get().state == "refuted"
    measure_step(refuted_twice[8:17], slow_from=LATE)
    again = Experiment.objects.get(state="requested")
    assert (again.base_commit, again.head_commit) == (lost.base_commit, lost.head_commit)


def test_a_proof_between_levels_that_stays_undecided_changes_nothing(refuted_twice: list[Commit]) -> None:
    measure_step(refuted_twice[:8], slow_from=LATE)
    end_proof("undecided", reason={"code": "pairs"})
    measure_step(refuted_twice[8:], slow_from=LATE)
    assert Regression.objects.get().state == "refuted"
    assert Experiment.objects.count() == 3


def test_what_is_refuted_between_its_levels_too_stays_refuted(refuted_twice: list[Commit]) -> None:
    measure_step(refuted_twice[:8], slow_from=LATE)
    end_proof("refuted", ratio=1.01, low=0.99, high=1.03)
    measure_step(refuted_twice[8:], slow_from=LATE)
    assert Regression.objects.get().state == "refuted"
    assert Experiment.objects.count() == 3
