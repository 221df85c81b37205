"""Crossed limits: the manifest's bound is the judgement, so no proof is needed.

Read along the line of history, all that a run may have changed: where a crossing begins and ends doesn't
depend on the order in which commits are measured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Least

from dashboard.models import Change, Limit, Run, Series
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.regressions.decision import facts
from dashboard.regressions.decision.limit_outcomes import crossed_range
from dashboard.regressions.row_facts import series_fact
from dashboard.regressions.series.branch_line import BranchLine, given_line
from dashboard.regressions.series.limit_episodes import (
    Episode,
    LimitPoint,
    StoredPoint,
    find_episodes,
    is_gone,
)
from dashboard.repositories import DETACHED

# So many measured commits are read before what is looked at: what was open before those is known.
WINDOW_COMMITS = 100


@dataclass(frozen=True, slots=True)
class LimitsMeasured:
    """What was measured of limits, or has gone: series with limits, and the position from which on their line
    may stand to them otherwise than before. `run`: by which, wherever its commit lies.
    """

    series: frozenset[int] = frozenset()
    position: int = 0
    run: int = 0


class LimitRow(NamedTuple):
    """How a run stood to a limit, and the regression that tells of it, if one does."""

    pk: int
    series: int
    run: int
    position: int
    minimum: float | None
    maximum: float | None
    value: float
    commit: facts.Commit
    regression: int | None
    withdrawn: bool
    has_changes: bool
    first_bad: int | None
    last_good: int | None
    recovered_by: int | None

    @property
    def link(self) -> facts.LimitLink | None:
        return facts.LimitLink(self.pk, self.regression, self.has_changes) if self.regression else None


@dataclass(frozen=True, slots=True)
class LimitCrossings:
    """The crossings that a run may have changed, and the regressions that tell of those that are gone.

    `regressions` and `commits` are the keys of what a decision on them has to know.
    """

    episodes: tuple[facts.LimitEpisode, ...] = ()
    kept: tuple[facts.LimitLink, ...] = ()
    regressions: frozenset[int] = frozenset()
    commits: frozenset[int] = frozenset()


def _build_limits_along_line(has_fork: bool) -> QuerySet[Any, Any]:
    on_line = given_line("run__commit", has_fork) | Q(run=Parameter("run"))
    own = Limit.objects.filter(on_line, series__in_array=Parameter("series"), tainted=False)
    # Other limits of the regressions that tell of these: one of several is over once all of them are.
    reported = Limit.objects.filter(series__in_array=Parameter("series")).exclude(regression=None)
    beside = Limit.objects.filter(regression__in=reported.values("regression"))
    window_start = _window_before(own, Parameter("position", IntegerField()))
    # An open crossing is read from before its beginning, however long ago: it began there because of those.
    of_open = own.filter(_is_open_since(window_start)).order_by("position").values("position")[:1]
    start = _window_before(own, Least(Subquery(of_open), Parameter("position", IntegerField())))
    rows = Limit.objects.filter(
        on_line,
        Q(series__in_array=Parameter("series")) | Q(series__in=beside.values("series")),
        Q(position__gte=start) | _is_open_since(start),
        tainted=False,
    )
    return (
        rows.annotate(
            withdrawn=Q(regression__withdrawn_at__isnull=False),
            has_changes=Exists(Change.objects.filter(regression=OuterRef("regression"))),
            first_bad=F("regression__first_bad"),
            last_good=F("regression__last_good"),
            recovered=F("regression__recovered_by"),
        )
        .order_by("series", "position", "run__commit", "run")
        .values_list(
            *("pk", "series_id", "run_id", "position", "minimum", "maximum", "value", "run__commit_id"),
            *("run__commit__hash", "run__commit__branch", "run__commit__parents"),
            *("regression_id", "withdrawn", "has_changes", "first_bad", "last_good", "recovered"),
        )
    )


def _window_before(own: QuerySet[Limit], position: Any) -> Coalesce:
    """The position WINDOW_COMMITS measured commits before one."""
    before = own.filter(position__lte=position).order_by("-position").values("position").distinct()
    return Coalesce(Subquery(before[WINDOW_COMMITS - 1 : WINDOW_COMMITS]), Value(0))


def _is_open_since(start: Coalesce) -> Q:
    """Limits that a regression tells of which still was open there."""
    still_open = Q(regression__recovered_by=None) | Q(regression__recovered_by__position__gte=start)
    return Q(regression__isnull=False, regression__withdrawn_at=None) & still_open


_LIMITS_ALONG_LINE: CompiledQuery[Any] = CompiledQuery(_build_limits_along_line)


def read_limits(measured: LimitsMeasured, line: BranchLine) -> list[LimitRow]:
    """How the runs of a line stand to limits, undisturbed ones alone."""
    given = {"run": measured.run, "series": list(measured.series), "position": measured.position}
    return _LIMITS_ALONG_LINE.read_values(limit_row, line.has_fork, **line.given_values, **given)


def limit_row(row: tuple[Any, ...]) -> LimitRow:
    measured, (commit, sha, branch, parents), regression_fields = row[:7], row[7:11], row[11:]
    place = facts.Commit(commit, sha, branch, measured[3], tuple(parents))
    return LimitRow._make((*measured, place, *regression_fields))


def limits_of_run(run: Run, series: Collection[int]) -> LimitsMeasured:
    """That it measured limits of these series.

    Nothing of a commit that no branch holds: such have no order among them, and none begins a crossing.
    """
    if run.commit.branch == DETACHED:
        return LimitsMeasured()
    return LimitsMeasured(frozenset(series), run.commit.position, run.pk)


def limits_of_commits(commits: Collection[int]) -> LimitsMeasured:
    """What was measured of limits at commits that have left a branch, or returned to one."""
    rows = Limit.objects.filter(run__commit__in=commits, tainted=False)
    found = list(rows.values_list("series", "position").distinct())
    return LimitsMeasured(
        frozenset(series for series, _ in found), min((position for _, position in found), default=0)
    )


def limit_crossings(measured: LimitsMeasured, line: BranchLine) -> LimitCrossings:
    """What limits say along a line, where it may be otherwise than is stored.

    With all that the same regressions tell of: at one commit several cases and pools may cross theirs.
    """
    while True:
        rows = read_limits(measured, line)
        found = crossings_along_line(rows, measured.position, line)
        known = measured.series | {row.series for row in rows}
        beside = limit_series_at(found.commits) - known
        if not beside:
            return found
        measured = replace(measured, series=known | beside)


def limit_series_at(commits: Collection[int]) -> set[int]:
    """The series of limits that the regressions at these commits tell of."""
    if not commits:
        return set()
    reported = Limit.objects.filter(regression__first_bad__in=commits, regression__withdrawn_at=None)
    return set(reported.values_list("series", flat=True).distinct())


def crossings_along_line(rows: Sequence[LimitRow], changed_from: int, line: BranchLine) -> LimitCrossings:
    """What these rows say; what was over before position `changed_from` is as it was."""
    episodes: list[tuple[int, Episode]] = []
    kept: list[facts.LimitLink] = []
    stored: dict[int, list[StoredPoint]] = {}
    places: dict[int, facts.Commit] = {}
    for series, of_series in groupby(rows, key=lambda row: row.series):
        by_commit = [list(runs) for _, runs in groupby(of_series, key=lambda row: row.commit.pk)]
        points = [limit_point(runs) for runs in by_commit]
        stored[series] = [StoredPoint(runs[0].position, max(row.pk for row in runs)) for runs in by_commit]
        places |= {runs[0].position: runs[0].commit for runs in by_commit}
        found = find_episodes(points)
        episode_links = {link for episode in found for link in episode.links}
        episodes += [(series, episode) for episode in found if episode.first.commit.branch == line.branch]
        kept += [link for point in points for link in point.links if link not in episode_links]
    standing = {row.regression: row for row in rows if row.regression and not row.withdrawn}
    kept = [link for link in kept if link.regression in standing]
    groups = [with_gone(group, stored, places, line) for group in group_by_commit(episodes)]
    groups = unsettled_groups(groups, changed_from, standing, {link.regression for link in kept})
    of_episodes = {link.regression for group in groups for _, episode in group for link in episode.links}
    return LimitCrossings(
        episodes=tuple(with_series([pair for group in groups for pair in group])),
        kept=tuple(kept),
        regressions=frozenset(of_episodes | {link.regression for link in kept}),
        commits=frozenset(group[0][1].first.commit.pk for group in groups),
    )


def limit_point(runs: Sequence[LimitRow]) -> LimitPoint:
    """One commit's runs as one: the median of what they measured, to the bounds of the newest."""
    value, newest = float(median(row.value for row in runs)), runs[-1]
    within = [
        distance
        for distance in (
            None if newest.minimum is None else value - newest.minimum,
            None if newest.maximum is None else newest.maximum - value,
        )
        if distance is not None
    ]
    margin = min(within, default=0.0)
    over = [row for row in runs if is_over(row, newest)]
    # What tells of it already goes on doing so.
    reported = [row for row in over if row.regression] or over
    below = newest.minimum is not None and value < newest.minimum
    bound = newest.minimum if below else newest.maximum
    return LimitPoint(
        commit=newest.commit,
        value=value,
        margin=margin,
        bound=0.0 if bound is None else bound,
        row=reported[-1].pk if reported else 0,
        links=tuple(link for row in runs if (link := row.link)),
    )


def is_over(row: LimitRow, bounds: LimitRow) -> bool:
    under = bounds.minimum is not None and row.value < bounds.minimum
    return under or (bounds.maximum is not None and row.value > bounds.maximum)


Group = list[tuple[int, Episode]]


def group_by_commit(episodes: Iterable[tuple[int, Episode]]) -> list[Group]:
    """Those of several series that begin at one commit together; in the order of the line."""
    by_commit: dict[int, Group] = {}
    for pair in sorted(episodes, key=lambda pair: (pair[1].first.commit.position, pair[0])):
        by_commit.setdefault(pair[1].first.commit.pk, []).append(pair)
    return list(by_commit.values())


def with_gone(
    group: Group,
    stored: Mapping[int, Sequence[StoredPoint]],
    places: Mapping[int, facts.Commit],
    line: BranchLine,
) -> Group:
    """A group whose series that aren't measured any more say since when; of a series alone nobody knows.

    `places`: the commits at the positions of what is stored.
    """
    together = sorted(point for series, _ in group for point in stored[series])

    def first_without(series: int) -> facts.Commit | None:
        own = stored[series]
        if not is_gone(own, together):
            return None
        # Only looked for where it seems to be gone, which is rare.
        own = with_disturbed(own, disturbed_since(series, own[-1].position, line), together)
        if not is_gone(own, together):
            return None
        return places[min(point.position for point in together if point.position > own[-1].position)]

    return [(series, replace(episode, gone=first_without(series))) for series, episode in group]


def with_disturbed(
    own: Sequence[StoredPoint], disturbed: Iterable[StoredPoint], together: Sequence[StoredPoint]
) -> list[StoredPoint]:
    """What was stored of a series, with the disturbed runs of the time before it was gone.

    One that comes later says nothing of the limit, and so doesn't open again what is over.
    """
    points = [*own]
    for point in disturbed:
        until = [other for other in together if other.position < point.position and other.row < point.row]
        if is_gone(points, until):
            break
        points.append(point)
    return points


def disturbed_since(series: int, position: int, line: BranchLine) -> list[StoredPoint]:
    """What disturbed runs after a position have stored of a series: it is measured all the same."""
    rows = Limit.objects.filter(
        line.lookup("run__commit"), series=series, tainted=True, position__gt=position
    )
    return [StoredPoint(*row) for row in rows.order_by("position", "pk").values_list("position", "pk")]


def unsettled_groups(
    groups: Sequence[Group], changed_from: int, standing: Mapping[int, LimitRow], lost: Collection[int]
) -> list[Group]:
    """Those that stand otherwise than is stored, with all that the same regressions tell of; and what those
    tell of that have lost a limit.
    """
    asked = [
        group for group in groups if may_have_changed(group, changed_from) and not is_settled(group, standing)
    ]
    while True:
        keys = {link.regression for group in asked for _, episode in group for link in episode.links} | {
            *lost
        }
        more = [
            group
            for group in groups
            if group in asked
            or any(link.regression in keys for _, episode in group for link in episode.links)
        ]
        if len(more) == len(asked):
            return more
        asked = more


def may_have_changed(group: Group, position: int) -> bool:
    """False where all that belongs to it lies before a position: nothing that is stored there changes it."""
    return any(episode.clear is None or episode.clear >= position for _, episode in group)


def is_settled(group: Group, standing: Mapping[int, LimitRow]) -> bool:
    """True where one regression tells of all of it, and of nothing else of these series, as it is."""
    links = [link for _, episode in group for link in episode.links]
    if sorted(link.limit for link in links) != sorted(episode.first.row for _, episode in group):
        return False
    if len({link.regression for link in links}) != 1 or links[0].regression not in standing:
        return False
    row = standing[links[0].regression]
    crossed = crossed_range([episode.commits for _, episode in group])
    commits = (crossed.last_good, crossed.first_bad, crossed.recovered_by)
    stored = (row.last_good, row.first_bad, row.recovered_by)
    return row.has_changes or stored == tuple(commit.pk if commit else None for commit in commits)


def with_series(episodes: Sequence[tuple[int, Episode]]) -> Iterator[facts.LimitEpisode]:
    """With what is known of their series, which is read where there is something to tell."""
    keys = {series for series, _ in episodes}
    rows = Series.objects.select_related("metric", "configuration").in_bulk(keys) if keys else {}
    for series, episode in episodes:
        first, commits = episode.first, episode.commits
        yield facts.LimitEpisode(
            limit=first.row,
            series=series_fact(rows[series]),
            commit=commits.first,
            value=first.value,
            bound=first.bound,
            before=commits.before,
            value_before=episode.before.value if episode.before else None,
            kept=commits.kept,
            links=episode.links,
            gone=commits.gone,
        )
