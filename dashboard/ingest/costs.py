"""What a run cost: the parts that its document tells, those that its host tells, and the waiting."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.document import Document

from dashboard.models import Run, RunCost


def store_costs(run: Run, document: Document) -> None:
    """One row for each part; nothing of a document that doesn't tell."""
    if document.costs is None:
        return
    rows = {part: (seconds, processes) for part, seconds, processes in _cost_parts(run, document)}
    RunCost.objects.bulk_create(
        RunCost(run=run, part=part, seconds=seconds, processes=processes)
        for part, (seconds, processes) in rows.items()
    )


def _cost_parts(run: Run, document: Document) -> Iterator[tuple[str, float, int]]:
    if run.claimed_at is not None:
        asked = max(run.requested_at, run.not_before) if run.not_before else run.requested_at
        yield RunCost.WAITING, max(0.0, (run.claimed_at - asked).total_seconds()), 1
    for part, seconds in run.host_costs.items():
        yield part, float(seconds), 1
    if document.costs is not None:
        for row in document.costs.parts:
            yield row.part, row.seconds, min(row.processes, 2**31 - 1)
