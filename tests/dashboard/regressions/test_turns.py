"""Which confirmations measure both commits' steps in turn."""

from __future__ import annotations

from typing import Any

import pytest
from dashboard.regressions.confirmations import turns

from dashboard.models import Confirmation, Document, Metric, Project, Run
from tests.dashboard import factories
from tests.dashboard.regressions.test_settling import regression

GB = 10**9
ALONE: dict[str, Any] = {
    "environment": {"path": "cpu", "memory_bytes": 16 * GB},
    "processes": [{"repetition": 0, "name": "main", "peak_memory": 2 * GB}],
    "phases": [{"path": "learn", "thread": "main"}],
}


@pytest.fixture
def row(project: Project) -> Confirmation:
    line = factories.create_commits(project, 4)
    made = regression(line, 2, "step_time", 2)
    sides: dict[str, Any] = {"good": line[1], "bad": line[2], "before": 1.0, "after": 1.4}
    return Confirmation.objects.create(
        regression=made, purpose="confirm", series=made.series, pool=made.series.pool, **sides
    )


def stored(row: Confirmation, **changed: Any) -> None:
    """Let the good commit have a run with this document."""
    run = Run.objects.filter(commit=row.good).first() or factories.create_run(row.good, row.series.case)
    Document.objects.update_or_create(
        run=run, defaults={"format": "paceline.document/1", "body": {**ALONE, **changed}, "sha256": "0" * 64}
    )


def test_one_process_on_a_processor_takes_turns(row: Confirmation) -> None:
    assert not turns.possible(row)
    stored(row)
    assert turns.possible(row)


@pytest.mark.parametrize(
    "changed",
    [
        {"environment": {"path": "cuda", "memory_bytes": 16 * GB}},
        {"environment": {"path": "cpu", "memory_bytes": 7 * GB}},
        {"environment": {"path": "cpu", "memory_bytes": None}},
        {"processes": []},
        {"processes": None, "phases": None},
        {"processes": [*ALONE["processes"], {"repetition": 0, "name": "collector.py", "peak_memory": GB}]},
        {"phases": [*ALONE["phases"], {"path": "load", "thread": "loader"}]},
    ],
)
def test_what_goes_on_beside_it_or_is_large_takes_none(row: Confirmation, changed: dict[str, Any]) -> None:
    stored(row, **changed)
    assert not turns.possible(row)


@pytest.mark.parametrize(("name", "possible"), [("peak_memory", True), ("peak_memory_pss", False)])
def test_what_another_process_changes_is_measured_without_one(
    row: Confirmation, name: str, possible: bool
) -> None:
    stored(row)
    Metric.objects.update(name=name)
    row.refresh_from_db()
    assert turns.possible(row) is possible
