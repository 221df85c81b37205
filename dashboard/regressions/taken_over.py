"""Counters that were taken over from another commit begin no change: nothing was counted there."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard import detection
from dashboard.models import Run
from dashboard.regressions.decision.series_kinds import is_exact_counter
from dashboard.regressions.series.history import History


def leave_out_taken_over(history: History, found: Sequence[detection.Change]) -> list[detection.Change]:
    """Without the steps of an exact counter at commits that no run has counted."""
    if not found or not is_exact_counter(history.series):
        return list(found)
    runs = {run for change in found for run in history.measured[change.index].runs}
    counted = set(Run.objects.filter(pk__in=runs, counted_at="").values_list("pk", flat=True))
    return [change for change in found if counted.intersection(history.measured[change.index].runs)]
