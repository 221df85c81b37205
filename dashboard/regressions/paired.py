"""The phases of interleaved runs: before and after a step, as two commits measured them side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from dashboard.models import Confirmation, Metric, Regression
from dashboard.regressions import proofs


@dataclass(frozen=True, slots=True)
class Phases:
    """Own time by phase, in seconds per step: the medians of a confirmation's undisturbed pairs.

    `after` is `before` with the median of the pairs' differences: from pair to pair the machine may change
    its speed, within a pair it is the same for both commits. What one commit lacks took 0 there.
    """

    confirmation: Confirmation
    pairs: int
    before: dict[str, float]
    after: dict[str, float]

    @property
    def deltas(self) -> dict[str, float]:
        return {phase: self.after[phase] - self.before[phase] for phase in self.before}


def phases_of(regression: Regression, rows: Iterable[Confirmation] | None = None) -> Phases | None:
    """Of the runs that say how large the regression is; None where there are none, or it isn't one of time.

    `rows`: its confirmations, where they have been read already.
    """
    series = regression.series
    if series.metric.kind not in (Metric.Kind.TIME, Metric.Kind.RATE):
        return None
    found = regression.confirmations.prefetch_related("pairs") if rows is None else rows
    row = proofs.size_among(found, regression.first_bad_id)
    if row is None or row.series_id != series.pk:
        return None
    kept = [pair.phases for pair in row.pairs.all() if not pair.disturbed]
    if not kept or not all(kept):
        return None
    names = sorted({phase for pair in kept for phase in pair})
    values = {phase: [pair.get(phase, (0.0, 0.0)) for pair in kept] for phase in names}
    before = {phase: float(median(good for good, _ in pairs)) for phase, pairs in values.items()}
    moved = {phase: float(median(bad - good for good, bad in pairs)) for phase, pairs in values.items()}
    after = {phase: max(0.0, before[phase] + moved[phase]) for phase in names}
    return Phases(row, len(kept), before, after)
