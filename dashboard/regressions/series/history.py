"""A series as detection reads it: one point per commit, in the order of the branch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from statistics import median

from dashboard import detection
from dashboard.models import GuardResult, Point, Series
from dashboard.regressions.series.branch_line import Line

# All of a history is judged again by this many points at most: what is older was judged when it was new.
NEWEST = 2000
# A new point is judged by so many: the levels and the noise of those before them tell nothing of it.
RECENT = 400
# Near the cut the first level is short: what is found there isn't believed over what was found in full view.
FROZEN_SHARE = 0.1
# Of a history that wasn't read from rows.
NOWHERE = Line("")


@dataclass(frozen=True, slots=True)
class GuardStanding:
    """How a commit stands to the guard of a quality, over so many seeds; `bound` is the one it breaks."""

    state: str
    seeds: int
    bound: float | None = None

    @property
    def failed(self) -> bool:
        return self.state != GuardResult.State.KEPT

    @property
    def unreported(self) -> bool:
        return self.state in GuardResult.UNREPORTED


@dataclass(frozen=True, slots=True)
class MeasuredCommit:
    """What the runs of one commit say together: the median of their values, their samples in one pool."""

    commit_id: int
    position: int
    value: float
    samples: tuple[float, ...]
    tainted: bool
    runs: tuple[int, ...]
    guard: GuardStanding | None = None

    @property
    def guarded_point(self) -> detection.GuardedPoint:
        """As the guard's crossings are found: what isn't reported is known to have failed."""
        guard = self.guard
        if guard is not None and guard.unreported:
            return detection.GuardedPoint(None, failed=True)
        return detection.GuardedPoint(
            self.value, failed=None if self.tainted or guard is None else guard.failed
        )


@dataclass(frozen=True, slots=True)
class History:
    """The measured commits of a series in order, and the position up to which its changes are settled."""

    series: Series
    measured: Sequence[MeasuredCommit]
    frozen_until: int = -1
    line: Line = NOWHERE
    positions: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", [commit.position for commit in self.measured])

    def index_of(self, position: int) -> int:
        """The index of the commit at `position`, or of the next one that was measured."""
        return bisect_left(self.positions, position)

    def untainted_at(self, position: int) -> int | None:
        """The index of the commit at `position`; None where it has no untainted point."""
        index = self.index_of(position)
        there = index < len(self.measured) and self.positions[index] == position
        return index if there and not self.measured[index].tainted else None

    def untainted_before(self, index: int) -> int:
        """The index of the last untainted commit before `index`; -1 where there is none."""
        return next((i for i in range(index - 1, -1, -1) if not self.measured[i].tainted), -1)

    def untainted_after(self, index: int) -> int:
        """The index of the first untainted commit after `index`; the history's length where there is none."""
        end = len(self.measured)
        return next((i for i in range(index + 1, end) if not self.measured[i].tainted), end)

    def untainted(self, start: int, stop: int) -> list[MeasuredCommit]:
        return [commit for commit in self.measured[max(start, 0) : stop] if not commit.tainted]

    def tells_noise(self, commit: MeasuredCommit) -> bool:
        """Whether a commit's samples tell the noise of its value: those of one seed say nothing of others."""
        return not self.series.guarded or (commit.guard is not None and commit.guard.seeds > 1)

    def detection_series(self) -> detection.Series:
        """The history in detection's words and on a scale with ratios."""
        metric = self.series.metric
        values: Iterable[tuple[float, tuple[float, ...]]] = (
            (commit.value, commit.samples) for commit in self.measured
        )
        if metric.is_exponent:
            scaled = metric.on_ratio_scale
            values = ((scaled(value), tuple(map(scaled, samples))) for value, samples in values)
        return detection.Series(
            points=[
                detection.Point(value, samples if self.tells_noise(commit) else (), commit.tainted)
                for commit, (value, samples) in zip(self.measured, values, strict=True)
            ],
            better="lower" if metric.better == metric.Better.LOWER else "higher",
            kind=metric.kind,  # type: ignore[arg-type]  # the column's choices are detection's kinds
            exact=self.series.exact,
        )


def load_history(series: Series, line: Line | str, newest: int = NEWEST) -> History:
    """The newest points of a series on the line of a branch, or on what is known of the branch alone."""
    line = Line(line) if isinstance(line, str) else line
    rows = list(
        Point.objects.filter(line.lookup("run__commit"), series=series)
        .order_by("-position", "-run__commit_id", "-run_id")
        .values_list("run__commit_id", "position", "value", "samples", "tainted", "run_id")[:newest]
    )
    rows.reverse()
    measured = [merge_runs(list(of_commit)) for _, of_commit in groupby(rows, key=itemgetter(0, 1))]
    if series.guarded:
        measured = with_guards(measured, series, line)
    frozen = measured[int(len(measured) * FROZEN_SHARE)].position if len(rows) == newest else -1
    return History(series, measured, max(frozen, line.settled), line)


def load_recent(series: Series, line: Line, position: int) -> History:
    """As much of a history as judges what was measured at a position: all of it for an old commit."""
    recent = load_history(series, line, RECENT)
    return recent if position > recent.frozen_until else load_history(series, line)


def load_phases(history: History, metric: str) -> dict[str, dict[int, MeasuredCommit]]:
    """By phase and position: what a history's commits measured by another metric of its configuration."""
    if not history.measured:
        return {}
    rows = (
        Point.objects.filter(
            history.line.lookup("run__commit"),
            series__configuration=history.series.configuration_id,
            series__metric__name=metric,
            position__gte=history.positions[0],
        )
        .exclude(series__phase="")
        .order_by("series__phase", "position", "run__commit_id", "run_id")
        .values_list("series__phase", "run__commit_id", "position", "value", "samples", "tainted", "run_id")
    )
    phases: dict[str, dict[int, MeasuredCommit]] = {}
    for (phase, _, position), of_commit in groupby(rows, key=itemgetter(0, 1, 2)):
        phases.setdefault(phase, {})[position] = merge_runs([row[1:] for row in of_commit])
    return phases


def with_guards(measured: Sequence[MeasuredCommit], series: Series, line: Line) -> list[MeasuredCommit]:
    """The commits with how they stand to their guard, and those whose runs didn't report the quality.

    Of several runs of a commit those that report it count. What isn't reported is a tainted point: no level
    is read off it.
    """
    first = measured[0].position if measured else 0
    rows = (
        GuardResult.objects.filter(line.lookup("run__commit"), series=series, position__gte=first)
        .order_by("position", "run__commit_id", "run_id")
        .values_list("run__commit_id", "position", "run_id", "state", "minimum", "maximum", "seeds")
    )
    standings: dict[tuple[int, int], dict[int, GuardStanding]] = {}
    values = {run: commit.value for commit in measured for run in commit.runs}
    for commit, position, run, state, minimum, maximum, seeds in rows:
        bound = (
            broken_bound(minimum, maximum, values.get(run)) if state == GuardResult.State.VIOLATED else None
        )
        standings.setdefault((commit, position), {})[run] = GuardStanding(state, seeds, bound)
    known = {(commit.commit_id, commit.position): commit for commit in measured}
    for key, by_run in standings.items():
        there = known.get(key)
        standing = judged_standing(by_run, there.value if there else None)
        if there:
            known[key] = replace(there, guard=standing)
        else:
            known[key] = MeasuredCommit(*key, 0.0, (), tainted=True, runs=tuple(by_run), guard=standing)
    return sorted(known.values(), key=lambda commit: (commit.position, commit.commit_id))


def judged_standing(by_run: Mapping[int, GuardStanding], value: float | None) -> GuardStanding:
    """Of a commit's runs together: it keeps the guard where most of those that reported the quality do."""
    rows = list(by_run.values())
    reported = [row for row in rows if not row.unreported] if value is not None else []
    kept = [row for row in reported if not row.failed]
    agreeing = kept if 2 * len(kept) > len(reported) else [row for row in reported if row.failed]
    return (agreeing or rows)[-1]


def broken_bound(minimum: float | None, maximum: float | None, value: float | None) -> float | None:
    """The bound that a value lies beyond; None without a value."""
    if value is not None and minimum is not None and value < minimum:
        return minimum
    return maximum if value is not None else None


Row = tuple[int, int, float, list[float], bool, int]


def merge_runs(rows: Sequence[Row]) -> MeasuredCommit:
    """One commit's runs as one; tainted ones count only where there are no others."""
    if len(rows) == 1:
        ((commit_id, position, value, samples, tainted, run),) = rows
        return MeasuredCommit(commit_id, position, value, tuple(samples), tainted, (run,))
    clean = [row for row in rows if not row[4]]
    kept = clean or rows
    return MeasuredCommit(
        commit_id=kept[0][0],
        position=kept[0][1],
        value=float(median(row[2] for row in kept)),
        samples=tuple(sample for row in kept for sample in row[3]),
        tainted=not clean,
        runs=tuple(row[5] for row in kept),
    )
