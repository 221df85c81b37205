"""What a run cost becomes rows: the parts of document, host and waiting; and where its counters are from."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard import ingest, runs
from dashboard.host_protocol import RunAssignment
from dashboard.models import Commit, Run, RunCost
from dashboard.runs.assignment import find_counted_commit
from tests.dashboard.documents import encoded_document
from tests.dashboard.ingest.conftest import Measure

pytestmark = pytest.mark.django_db

COSTS = {
    "seconds": 12.0,
    "measured": 3.0,
    "parts": [
        {"part": "start", "seconds": 8.0, "processes": 3},
        {"part": "window", "seconds": 3.0, "processes": 3},
        {"part": "harness", "seconds": 1.0, "processes": 1},
    ],
}
TAKEN_FROM = "c" * 40


def counting_member(counted_at: str | None) -> dict[str, object]:
    return {"counted_at": counted_at, "key": "5f" * 32, "files": {}, "doubts": [], "repeats": False}


def test_the_parts_of_host_and_document_become_rows(run: Run) -> None:
    assignment = runs.claim_run("default", "gpu-1")
    assert assignment is not None
    for state in ("preparing", "measuring"):
        runs.advance_run(assignment.lease, state)
    runs.advance_run(assignment.lease, "storing", costs={"checkout": 0.5, "box": 0.1})
    ingest.store_document(assignment.lease, encoded_document(costs=COSTS))
    stored = dict(RunCost.objects.filter(run=run).values_list("part", "seconds"))
    assert stored.pop("waiting") >= 0
    assert stored == {"checkout": 0.5, "box": 0.1, "start": 8.0, "window": 3.0, "harness": 1.0}


def test_a_document_that_tells_no_costs_has_none(run: Run, assignment: RunAssignment) -> None:
    ingest.store_document(assignment.lease, encoded_document())
    assert not RunCost.objects.exists()


def test_counters_are_taken_over_from_the_neighbour_on_the_branch_alone(
    measure: Measure, make_commit: Callable[[int], Commit]
) -> None:
    first = measure(1, counting=counting_member(None))
    later = measure(5, counting=counting_member(None))
    measure(3, branch="topic", counting=counting_member(None))
    assert find_counted_commit(Run(commit=make_commit(4), configuration=first.configuration)) == (
        first.commit.hash
    )
    assert find_counted_commit(Run(commit=make_commit(6), configuration=first.configuration)) == (
        later.commit.hash
    )
    assert find_counted_commit(Run(commit=make_commit(0), configuration=first.configuration)) == ""


def test_a_branch_begins_with_the_counters_of_where_it_left(
    measure: Measure, make_commit: Callable[[int], Commit]
) -> None:
    first = measure(1, counting=counting_member(None))
    measure(5, counting=counting_member(None))
    topic = make_commit(2)
    topic.branch, topic.fork = "topic", 1
    assert find_counted_commit(Run(commit=topic, configuration=first.configuration)) == first.commit.hash


def test_what_was_taken_over_names_where_it_was_counted(
    measure: Measure, make_commit: Callable[[int], Commit]
) -> None:
    taken = measure(2, counting=counting_member(TAKEN_FROM))
    taken.refresh_from_db()
    assert taken.counted_at == TAKEN_FROM
    following = make_commit(3)
    assert find_counted_commit(Run(commit=following, configuration=taken.configuration)) == TAKEN_FROM
    sentinel = Run(commit=following, configuration=taken.configuration, origin=Run.Origin.SENTINEL)
    assert find_counted_commit(sentinel) == ""
