"""The phases of interleaved runs: before and after a step, as two commits measured them side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from dashboard.models import Confirmation, Metric, Pair, Regression, Series
from dashboard.regressions import proofs, sweeps


@dataclass(frozen=True, slots=True)
class Phases:
    """Own time by phase: the medians of a confirmation's undisturbed pairs.

    Seconds per step. Of what is read off a sweep they are those at its largest value, `at` says of what, and
    `deltas` are each phase's part in the difference. `after` is `before` with the median of the pairs'
    differences: from pair to pair the machine may change its speed, within a pair it is the same for both
    commits. What one commit lacks took 0 there.
    """

    confirmation: Confirmation
    pairs: int
    before: dict[str, float]
    after: dict[str, float]
    deltas: dict[str, float]
    at: str = ""


def phases_of(regression: Regression, rows: Iterable[Confirmation] | None = None) -> Phases | None:
    """Of the runs that say how large the regression is; None where there are none, or it isn't one of time.

    `rows`: its confirmations, where they have been read already.
    """
    series = regression.series
    if series.metric.kind not in (Metric.Kind.TIME, Metric.Kind.RATE):
        return None
    found = regression.confirmations.prefetch_related("pairs") if rows is None else rows
    row = proofs.size_among(found, series.pk, regression.first_bad_id)
    if row is None:
        return None
    kept = [pair for pair in row.pairs.all() if not pair.disturbed]
    if kept and all(pair.sweeps for pair in kept):
        return swept(series, row, kept)
    if not kept or not all(pair.phases for pair in kept) or series.metric.is_exponent:
        return None
    before, after = medians([pair.phases for pair in kept])
    deltas = {phase: after[phase] - before[phase] for phase in before}
    return Phases(row, len(kept), before, after, deltas)


def swept(series: Series, row: Confirmation, kept: Sequence[Pair]) -> Phases | None:
    """By the sweeps of the pairs; None where no phase explains the metric."""
    told = kept[0].sweeps
    reading = sweeps.reading(series, told["parameter"], told["amount"])
    if reading is None:
        return None
    sides = [[reading.times(pair.sweeps[side]) for side in ("good", "bad")] for pair in kept]
    both = [found for good, bad in sides if (found := sweeps.compare(reading, good, bad))]
    if len(both) < len(kept):
        return None
    parts = [one.parts for one in both]
    names = sorted({phase for one in parts for phase in one})
    deltas = {phase: float(median(one.get(phase, 0.0) for one in parts)) for phase in names}
    before, after = medians([one.at_largest for one in both])
    return Phases(row, len(kept), before, after, deltas, both[0].at)


def medians(pairs: Sequence[Mapping[str, Sequence[float]]]) -> tuple[dict[str, float], dict[str, float]]:
    """Before and after by phase, of pairs that hold both."""
    values = {
        phase: [pair.get(phase, (0.0, 0.0)) for pair in pairs]
        for phase in sorted({phase for pair in pairs for phase in pair})
    }
    before = {phase: float(median(good for good, _ in both)) for phase, both in values.items()}
    moved = {phase: float(median(bad - good for good, bad in both)) for phase, both in values.items()}
    return before, {phase: max(0.0, before[phase] + moved[phase]) for phase in values}
