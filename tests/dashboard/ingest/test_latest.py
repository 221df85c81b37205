"""The latest states of series: where their newest values are from, and their level 30 days before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from statistics import median

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard.ingest.latest import write_latest
from dashboard.models import Commit, Point, Series, SeriesLatest
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def growing_series(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """The key of what each test's `series` is read from."""
    with share_rows(django_db_blocker, lambda: create_growing_series().pk) as made:
        yield made


@pytest.fixture
def series(growing_series: int, db: None) -> Series:
    return Series.objects.get(pk=growing_series)


def create_growing_series() -> Series:
    """Of 40 commits, one a day, whose step time grows by a millisecond each; one of them is tainted."""
    project = builders.create_project()
    line = builders.create_commits(project, 40)
    for commit in line:
        commit.committed_at = timezone.now() - timedelta(days=39 - commit.position)
    Commit.objects.bulk_update(line, ["committed_at"])
    case = builders.create_case(project)
    runs = [builders.create_run(commit, case, tainted=commit.position == 38) for commit in line]
    metric = {"name": "step_time", "unit": "s", "better": "lower", "kind": "time", "phase": None}
    row = builders.create_series(runs[0], metric | {"headline": True, "exact": False})
    Point.objects.bulk_create(
        Point(
            series=row, run=run, position=run.commit.position, value=run.commit.position, tainted=run.tainted
        )
        for run in runs
    )
    write_latest(project, [row.pk])
    return row


def test_the_newest_values_say_where_they_were_measured(series: Series) -> None:
    latest = SeriesLatest.objects.get(pk=series.pk)
    assert latest.recent_positions == list(range(10, 40)) == [int(value) for value in latest.recent]
    machine = Point.objects.filter(series=series).latest("position").run.machine_id
    assert latest.recent_machines == [*[machine] * 28, None, machine]


def test_levels_are_those_of_five_untainted_values(series: Series) -> None:
    latest = SeriesLatest.objects.get(pk=series.pk)
    assert latest.current_value == median([39, 37, 36, 35, 34])
    assert (latest.base_value, latest.base_position) == (median([9, 8, 7, 6, 5]), 9)


def test_a_young_series_has_no_base(series: Series) -> None:
    Point.objects.filter(position__lt=20).delete()
    write_latest(series.case.project, [series.pk])
    assert SeriesLatest.objects.get(pk=series.pk).base_value is None


def test_other_series_have_no_base_which_no_page_reads(series: Series) -> None:
    Series.objects.update(headline=False)
    write_latest(series.case.project, [series.pk])
    assert SeriesLatest.objects.get(pk=series.pk).base_value is None
    assert SeriesLatest.objects.get(pk=series.pk).current_value is not None


def test_the_migration_fills_in_what_storing_writes(series: Series) -> None:
    names = ("recent_positions", "recent_machines", "current_value", "base_value", "base_position")
    stored = SeriesLatest.objects.values(*names).get()
    SeriesLatest.objects.update(
        recent_positions=[], recent_machines=[], current_value=None, base_value=None, base_position=None
    )
    fill = import_module("dashboard.migrations.0053_recent_positions").FILL
    with connection.cursor() as cursor:
        cursor.execute(fill)
    assert SeriesLatest.objects.values(*names).get() == stored
