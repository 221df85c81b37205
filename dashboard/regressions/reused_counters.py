"""Reused counters, taken over from a commit that was counted, begin no change: nothing was counted there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dashboard import detection
from dashboard.measured_kinds import is_exact_counter
from dashboard.models import Run
from dashboard.regressions.series.history import History


def leave_out_reused_counters(
    histories: Iterable[History], found: Mapping[int, Sequence[detection.Change]]
) -> dict[int, list[detection.Change]]:
    """What was found by series, without the steps of exact counters at commits that no run has counted."""
    kept = {key: list(changes) for key, changes in found.items()}
    stepped = [past for past in histories if kept[past.series.pk] and is_exact_counter(past.series)]
    runs = {run for past in stepped for change in kept[past.series.pk] for run in runs_at(past, change)}
    if not runs:
        return kept
    counted = set(Run.objects.filter(pk__in=runs, counted_at="").values_list("pk", flat=True))
    for past in stepped:
        kept[past.series.pk] = [
            change for change in kept[past.series.pk] if counted.intersection(runs_at(past, change))
        ]
    return kept


def runs_at(history: History, change: detection.Change) -> tuple[int, ...]:
    return history.measured[change.index].runs
