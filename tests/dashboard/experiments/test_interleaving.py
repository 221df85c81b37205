"""Which experiments measure both sides' steps in turn."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.experiments.interleaving import can_take_turns_by_runs
from dashboard.models import Document, Experiment, Metric, Run
from tests.dashboard import factories
from tests.dashboard.experiments.conftest import MakeExperiment

GB = 10**9
ALONE: dict[str, Any] = {
    "environment": {"path": "cpu", "memory_bytes": 16 * GB},
    "processes": [{"repetition": 0, "name": "main", "peak_memory": 2 * GB}],
    "phases": [{"path": "learn", "thread": "main"}],
}


def store_document(row: Experiment, **changed: Any) -> None:
    """Let the base commit have a run with this document."""
    case = row.base_configuration.case
    run = Run.objects.filter(commit=row.base_commit).first() or factories.create_run(row.base_commit, case)
    Document.objects.update_or_create(
        run=run, defaults={"format": "paceline.document/1", "body": {**ALONE, **changed}, "sha256": "0" * 64}
    )


def test_one_process_on_a_processor_takes_turns(row: Experiment) -> None:
    assert not can_take_turns_by_runs(row)
    store_document(row)
    assert can_take_turns_by_runs(row)


@pytest.mark.parametrize(
    "changed",
    [
        {"environment": {"path": "cuda", "memory_bytes": 16 * GB}},
        {"environment": {"path": "cpu", "memory_bytes": 7 * GB}},
        {"environment": {"path": "cpu", "memory_bytes": None}},
        {"processes": []},
        {"processes": None, "phases": None},
        {"processes": [{"repetition": 0, "name": "main", "peak_memory": None}]},
        {"processes": [*ALONE["processes"], {"repetition": 0, "name": "collector.py", "peak_memory": GB}]},
        {"phases": [*ALONE["phases"], {"path": "load", "thread": "loader"}]},
        {"ranks": {"world_size": 2}},
    ],
)
def test_what_goes_on_beside_it_or_is_large_takes_none(row: Experiment, changed: dict[str, Any]) -> None:
    store_document(row, **changed)
    assert not can_take_turns_by_runs(row)


@pytest.mark.parametrize(("name", "possible"), [("peak_memory", True), ("peak_memory_pss", False)])
def test_what_another_process_changes_is_measured_without_one(
    row: Experiment, name: str, possible: bool
) -> None:
    store_document(row)
    Metric.objects.update(name=name)
    row.refresh_from_db()
    assert can_take_turns_by_runs(row) is possible


def test_of_a_commit_that_was_never_measured_the_newest_runs_tell(make_experiment: MakeExperiment) -> None:
    row = make_experiment(question="estimate")
    store_document(row)
    unmeasured = factories.create_commits(row.project, 2, first=20)
    row.base_commit, row.head_commit = unmeasured
    assert can_take_turns_by_runs(row)
    store_document(row, environment={"path": "cuda", "memory_bytes": 16 * GB})
    assert not can_take_turns_by_runs(row)


def test_of_a_toggle_both_cases_tell(make_experiment: MakeExperiment) -> None:
    row = make_experiment(question="estimate")
    threaded = factories.create_case(row.project, threads=2)
    row.head_configuration = factories.get_configuration(threaded)
    store_document(row)
    assert can_take_turns_by_runs(row)
    run = factories.create_run(row.head_commit, threaded)
    phases = [*ALONE["phases"], {"path": "load", "thread": "loader"}]
    body = {**ALONE, "phases": phases}
    Document.objects.create(run=run, format="paceline.document/1", body=body, sha256="0" * 64)
    assert not can_take_turns_by_runs(row)
