"""Which phase explains a step, and how much of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from dashboard.models import Change as ChangeRow
from dashboard.models import Metric, Point, Regression, Run
from dashboard.models import Series as SeriesRow
from dashboard.phases import sweeps
from dashboard.phases.paths import is_in_phase
from dashboard.regressions.decision.facts import Change, Series
from dashboard.regressions.series.history import History, MeasuredCommit

CLOCKED = (Metric.Kind.TIME, Metric.Kind.RATE)
PHASE_MEMORY = "phase_memory"

# Measured commits on each side that tell a phase's level: the nearest ones, since levels wander.
WINDOW_COMMITS = 10

# Less than this part of the delta explains nothing: a phase isn't named for its noise.
LEAST_SHARE = 0.1
# A nested phase is named where it holds this part of what the one around it does; else that one is.
MOST_OF_PHASE = 0.5


@dataclass(frozen=True, slots=True)
class PhaseShare:
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


def sides_of_step(change: Change, history: History) -> Sides:
    """The runs of at most WINDOW_COMMITS untainted commits on each side, within the levels beside it."""
    position = change.first_bad.position
    index = history.index_of(position)
    starts = level_starts(change.series, history)
    # What starts between its last good commit and its first bad one is the same step, seen by other means.
    earlier = max((start for start in starts if start <= change.last_good.position), default=None)
    later = min((start for start in starts if start > position), default=None)
    old = history.untainted(0 if earlier is None else history.index_of(earlier), index)
    new = history.untainted(index, len(history.measured) if later is None else history.index_of(later))
    if not new and index < len(history.measured) and is_unreported(history.measured[index]):
        # No point of its own is judged, but its runs say what was called.
        new = [history.measured[index]]
    if parts_metric(change.series) == PHASE_MEMORY:
        old, new = with_memory_of_phases(old), with_memory_of_phases(new)
    return Sides(good=runs_of_commits(old[-WINDOW_COMMITS:]), bad=runs_of_commits(new[:WINDOW_COMMITS]))


def is_unreported(commit: MeasuredCommit) -> bool:
    """True of a commit whose runs don't report the guarded quality."""
    return commit.guard is not None and commit.guard.unreported


def with_memory_of_phases(measured: list[MeasuredCommit]) -> list[MeasuredCommit]:
    """Without the commits whose counters were taken over, which tell no memory of phases; all where that
    leaves none."""
    counted = set(
        Run.objects.filter(pk__in=runs_of_commits(measured), counted_at="").values_list("pk", flat=True)
    )
    return [commit for commit in measured if not counted.isdisjoint(commit.runs)] or measured


def level_starts(series: Series, history: History) -> list[int]:
    """Where the series' levels start: as detection sees them, and as experiments have proved them."""
    seen = ChangeRow.objects.filter(history.line.lookup("first_bad"), series=series.pk)
    proved = Regression.objects.filter(
        history.line.lookup("first_bad"),
        series=series.pk,
        state=Regression.State.CONFIRMED,
        withdrawn_at=None,
    )
    return [*seen.values_list("position", flat=True), *proved.values_list("first_bad__position", flat=True)]


def runs_of_commits(measured: Iterable[MeasuredCommit]) -> tuple[int, ...]:
    return tuple(run for commit in measured for run in commit.runs)


def explain_by_phase(change: Change, sides: Sides, paired: Mapping[str, float] | None = None) -> PhaseShare:
    """The phase with the largest part of the delta, nested ones with it: the innermost that holds most.

    `paired`: what each phase lost in an experiment: seconds per step, or its part in what is read off a
    sweep. It is believed over the runs of the two levels, which were measured at other hours.

    What is seen in a phase's own series is looked for in that phase: in others there may be more noise than
    it ever costs.
    """
    series = change.series
    deltas = dict(paired or phase_losses(series, sides))
    if series.phase:
        deltas = {phase: delta for phase, delta in deltas.items() if is_in_phase(phase, series.phase)}
    phase = deepest_phase(deltas)
    part = delta_within(deltas, phase)
    whole = max(whole_delta(change, deltas), 0.0)
    if not phase or part <= 0 or part < LEAST_SHARE * whole:
        return PhaseShare()
    return PhaseShare(phase, min(1.0, part / whole) if whole else None, part)


def deepest_phase(deltas: Mapping[str, float]) -> str:
    """From the top-level phase with the largest delta inwards, to where no nested one holds most of it."""
    paths = [phase.split("/") for phase in deltas]
    every = {"/".join(path[:depth]) for path in paths for depth in range(1, len(path) + 1)}
    phase = ""
    while inside := sorted(path for path in every if path.rpartition("/")[0] == phase):
        best = max(inside, key=lambda path: delta_within(deltas, path))
        if phase and delta_within(deltas, best) < MOST_OF_PHASE * delta_within(deltas, phase):
            break
        phase = best
    return phase


def delta_within(deltas: Mapping[str, float], phase: str) -> float:
    """The delta of a phase with those nested in it. Each has its own only: nothing counts twice."""
    return sum(delta for inner, delta in deltas.items() if is_in_phase(inner, phase))


def phase_losses(series: Series, sides: Sides) -> dict[str, float]:
    """What each phase has more in the runs of the new level: what the series lost, in parts that add up.

    Seconds per step for times and rates, bytes for memory, counts for counters, parts of the difference for
    what is read off a sweep. Empty where no phase can explain it.
    """
    if not sides.good or not sides.bad:
        return {}
    if sweeps.may_be_read_off_sweep(series) and sweeps.is_read_off_sweep(series, sides.bad):
        compared = sweeps.compare_runs(series, sides.good, sides.bad)
        return compared.parts if compared else {}
    metric = parts_metric(series)
    if metric is None:
        return {}
    deltas = phase_deltas(series, metric, sides)
    more_is_better = not series.metric.lower_is_better and metric == series.metric.name
    return {phase: -delta for phase, delta in deltas.items()} if more_is_better else deltas


def parts_metric(series: Series) -> str | None:
    """The metric whose phases add up to the series'; None where no phase can explain it."""
    kind = series.metric.kind
    if kind in CLOCKED:
        return "phase_self_time"
    if kind == Metric.Kind.MEMORY:
        return PHASE_MEMORY
    return series.metric.name if kind == Metric.Kind.COUNTER else None


def whole_delta(change: Change, deltas: Mapping[str, float]) -> float:
    """What the phases' deltas are shares of.

    Time: their own sum, because phases are means while a step time is a median. Memory and counters: the
    change itself, because a repetition that counts sees less memory grow than the measured ones.
    """
    if change.series.metric.kind in CLOCKED:
        return sum(deltas.values())
    return abs(change.after - change.before)


def phase_deltas(series: Series, metric: str, sides: Sides) -> dict[str, float]:
    """After minus before for each phase, in the metric's unit; a phase that a side lacks is 0 there."""
    values = values_by_phase(series, metric, sides)
    good, bad = sides.good, sides.bad
    if metric == PHASE_MEMORY:
        # Where counters were taken over the memory of phases isn't 0: nobody has looked.
        runs_with_memory = {run for by_run in values.values() for run in by_run}
        good, bad = (tuple(run for run in side if run in runs_with_memory) for side in (good, bad))
        if not good or not bad:
            return {}
    return {
        phase: median_level(by_run, bad) - median_level(by_run, good)
        for phase, by_run in values.items()
        if phase
    }


def values_by_phase(series: Series, metric: str, sides: Sides) -> dict[str, dict[int, float]]:
    """A metric's values in the sides' runs by phase (empty: the whole) and run."""
    parts = SeriesRow.objects.filter(configuration=series.configuration_id, metric__name=metric)
    rows = Point.objects.filter(series__in=parts, run__in=sides.good + sides.bad)
    values: dict[str, dict[int, float]] = defaultdict(dict)
    # In one order: sums over phases are then the same to the last digit, whenever they are made.
    in_order = rows.order_by("series__phase", "run_id")
    for phase, run, value in in_order.values_list("series__phase", "run_id", "value"):
        values[phase][run] = value
    return values


def median_level(by_run: Mapping[int, float], runs: Sequence[int]) -> float:
    """The median over the runs; a run without the phase spent nothing in it."""
    return float(median(by_run.get(run, 0.0) for run in runs))
