"""Which points of a long history thin out: of one history, that each test thins by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from dashboard import retention
from dashboard.models import Commit, Point, Project, Run, Series
from tests.dashboard import factories
from tests.dashboard.retention.histories import KEEP_A_DAY, measure_values, points_of
from tests.dashboard.shared_rows import share_rows
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db
# Thinned, and judged.
NAMES = ("cpu_utilization", "step_time")


@pytest.fixture(scope="module")
def measured_line(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What each test's `history` is read from."""
    levels = factories.noisy_levels((60, 0.010))
    with share_rows(
        django_db_blocker, lambda: measure_values(factories.create_project(policy=KEEP_A_DAY), levels)
    ):
        yield


@pytest.fixture
def history(measured_line: None, db: None, settings: Any) -> list[Run]:
    """Runs at the commits 0 to 59, all older than points are kept."""
    settings.PACELINE_KEEP_LEAST_DAYS = 0
    return list(Run.objects.select_related("commit__project").order_by("commit__position"))


def project_of(history: list[Run]) -> Project:
    return history[0].commit.project


def test_only_what_nothing_reads_goes(history: list[Run], client: Client) -> None:
    positions = list(range(60))
    sentence = "of runs that ended more than 1 day ago one in 4 commits keeps its point here"
    thinned, judged = (Series.objects.get(metric__name=name, phase="") for name in NAMES)
    assert sentence not in shown_text(client.get(thinned.get_absolute_url()))
    retention.prune_runs(seconds=60)
    assert sentence in shown_text(client.get(thinned.get_absolute_url()))
    assert sentence not in shown_text(client.get(judged.get_absolute_url()))
    lost = Run.objects.filter(points_thinned=True)[0]
    assert "of its values those are that something is judged by" in shown_text(
        client.get(lost.get_absolute_url())
    )
    for metric, phase in (("step_time", ""), ("peak_memory", ""), ("phase_self_time", "act")):
        assert points_of(project_of(history), metric, phase) == positions
    # The first of every four, and as many of the newest as overviews show.
    kept = [position for position in positions if position % 4 == 0 or position >= 30]
    assert (
        points_of(project_of(history), "cpu_utilization")
        == points_of(project_of(history), "phase_time", "act")
        == kept
    )


def test_a_bucket_that_is_thinned_stays_as_it_is(history: list[Run]) -> None:
    assert retention.prune_runs(seconds=60)["points"] == 22
    kept = points_of(project_of(history), "cpu_utilization")
    assert retention.prune_runs(seconds=60)["points"] == 0
    assert points_of(project_of(history), "cpu_utilization") == kept


def test_a_run_that_comes_late_thins_no_bucket_further(history: list[Run]) -> None:
    Point.objects.filter(run=history[8], series__metric__name="cpu_utilization").delete()
    retention.prune_runs(seconds=60)
    assert {9, 12}.issubset(points_of(project_of(history), "cpu_utilization"))
    assert not {10, 11}.intersection(points_of(project_of(history), "cpu_utilization"))


def test_a_disturbed_run_stands_for_no_bucket(history: list[Run]) -> None:
    Run.objects.filter(pk=history[4].pk).update(tainted=True)
    Point.objects.filter(run=history[4]).update(tainted=True)
    retention.prune_runs(seconds=60)
    assert [place for place in points_of(project_of(history), "cpu_utilization") if 4 <= place < 8] == [4, 5]


def test_branches_are_thinned_apart(history: list[Run]) -> None:
    Commit.objects.filter(pk__in=[history[place].commit_id for place in (9, 10)]).update(
        branch="topic", fork=3
    )
    retention.prune_runs(seconds=60)
    assert [place for place in points_of(project_of(history), "cpu_utilization") if 8 <= place < 12] == [8, 9]


def test_what_was_a_headline_once_keeps_its_points(history: list[Run]) -> None:
    factories.create_regression([run.commit for run in history], 20, "cpu_utilization", 20)
    retention.prune_runs(seconds=60)
    assert len(points_of(project_of(history), "cpu_utilization")) == 60
    assert len(points_of(project_of(history), "phase_time", "act")) < 60
