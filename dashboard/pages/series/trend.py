"""What a series page, its calls and its exports show: read once, by what the address asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
from django.core.exceptions import BadRequest
from django.core.paginator import Page
from django.http import HttpRequest

from dashboard.charts.thinning import thin_line
from dashboard.environments import UNKNOWN, Difference, compare_environments
from dashboard.models import Change, Series
from dashboard.pages.paging import requested_page
from dashboard.pages.series.baseline import NOISE_POINTS, SeriesBaseline, read_baseline
from dashboard.pages.series.query import BASELINE, FIRST, TrendQuery, read_trend_query
from dashboard.querysets import baselines, trends
from dashboard.querysets import series as series_queries
from dashboard.querysets.series_points import SeriesPoint, newest_points, points_of_runs
from dashboard.querysets.trends import CommitEvent, LimitRow, TrendRow, environment_values
from dashboard.sentences.measurements.environment_changes import describe_differences
from dashboard.sentences.series.trends import line_label

# So many points are drawn, of a longer line those that tell; and of the lines beside it together.
MOST_DRAWN, MOST_DRAWN_OVERLAID = 400, 240
MOST_TAINTED_DRAWN = 80
MOST_MARKERS = 40
# Of the table below the chart, which is waited for until it is laid out.
ROWS_PER_PAGE = 25


@dataclass(frozen=True, slots=True)
class Reference:
    """From which value changes are drawn. `problem`: a code of why there is none."""

    name: str = ""
    value: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class OverlaidLine:
    """Another line with its untainted (position, run, value), and the value its changes are drawn from."""

    name: str
    address: str
    series: Series
    branch: str
    rows: Sequence[tuple[int, int, float]]
    drawn: Sequence[tuple[int, int, float]]
    reference: float | None


# A line beside the page's own as it was read: its series, its branch, and its (position, run, value).
OverlaidRows = tuple[Series, str, list[tuple[int, int, float]]]


class ListedRun(NamedTuple):
    """A row of the table: a run of the page's own branch, or one of another branch that only a line beside
    it has. `series` is the key of the series that the run left its point in."""

    position: int
    run: int
    series: int
    branch: str


@dataclass(frozen=True, slots=True)
class EnvironmentMarker:
    """What changed beside the code before a run: in a word for the chart, and in full."""

    position: int
    run: int
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class SeriesTrend:
    """`rows` are those of the address, `shown` those of them that its zoom leaves, `drawn` those that the
    chart has, `listed` those on this page of the table, newest first; `points` have details, by series and
    run."""

    series: Series
    query: TrendQuery
    branch: str
    rows: Sequence[TrendRow]
    shown: Sequence[TrendRow]
    drawn: Sequence[TrendRow]
    listed: Page[ListedRun]
    points: Mapping[tuple[int, int], SeriesPoint]
    changes: Sequence[Change]
    limits: Sequence[LimitRow]
    events: Sequence[CommitEvent]
    markers: Sequence[EnvironmentMarker]
    lines: Sequence[OverlaidLine]
    baseline: SeriesBaseline
    reference: Reference
    related: Sequence[Series]

    @property
    def is_on_project_branch(self) -> bool:
        return self.branch == self.series.case.project.branch

    @property
    def details(self) -> list[SeriesPoint]:
        """All that were read of the rows' points, oldest first."""
        return details_of_rows(self.points, self.series.pk, self.rows)

    def details_of(self, rows: Sequence[TrendRow]) -> list[SeriesPoint]:
        """Of those rows that have them."""
        keys = ((self.series.pk, row.run) for row in rows)
        return [self.points[key] for key in keys if key in self.points]


def narrow_row(point: SeriesPoint) -> TrendRow:
    return TrendRow(point.position, point.run, point.value, point.tainted, point.environment, point.machine)


def details_of_rows(
    points: Mapping[tuple[int, int], SeriesPoint], series: int, rows: Sequence[TrendRow]
) -> list[SeriesPoint]:
    """Those that these rows of a series have, in their order; `points` by series and run."""
    # Beside them are those of the same series on other branches.
    runs = {row.run for row in rows}
    own = (point for point in points.values() if point.series == series and point.run in runs)
    return sorted(own, key=attrgetter("position", "run"))


def read_series_trend(request: HttpRequest, series: Series) -> SeriesTrend:
    """BadRequest with a sentence where the address can't be read, or names a line that can't be drawn."""
    query = read_trend_query(request)
    project = series.case.project
    branch = query.branch or project.branch
    details = _read_few_points(series, branch, query)
    if details is None:
        rows = trends.newest_rows(series, branch, query.show, query.until)
    else:
        rows = [narrow_row(point) for point in details]
    shown = rows_within(rows, query.zoom)
    changes = _read_changes(series, branch, rows)
    related = trends.related_series(series, [name.series for name in query.beside if name.series])
    drawn = choose_drawn(shown, [change.position for change in changes])
    beside = _read_overlaid(series, query, branch, shown, related)
    listed = _list_runs(request, series, branch, shown, beside)
    if details is None:
        # The newest ones are what the baseline is compared with.
        details = _read_details(series, [*drawn, *rows[-NOISE_POINTS - 1 :], *listed], beside)
    points = {(point.series, point.run): point for point in details}
    own = details_of_rows(points, series.pk, rows)
    baseline = read_baseline(request, series, branch, own, changes)
    reference, values = _read_reference(series, query, rows, baseline, [other for other, _, _ in beside])
    span = (shown[0].position, shown[-1].position) if shown else None
    return SeriesTrend(
        series=series,
        query=query,
        branch=branch,
        rows=rows,
        shown=shown,
        drawn=drawn,
        listed=listed,
        points=points,
        changes=changes,
        limits=trends.limit_rows(series, *span) if span else [],
        events=trends.commit_events(series, branch, *span) if span else [],
        markers=environment_markers(rows),
        lines=[
            OverlaidLine(
                name=line_label(other, line_branch, series, branch),
                address=str(name),
                series=other,
                branch=line_branch,
                rows=lines,
                drawn=choose_drawn_overlaid(lines, len(beside)),
                reference=_line_reference(reference, other, lines, values),
            )
            for name, (other, line_branch, lines) in zip(query.beside, beside, strict=True)
        ],
        baseline=baseline,
        reference=reference,
        related=related,
    )


def _read_few_points(series: Series, branch: str, query: TrendQuery) -> list[SeriesPoint] | None:
    """The points with their details where each is drawn: nothing is gained by reading narrow rows first.

    None where there are more, or lines beside them.
    """
    # About as many points as positions: few commits are measured twice.
    latest = getattr(series, "latest", None)
    is_short = query.show <= MOST_DRAWN or latest is None or latest.position < MOST_DRAWN
    if query.beside or not is_short:
        return None
    points = newest_points(series, min(query.show, MOST_DRAWN + 1), query.until, branch)
    return points if len(points) <= MOST_DRAWN else None


def _read_details(
    series: Series, rows: Sequence[TrendRow | ListedRun], beside: Sequence[OverlaidRows]
) -> list[SeriesPoint]:
    """Of these rows, and of those that the lines beside them draw, in one query."""
    wanted = {row.run for row in rows}
    wanted |= {run for _, _, line in beside for _, run, _ in choose_drawn_overlaid(line, len(beside))}
    return points_of_runs([series.pk, *(other.pk for other, _, _ in beside)], wanted)


def rows_within(rows: Sequence[TrendRow], zoom: tuple[int, int] | None) -> Sequence[TrendRow]:
    """The rows between two positions; all where none is there."""
    if zoom is None:
        return rows
    return [row for row in rows if zoom[0] <= row.position <= zoom[1]] or rows


def _read_changes(series: Series, branch: str, rows: Sequence[TrendRow]) -> list[Change]:
    if not rows:
        return []
    changes = series_queries.changes_between(series, rows[0].position, rows[-1].position)
    if branch == series.case.project.branch:
        return changes
    return [change for change in changes if change.first_bad.branch == branch]


def choose_drawn(
    rows: Sequence[TrendRow], change_positions: Sequence[int], most: int = MOST_DRAWN
) -> list[TrendRow]:
    """All where they are few; else the extremes and ends of each stretch, and both sides of each change.

    Tainted ones are chosen apart, so that none of them hides an extreme that counts.
    """
    if len(rows) <= most:
        return list(rows)
    positions = column_of_rows(rows, "position", np.int64)
    values = column_of_rows(rows, "value", np.float64)
    tainted = column_of_rows(rows, "tainted", np.bool_)
    clean, doubtful = np.flatnonzero(~tainted), np.flatnonzero(tainted)
    after = np.searchsorted(positions[clean], change_positions)
    sides = np.concatenate([after, after - 1])
    kept = thin_line(values[clean], most, sides[(sides >= 0) & (sides < len(clean))])
    crosses = thin_line(values[doubtful], MOST_TAINTED_DRAWN, np.array([], dtype=int))
    return [rows[index] for index in np.sort(np.concatenate([clean[kept], doubtful[crosses]]))]


def column_of_rows(rows: Sequence[TrendRow], field: str, kind: type[np.generic]) -> np.ndarray:
    """What the rows have in a field (n,)."""
    values = map(itemgetter(TrendRow._fields.index(field)), rows)
    return np.fromiter(values, kind, len(rows))


def choose_drawn_overlaid(rows: Sequence[tuple[int, int, float]], lines: int) -> list[tuple[int, int, float]]:
    values = np.array([value for _, _, value in rows])
    kept = thin_line(values, MOST_DRAWN_OVERLAID // max(1, lines), np.array([], dtype=int))
    return [rows[index] for index in kept]


def _list_runs(
    request: HttpRequest,
    series: Series,
    branch: str,
    shown: Sequence[TrendRow],
    beside: Sequence[OverlaidRows],
) -> Page[ListedRun]:
    """What the table has, newest first. Another branch has other commits at the same positions: of the first
    of its lines that has a value there each gets a row of its own."""
    others: dict[tuple[str, int], ListedRun] = {}
    for other, line_branch, rows in beside:
        if line_branch != branch:
            for position, run, _ in rows[::-1]:
                others.setdefault((line_branch, position), ListedRun(position, run, other.pk, line_branch))
    listed: list[TrendRow | ListedRun] = [*shown[::-1], *others.values()]
    if others:
        # Sorting keeps the order of equals: at a position the page's own commit stands first.
        listed.sort(key=lambda row: -row.position)
    page = requested_page(request, listed, ROWS_PER_PAGE)
    page.object_list = [
        row if isinstance(row, ListedRun) else ListedRun(row.position, row.run, series.pk, branch)
        for row in page
    ]
    return page


def _read_overlaid(
    series: Series, query: TrendQuery, branch: str, shown: Sequence[TrendRow], related: Sequence[Series]
) -> list[OverlaidRows]:
    """The lines that the address names, over the commits that are shown. Raises BadRequest."""
    if not query.beside:
        return []
    by_key = {other.pk: other for other in related if is_comparable(other, series)}
    lines = []
    for name in query.beside:
        other = series if name.series in (None, series.pk) else by_key.get(name.series)
        if other is None:
            raise BadRequest(f"beside={name}: no series of this project with this metric has that number.")
        lines.append((other, name.branch or branch))
    if not shown:
        return [(other, line_branch, []) for other, line_branch in lines]
    # A younger branch goes on beyond the newest commit of its elder.
    is_newest = query.until is None and query.zoom is None
    rows = trends.overlaid_rows(lines, shown[0].position, None if is_newest else shown[-1].position)
    return [(other, line_branch, found) for (other, line_branch), found in zip(lines, rows, strict=True)]


def is_comparable(other: Series, series: Series) -> bool:
    return (other.metric_id, other.phase) == (series.metric_id, series.phase)


def _read_reference(
    series: Series,
    query: TrendQuery,
    rows: Sequence[TrendRow],
    baseline: SeriesBaseline,
    beside: Sequence[Series],
) -> tuple[Reference, dict[int, float]]:
    """Where changes are drawn from, and the values of all series there where that is a commit."""
    name = query.relative
    if not name:
        return Reference(), {}
    if series.metric.has_sign or series.metric.is_exponent:
        return Reference(name, problem="sign"), {}
    if name == FIRST:
        first = next((row.value for row in rows if not row.tainted), None)
        return _checked_reference(name, first, "no points"), {}
    if name == BASELINE:
        return _checked_reference(name, baseline.value if baseline.points else None, "no baseline"), {}
    commit = baselines.find_named_commit(series.case.project, name)
    if commit is None:
        return Reference(name, problem="unknown"), {}
    values = trends.values_at_commit([series, *beside], commit)
    return _checked_reference(name, values.get(series.pk), "not measured"), values


def _checked_reference(name: str, value: float | None, problem: str) -> Reference:
    if value is None:
        return Reference(name, problem=problem)
    return Reference(name, value) if value else Reference(name, problem="zero")


def _line_reference(
    reference: Reference,
    series: Series,
    rows: Sequence[tuple[int, int, float]],
    values: Mapping[int, float],
) -> float | None:
    """Each line's own first value, or its value at the chosen commit; of a baseline all have the same."""
    if reference.value is None:
        return None
    if reference.name == BASELINE:
        return reference.value
    if reference.name == FIRST:
        return next((value for _, _, value in rows if value), None)
    return values.get(series.pk) or None


def environment_markers(rows: Sequence[TrendRow]) -> list[EnvironmentMarker]:
    """A marker for each of the newest runs that had another environment than the run before it, oldest first.

    A machine that takes turns with others is compared with its own run before: that machines of a pool differ
    is no change. Nor is what another machine's run before has had already: one upgrade is one marker, however
    many machines meet it. Only the environments of those runs are read.
    """
    newest: dict[str | None, TrendRow] = {}
    moved = []
    for before, row in pairwise(rows):
        compared = before
        if row.machine != before.machine:
            newest[before.machine] = before
            compared = newest.get(row.machine, before)
        if compared.environment != row.environment or compared.machine != row.machine:
            moved.append((compared, before, row))
    moved = moved[-MOST_MARKERS:]
    values = environment_values({row.environment for rows in moved for row in rows})
    markers = []
    for own, before, after in moved:
        old, last, new = (
            {**values[row.environment], "machine": row.machine} if row.environment in values else UNKNOWN
            for row in (own, before, after)
        )
        differences = compare_environments(old, new)
        if own is not before:
            met = {difference.label for difference in compare_environments(last, new)}
            differences = [difference for difference in differences if difference.label in met]
        if differences:
            text = describe_differences(differences)
            markers.append(EnvironmentMarker(after.position, after.run, _marker_label(differences), text))
    return markers


def _marker_label(differences: Sequence[Difference]) -> str:
    """`torch`, or `driver + 3` where more changed: a chart has room for one word."""
    first, *others = differences
    return f"{first.label} + {len(others)}" if others else first.label
