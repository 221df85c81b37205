"""Which phase explains a regression, and how much of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from dashboard.models import Change, Metric, Point, Regression, Series
from dashboard.regressions import sweeps
from dashboard.regressions.history import History, Measured
from dashboard.regressions.phases import holds

CLOCKED = (Metric.Kind.TIME, Metric.Kind.RATE)

# Measured commits on each side that tell a phase's level: the nearest ones, since levels wander.
WINDOW = 10

# Less than this part of the delta explains nothing: a phase isn't named for its noise.
LEAST_SHARE = 0.1
# A nested phase is named where it holds this part of what the one around it does; else that one is.
MOST = 0.5


@dataclass(frozen=True, slots=True)
class Explanation:
    """The phase that explains the largest share (0 to 1) of a change; empty where none does.

    `delta`: what it lost, in the unit of the phases' deltas.
    """

    phase: str = ""
    share: float | None = None
    delta: float = 0.0


@dataclass(frozen=True, slots=True)
class Sides:
    """Runs of the old level and of the new one, nearest to the step last and first."""

    good: tuple[int, ...]
    bad: tuple[int, ...]


def sides_of(change: Change, history: History) -> Sides:
    """The runs of up to WINDOW untainted commits on both sides, within the levels next to the step."""
    at = history.index_of(change.position)
    starts = starts_of_levels(change, history)
    # What starts between its last good commit and its first bad one is the same step, seen elsewhere.
    earlier = max((place for place in starts if place <= change.last_good.position), default=None)
    later = min((place for place in starts if place > change.position), default=None)
    old = history.untainted(0 if earlier is None else history.index_of(earlier), at)
    new = history.untainted(at, len(history.measured) if later is None else history.index_of(later))
    return Sides(good=runs_of(old[-WINDOW:]), bad=runs_of(new[:WINDOW]))


def starts_of_levels(change: Change, history: History) -> list[int]:
    """Where the series' levels start: as detection sees them, and as interleaved runs have proved them."""
    seen = Change.objects.filter(history.line.holds("first_bad"), series=change.series_id)
    proved = Regression.objects.filter(
        history.line.holds("first_bad"),
        series=change.series_id,
        state=Regression.State.CONFIRMED,
        withdrawn_at=None,
    )
    return [*seen.values_list("position", flat=True), *proved.values_list("first_bad__position", flat=True)]


def runs_of(measured: Sequence[Measured]) -> tuple[int, ...]:
    return tuple(run for one in measured for run in one.runs)


def explain(change: Change, sides: Sides, paired: Mapping[str, float] | None = None) -> Explanation:
    """The phase with the largest part of the delta, nested ones with it: the innermost that holds most.

    `paired`: what each phase lost in interleaved runs: seconds per step, or its part in what is read off a
    sweep. It is believed over the runs of the two levels, which were measured at other hours.

    What is seen in a phase's own series is looked for in that phase: elsewhere there may be more noise than
    it ever costs.
    """
    series = change.series
    deltas = dict(paired or deltas_between(series, sides))
    if series.phase:
        deltas = {one: delta for one, delta in deltas.items() if holds(series.phase, one)}
    phase = deepest(deltas)
    part = within(deltas, phase)
    whole = max(whole_delta(change, deltas), 0.0)
    if not phase or part <= 0 or part < LEAST_SHARE * whole:
        return Explanation()
    return Explanation(phase, min(1.0, part / whole) if whole else None, part)


def deepest(deltas: Mapping[str, float]) -> str:
    """From the top-level phase with the largest delta inwards, to where no nested one holds most of it."""
    paths = [one.split("/") for one in deltas]
    every = {"/".join(path[:depth]) for path in paths for depth in range(1, len(path) + 1)}
    phase = ""
    while inside := sorted(one for one in every if one.rpartition("/")[0] == phase):
        best = max(inside, key=lambda one: within(deltas, one))
        if phase and within(deltas, best) < MOST * within(deltas, phase):
            break
        phase = best
    return phase


def within(deltas: Mapping[str, float], phase: str) -> float:
    """The delta of a phase with those nested in it. Each has its own only: nothing counts twice."""
    return sum(delta for one, delta in deltas.items() if holds(phase, one))


def deltas_between(series: Series, sides: Sides) -> dict[str, float]:
    """What each phase has more in the runs of the new level: what the series lost, in parts that add up.

    Seconds per step for times and rates, bytes for memory, counts for counters, parts of the difference for
    what is read off a sweep. Empty where no phase can explain it.
    """
    if not sides.good or not sides.bad:
        return {}
    if sweeps.may_be_read(series) and sweeps.is_read(series, sides.bad):
        compared = sweeps.between(series, sides.good, sides.bad)
        return compared.parts if compared else {}
    metric = parts_metric(series)
    if metric is None:
        return {}
    deltas = phase_deltas(series, metric, sides)
    more_is_better = series.metric.better == Metric.Better.HIGHER and metric == series.metric.name
    return {phase: -delta for phase, delta in deltas.items()} if more_is_better else deltas


def parts_metric(series: Series) -> str | None:
    """The metric whose phases add up to the series'; None where no phase can explain it."""
    kind = series.metric.kind
    if kind in CLOCKED:
        return "phase_self_time"
    if kind == Metric.Kind.MEMORY:
        return "phase_memory"
    return series.metric.name if kind == Metric.Kind.COUNTER else None


def whole_delta(change: Change, deltas: dict[str, float]) -> float:
    """What the phases' deltas are shares of.

    Time: their own sum, because phases are means while a step time is a median. Memory and counters: the
    change itself, because a repetition that counts sees less memory grow than the measured ones.
    """
    if change.series.metric.kind in CLOCKED:
        return sum(deltas.values())
    return abs(change.after - change.before)


def phase_deltas(series: Series, metric: str, sides: Sides) -> dict[str, float]:
    """After minus before for each phase, in the metric's unit; a phase that a side lacks is 0 there."""
    values = values_of(series, metric, sides)
    return {phase: level(of, sides.bad) - level(of, sides.good) for phase, of in values.items() if phase}


def values_of(series: Series, metric: str, sides: Sides) -> dict[str, dict[int, float]]:
    """A metric's values in the sides' runs by phase (empty: the whole) and run."""
    parts = Series.objects.filter(
        case=series.case_id,
        version=series.version,
        pool=series.pool_id,
        quick=series.quick,
        metric__name=metric,
    )
    rows = Point.objects.filter(series__in=parts, run__in=sides.good + sides.bad)
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for phase, run, value in rows.values_list("series__phase", "run_id", "value"):
        values[phase][run] = value
    return values


def level(values: dict[int, float], runs: Sequence[int]) -> float:
    """The median over the runs; a run without the phase spent nothing in it."""
    return float(median(values.get(run, 0.0) for run in runs))
