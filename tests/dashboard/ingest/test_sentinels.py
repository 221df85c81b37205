"""A sentinel's document: stored whole, with points of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard import ingest, runs
from dashboard.models import Machine, Point, Run, Sentinel, SentinelPoint, SeriesLatest
from tests.dashboard import documents
from tests.dashboard.ingest.conftest import Measure, Storing


@pytest.fixture
def stored(measure: Measure, make_commit: Callable[[int], object], storing: Storing) -> Run:
    """The pinned commit, measured once in the ordinary way and then, slower, as a sentinel."""
    first = measure(1)
    machine = Machine.objects.get(name="gpu-1")
    Sentinel.objects.create(configuration=first.configuration, machine=machine, commit=first.commit)
    again = runs.request_sentinel_run(first, first.commit, machine, -20)
    assert again is not None
    ingest.store_document(storing(again).lease, documents.encoded_document(throughput=50.0))
    return again


def test_its_values_are_points_of_the_sentinel(stored: Run) -> None:
    values = {point.metric.name: point.value for point in SentinelPoint.objects.filter(run=stored)}
    assert values == {"throughput": 50.0, "step_time": 0.02}


def test_its_commits_points_stay_what_they_were(stored: Run) -> None:
    assert not Point.objects.filter(run=stored).exists()
    assert SeriesLatest.objects.get(series__metric__name="throughput").value == 100.0


def test_it_is_a_run_with_a_document(stored: Run) -> None:
    stored.refresh_from_db()
    assert (stored.state, stored.document.format) == ("done", "paceline.document/1")


def test_one_that_was_pinned_anew_meanwhile_has_no_points(measure: Measure, storing: Storing) -> None:
    first, second = measure(1), measure(2)
    machine = Machine.objects.get(name="gpu-1")
    pinned = Sentinel.objects.create(configuration=first.configuration, machine=machine, commit=first.commit)
    again = runs.request_sentinel_run(first, first.commit, machine, -20)
    assert again is not None
    assignment = storing(again)
    Sentinel.objects.filter(pk=pinned.pk).update(commit=second.commit)
    ingest.store_document(assignment.lease, documents.encoded_document())
    assert not SentinelPoint.objects.exists()
    again.refresh_from_db()
    assert again.state == Run.State.DONE
