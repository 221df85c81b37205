"""A series as detection reads it: one point per commit, in the order of the branch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

from django.db import connection

from dashboard import detection
from dashboard.models import GuardResult, Point, Run, Series
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.postgresql.prepared_statements import preparing_statements
from dashboard.regressions.series.branch_line import BranchLine, given_line

# All of a history is judged again by this many points at most: what is older was judged when it was new.
NEWEST = 2000
# A new point is judged by so many: the levels and the noise of those before them tell nothing of it.
RECENT = 400
# Near the cut the first level is short: what is found there isn't believed over what was found in full view.
FROZEN_SHARE = 0.1
# Of a history that wasn't read from rows.
NOWHERE = BranchLine("")
# Where a commit lacks a phase.
ABSENT = detection.Point(0.0, tainted=True)

# Of a point: its commit, position, value, samples, whether it is tainted, and its run.
Row = tuple[int, int, float, list[float], bool, int]
IN_ORDER = itemgetter(1, 0, 5)
# Of a point that was read by itself: its series, run, position, value, samples, and whether it is tainted.
StoredPoint = tuple[int, int, int, float, list[float], bool]
# One look into the index on (series, position) for each series, whatever its history.
NEWEST_ROWS = """
SELECT wanted.id, point.*
FROM unnest(%(series)s::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT run.commit_id, point.position, point.value, point.samples, point.tainted, point.run_id
    FROM dashboard_point point
    JOIN dashboard_run run ON run.id = point.run_id
    JOIN dashboard_commit commit ON commit.id = run.commit_id
    WHERE point.series_id = wanted.id AND {line}
    ORDER BY point.position DESC, run.commit_id DESC, point.run_id DESC
    LIMIT {newest}
) AS point
"""

# Of a guard's result: its commit, position and run, how it stands, the guard's bounds, over how many seeds.
GuardRow = tuple[int, int, int, str, float | None, float | None, int]
GUARD_COLUMNS = ("run__commit_id", "position", "run_id", "state", "minimum", "maximum", "seeds")


@dataclass(frozen=True, slots=True)
class GuardStatus:
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


class MeasuredCommit(NamedTuple):
    """What the runs of one commit say together: the median of their values, their samples in one pool."""

    commit_id: int
    position: int
    value: float
    samples: tuple[float, ...]
    tainted: bool
    runs: tuple[int, ...]
    guard: GuardStatus | None = None

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
    """The measured commits of a series in order, and the position up to which its changes are settled.

    `is_cut`: older ones were left out.
    """

    series: Series
    measured: Sequence[MeasuredCommit]
    frozen_until: int = -1
    line: BranchLine = NOWHERE
    is_cut: bool = False
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

    def shows_noise(self, commit: MeasuredCommit) -> bool:
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
                detection.Point(value, samples if self.shows_noise(commit) else (), commit.tainted)
                for commit, (value, samples) in zip(self.measured, values, strict=True)
            ],
            better="lower" if metric.better == metric.Better.LOWER else "higher",
            kind=metric.kind,  # type: ignore[arg-type]  # the column's choices are detection's kinds
            exact=self.series.exact,
            is_cut=self.is_cut,
        )


def load_history(series: Series, line: BranchLine | str, newest: int = NEWEST) -> History:
    """The newest points of a series on the line of a branch, or on what is known of the branch alone."""
    (history,) = load_histories([series], BranchLine(line) if isinstance(line, str) else line, newest)
    return history


def load_histories(series: Sequence[Series], line: BranchLine, newest: int = NEWEST) -> list[History]:
    """The same of many series, in their order, by as many queries as of one."""
    points = newest_rows([row.pk for row in series], line, newest)
    measured = {
        key: [merge_runs(list(of_commit)) for _, of_commit in groupby(rows, key=itemgetter(0, 1))]
        for key, rows in points.items()
    }
    measured |= with_guards([row.pk for row in series if row.guarded], measured, line)
    frozen = {
        key: measured[key][int(len(measured[key]) * FROZEN_SHARE)].position
        for key, rows in points.items()
        if len(rows) == newest
    }
    return [
        History(
            row, measured[row.pk], max(frozen.get(row.pk, -1), line.settled), line, is_cut=row.pk in frozen
        )
        for row in series
    ]


def load_recent(series: Sequence[Series], line: BranchLine, position: int) -> list[History]:
    """As much of histories as judges what was measured at a position: all of them for an old commit."""
    recent = load_histories(series, line, RECENT)
    old = [history.series for history in recent if position <= history.frozen_until]
    whole = {history.series.pk: history for history in load_histories(old, line)} if old else {}
    return [whole.get(history.series.pk, history) for history in recent]


def newest_rows(series: Sequence[int], line: BranchLine, newest: int) -> dict[int, list[Row]]:
    """By series its newest points on a line, so many at most; oldest first."""
    condition, parameters = line.condition("commit")
    rows: dict[int, list[Row]] = {key: [] for key in series}
    with preparing_statements(connection, binary=True), connection.cursor() as cursor:
        # The number stands in the statement itself: so many and no other are planned for.
        cursor.execute(
            NEWEST_ROWS.format(line=condition, newest=newest), {"series": list(series), **parameters}
        )
        for key, *row in cursor.fetchall():
            rows[key].append(tuple(row))
    for of_series in rows.values():
        of_series.sort(key=IN_ORDER)
    return rows


_PHASES_OF_METRIC: CompiledQuery[Any] = CompiledQuery(
    lambda: (
        Series.objects.filter(configuration=Parameter("configuration"), metric__name=Parameter("metric"))
        .exclude(phase="")
        .order_by("phase")
        .values_list("pk", "phase")
    )
)
_POINTS_SINCE: CompiledQuery[Any] = CompiledQuery(
    lambda: Point.objects.filter(
        series__in_array=Parameter("series"), position__gte=Parameter("position")
    ).values_list("series_id", "run_id", "position", "value", "samples", "tainted"),
    binary=True,
)
_COMMITS_OF_RUNS: CompiledQuery[Any] = CompiledQuery(
    lambda has_fork: Run.objects.filter(
        given_line("commit", has_fork), pk__in_array=Parameter("runs")
    ).values_list("pk", "commit_id"),
    binary=True,
)


def load_phases(history: History, metric: str) -> dict[str, list[detection.Point]]:
    """By phase what a history's commits measured by another metric of its configuration, commit by commit.

    Where a commit lacks a phase, it has a tainted point.
    """
    if not history.measured:
        return {}
    phases = dict(_PHASES_OF_METRIC.read_rows(configuration=history.series.configuration_id, metric=metric))
    if not phases:
        return {}
    # Without a join to each point: a few hundred runs have measured all the thousands of them.
    rows = _POINTS_SINCE.read_values(tuple, series=list(phases), position=history.positions[0])
    line = history.line
    runs = list({row[1] for row in rows})
    commits = dict(_COMMITS_OF_RUNS.read_values(tuple, line.has_fork, **line.given_values, runs=runs))
    found: dict[int, dict[int, list[StoredPoint]]] = {key: {} for key in phases}
    for row in rows:
        if row[1] in commits:
            of_series = found[row[0]]
            if (there := of_series.get(row[2])) is None:
                of_series[row[2]] = [row]
            else:
                there.append(row)
    positions = history.positions
    return {
        phase: [point_of_runs(found[key].get(position), commits) for position in positions]
        for key, phase in phases.items()
        if found[key]
    }


def point_of_runs(stored: Sequence[StoredPoint] | None, commits: Mapping[int, int]) -> detection.Point:
    """What the runs of a position's newest commit say together; a tainted point where there are none."""
    if stored is None:
        return ABSENT
    if len(stored) == 1:
        ((_, _, _, value, samples, tainted),) = stored
        return detection.Point(value, tuple(samples), tainted)
    rows: list[Row] = [
        (commits[run], position, value, samples, tainted, run)
        for _, run, position, value, samples, tainted in stored
    ]
    newest = max(row[0] for row in rows)
    merged = merge_runs(sorted((row for row in rows if row[0] == newest), key=IN_ORDER))
    return detection.Point(merged.value, merged.samples, merged.tainted)


_GUARD_RESULTS: CompiledQuery[Any] = CompiledQuery(
    lambda has_fork: (
        GuardResult.objects.filter(
            given_line("run__commit", has_fork),
            series__in_array=Parameter("series"),
            position__gte=Parameter("position"),
        )
        .order_by("position", "run__commit_id", "run_id")
        .values_list("series_id", *GUARD_COLUMNS)
    ),
    binary=True,
)


def with_guards(
    series: Sequence[int], measured: Mapping[int, Sequence[MeasuredCommit]], line: BranchLine
) -> dict[int, list[MeasuredCommit]]:
    """By guarded series its commits as they stand to the guard, and those that don't report the quality.

    Of several runs of a commit those that report it count. What isn't reported is a tainted point: no level
    is read off it.
    """
    if not series:
        return {}
    firsts = {key: measured[key][0].position if measured[key] else 0 for key in series}
    rows = _GUARD_RESULTS.read_values(
        tuple, line.has_fork, **line.given_values, series=list(series), position=min(firsts.values())
    )
    results: dict[int, list[GuardRow]] = {key: [] for key in series}
    for key, *row in rows:
        if row[1] >= firsts[key]:
            results[key].append(tuple(row))
    return {key: commits_with_guard(measured[key], results[key]) for key in series}


def commits_with_guard(
    measured: Sequence[MeasuredCommit], results: Iterable[GuardRow]
) -> list[MeasuredCommit]:
    """The commits with how each stands to its guard; one whose runs reported no quality is a tainted one."""
    statuses: dict[tuple[int, int], dict[int, GuardStatus]] = {}
    values = {run: commit.value for commit in measured for run in commit.runs}
    for commit, position, run, state, minimum, maximum, seeds in results:
        bound = (
            broken_bound(minimum, maximum, values.get(run)) if state == GuardResult.State.VIOLATED else None
        )
        statuses.setdefault((commit, position), {})[run] = GuardStatus(state, seeds, bound)
    known = {(commit.commit_id, commit.position): commit for commit in measured}
    for key, by_run in statuses.items():
        there = known.get(key)
        status = combined_status(by_run, there.value if there else None)
        if there:
            known[key] = there._replace(guard=status)
        else:
            known[key] = MeasuredCommit(*key, 0.0, (), tainted=True, runs=tuple(by_run), guard=status)
    return sorted(known.values(), key=lambda commit: (commit.position, commit.commit_id))


def combined_status(by_run: Mapping[int, GuardStatus], value: float | None) -> GuardStatus:
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
