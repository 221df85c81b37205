"""Every metric of two sides: ratios with intervals, by the repetitions of all runs and the noise of runs.

What has no ratio, since it may be 0 or less, has a difference. Which of many intervals tell more than chance
would is decided over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

import numpy as np

from dashboard import detection
from dashboard.detection.comparison import interval_verdict
from dashboard.detection.doubts import TOO_FEW_SAMPLES
from dashboard.detection.noise import neighbour_noise
from dashboard.detection.types import Doubt, Verdict
from dashboard.models import Metric, Series
from dashboard.policy.baselines import ENOUGH_VALUES, relative_noise
from dashboard.querysets.comparisons import ComparedPoint

Effect = Literal["ratio", "exponent", "difference", "none"]
# Codes of why a row has no answer, beside those of detection.
TAINTED_BASE, TAINTED_HEAD = "tainted base", "tainted head"
MISSING_BASE, MISSING_HEAD = "missing base", "missing head"
# With age a run loses points of series that no judgement reads.
THINNED_BASE, THINNED_HEAD = "thinned base", "thinned head"


@dataclass(slots=True)
class SideValues:
    """Of one side: the value of each run, and those of all repetitions; of an exponent the fit's interval."""

    values: list[float] = field(default_factory=list)
    samples: list[float] = field(default_factory=list)
    low: float | None = None
    high: float | None = None

    def add_point(self, point: ComparedPoint) -> None:
        self.values.append(point.value)
        self.samples += point.samples or [point.value]
        self.low, self.high = point.low, point.high

    @property
    def level(self) -> float | None:
        return float(median(self.values)) if self.values else None


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric, of a phase or of the whole step, on both sides.

    `ratio` is head / base, of an exponent e ** difference; `difference` is head - base in the unit. Of what
    differs by chance alone the verdict is `~`, of what can't be determined a question mark with its reasons.
    """

    metric: Metric
    phase: str
    series: int
    headline: bool
    exact: bool
    base: float | None
    head: float | None
    effect: Effect
    verdict: Verdict
    ratio: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    reasons: tuple[Doubt, ...] = ()
    samples: int = 0

    @property
    def is_different(self) -> bool:
        return self.verdict in ("higher", "lower")

    @property
    def direction(self) -> str:
        """`better` or `worse`; empty where no difference is known."""
        if not self.is_different:
            return ""
        return "better" if self.verdict == self.metric.better else "worse"

    @property
    def size(self) -> float:
        """How large the effect is, beside others: of ratios their logarithm."""
        if self.ratio is not None:
            return abs(math.log(self.ratio)) if self.ratio > 0 else math.inf
        if self.difference is None:
            return 0.0
        if not self.base:
            return math.inf if self.difference else 0.0
        return math.log1p(abs(self.difference / self.base))


Key = tuple[str, str, str]  # metric, better, phase


def metric_rows(
    points: Iterable[ComparedPoint], base_runs: Iterable[int], recent: Mapping[int, Sequence[float]]
) -> list[MetricRow]:
    """What differs first, the largest effect on top; then what doesn't, then what can't be determined."""
    of_base = set(base_runs)
    sides: dict[Key, tuple[SideValues, SideValues]] = {}
    series: dict[Key, Series] = {}
    tainted: set[tuple[Key, bool]] = set()
    for point in points:
        metric = point.series.metric
        key = metric.name, metric.better, point.series.phase
        before, after = sides.setdefault(key, (SideValues(), SideValues()))
        at_base = point.run_id in of_base
        (before if at_base else after).add_point(point)
        if not at_base or key not in series:
            series[key] = point.series
        if point.tainted:
            tainted.add((key, at_base))
    rows = []
    for key, (before, after) in sides.items():
        row = compare_metric(series[key], before, after, recent.get(series[key].pk, ()))
        codes = ((TAINTED_BASE, True), (TAINTED_HEAD, False))
        reasons = [Doubt(code) for code, at_base in codes if (key, at_base) in tainted]
        rows.append(replace(row, verdict="?", reasons=(*row.reasons, *reasons)) if reasons else row)
    return sort_rows(weigh_together(rows))


def compare_metric(
    series: Series, before: SideValues, after: SideValues, recent: Sequence[float]
) -> MetricRow:
    """`recent` are the newest values of the series, by which runs of one commit differ too."""
    metric, base, head = series.metric, before.level, after.level
    samples = len(before.samples) + len(after.samples)
    identity = metric, series.phase, series.pk, series.headline
    if base is None or head is None:
        missing = Doubt(MISSING_BASE if base is None else MISSING_HEAD)
        return MetricRow(*identity, series.exact, base, head, "none", "?", reasons=(missing,))
    if metric.is_exponent:
        row = MetricRow(*identity, series.exact, base, head, "exponent", "?", samples=samples)
        return _compare_exponents(row, before, after)
    has_ratio = not metric.has_sign and min(*before.samples, *after.samples) > 0
    if series.exact or _repeats_alike(metric, before, after):
        # What repeats to the last digit differs or not: it needs no interval.
        verdict = interval_verdict(head - base, head - base)
        ratio, difference = (head / base, None) if has_ratio else (None, head - base)
        effect: Effect = "ratio" if has_ratio else "difference"
        return MetricRow(*identity, True, base, head, effect, verdict, ratio, difference, samples=samples)
    share = math.sqrt((1 / len(before.values) + 1 / len(after.values)) / 2)
    if has_ratio:
        noise = share * max(relative_noise(recent), relative_spread(before, after))
        found = detection.compare_samples(before.samples, after.samples, noise)
        return MetricRow(
            *identity, series.exact, base, head, "ratio", found.verdict, ratio=found.ratio, low=found.low,
            high=found.high, reasons=found.doubts, samples=samples,
        )  # fmt: skip
    noise = share * max(absolute_noise(recent), absolute_spread(before, after))
    shifted = detection.compare_differences(before.samples, after.samples, noise)
    return MetricRow(
        *identity, series.exact, base, head, "difference", shifted.verdict, difference=shifted.difference,
        low=shifted.low, high=shifted.high, reasons=shifted.doubts, samples=samples,
    )  # fmt: skip


def _repeats_alike(metric: Metric, before: SideValues, after: SideValues) -> bool:
    """A counter that came out alike in every counting of both sides, though it doesn't always."""
    return metric.kind == Metric.Kind.COUNTER and len({*before.samples, *after.samples}) == 1


def _compare_exponents(row: MetricRow, before: SideValues, after: SideValues) -> MetricRow:
    """By the intervals of the fits: each run has a single exponent."""
    bounds = (before.low, before.high, after.low, after.high)
    base, head = row.base or 0.0, row.head or 0.0
    row = replace(row, ratio=row.metric.on_ratio_scale(head - base))
    if any(bound is None for bound in bounds):
        few = Doubt(TOO_FEW_SAMPLES, {"least": 1, "a": 0, "b": 0})
        return replace(row, reasons=(few,))
    old_low, old_high, new_low, new_high = (float(bound or 0.0) for bound in bounds)
    low = head - base - math.hypot(head - new_low, old_high - base)
    high = head - base + math.hypot(new_high - head, base - old_low)
    return replace(
        row, verdict=interval_verdict(low, high), low=row.metric.on_ratio_scale(low),
        high=row.metric.on_ratio_scale(high),
    )  # fmt: skip


def relative_spread(before: SideValues, after: SideValues) -> float:
    """The relative standard deviation of the runs of one commit; 0 where each side has one run."""
    squares = freedom = 0.0
    for side in (before, after):
        level = abs(side.level or 0.0) if len(side.values) > 1 else 0.0
        if level:
            squares += sum(
                (value / level - float(np.mean(side.values)) / level) ** 2 for value in side.values
            )
            freedom += len(side.values) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0


def absolute_spread(before: SideValues, after: SideValues) -> float:
    squares = freedom = 0.0
    for side in (before, after):
        if len(side.values) > 1:
            squares += float(np.var(side.values)) * len(side.values)
            freedom += len(side.values) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0


def absolute_noise(recent: Sequence[float]) -> float:
    """By how much the runs of a series differ, in its unit; 0 where too few tell."""
    return neighbour_noise(np.asarray(recent, dtype=np.float64)) if len(recent) >= ENOUGH_VALUES else 0.0


def weigh_together(rows: Sequence[MetricRow]) -> list[MetricRow]:
    """What leaves out no difference for no more than chance, among so many rows, has none.

    Headlines are weighed apart from the rest: a list of cases reads them alone, and says the same.
    """
    by_chance: set[int] = set()
    for headline in (True, False):
        bounded = [
            row for row in rows if row.headline is headline and row.low is not None and row.verdict != "?"
        ]
        kept = detection.find_discoveries([row_interval(row) for row in bounded])
        by_chance |= {id(row) for row, is_kept in zip(bounded, kept, strict=True) if not is_kept}
    by_chance -= {id(row) for row in rows if not row.is_different}
    return [replace(row, verdict="~") if id(row) in by_chance else row for row in rows]


def row_interval(row: MetricRow) -> detection.Interval:
    """Of a row with an interval: where 0 is no difference."""
    numbers = (row.difference if row.ratio is None else row.ratio, row.low, row.high)
    shift, low, high = (float(number or 0.0) for number in numbers)
    if row.ratio is not None:
        shift, low, high = (math.log(max(number, 1e-300)) for number in (shift, low, high))
    return detection.Interval(shift, low, high, row.samples)


ORDER = {"higher": 0, "lower": 0, "~": 1, "?": 2}


def sort_rows(rows: Iterable[MetricRow]) -> list[MetricRow]:
    return sorted(rows, key=lambda row: (ORDER[row.verdict], -row.size, row.metric.name, row.phase))
