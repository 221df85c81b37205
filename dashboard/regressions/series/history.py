"""A series as detection reads it: one point per commit, in the order of the branch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from statistics import median

from dashboard import detection
from dashboard.models import Point, Series
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
class MeasuredCommit:
    """What the runs of one commit say together: the median of their values, their samples in one pool."""

    commit_id: int
    position: int
    value: float
    samples: tuple[float, ...]
    tainted: bool
    runs: tuple[int, ...]


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
                detection.Point(value, samples, commit.tainted)
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
