"""What the comparison of two commits reads: names, runs, points, profiles; nothing grows with history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import CharField, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Left

from dashboard.models import Commit, Experiment, Metric, Point, Project, Run, Series, SeriesLatest
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.baselines import other_branches
from dashboard.querysets.runs import runs_with_related

SUGGESTED_COMMITS = 25
SUGGESTED_TAGS = 40
# Of one commit: the newest ones.
MOST_RUNS = 400
SHORT_HASH = 10
# A hash that begins as written is greater than that, and less than that with a letter behind all digits.
BEHIND_DIGITS = "g"


def find_commits(
    project: Project, names: Sequence[str], beginnings: Sequence[str], most: int
) -> list[Commit]:
    """The newest `most` commits that have one of these tags, or whose hash begins with a beginning."""
    if not names and not beginnings:
        return []
    values: dict[str, Any] = {f"tags{index}": [name] for index, name in enumerate(names)}
    for index, beginning in enumerate(beginnings):
        values |= {f"least{index}": beginning, f"most{index}": beginning + BEHIND_DIGITS}
    return _NAMED_COMMITS.read_rows(len(names), len(beginnings), most, project=project.pk, **values)


def _build_named_commits(names: int, beginnings: int, most: int) -> QuerySet[Commit]:
    wanted = Q()
    for index in range(names):
        wanted |= Q(tags__contains=Parameter(f"tags{index}")) & ~Q(tags=[])
    for index in range(beginnings):
        wanted |= Q(hash__gte=Parameter(f"least{index}"), hash__lt=Parameter(f"most{index}"))
    return Commit.objects.filter(wanted, project=Parameter("project")).order_by("-position")[:most]


_NAMED_COMMITS = CompiledQuery(_build_named_commits)


@dataclass(frozen=True, slots=True)
class BranchTip:
    """The newest commit of a branch that has values, else the newest; `newer` ones have none yet."""

    commit: Commit
    newer: int


def newest_on_branches(project: Project, names: Collection[str]) -> dict[str, BranchTip]:
    """By name those of these that are branches of which commits are known."""
    tips = {tip.branch: BranchTip(tip, tip.newest - tip.position) for tip in _first_of_each(project, names)}
    unmeasured = [name for name in names if name not in tips]
    for newest in _first_of_each(project, unmeasured, measured=False):
        tips[newest.branch] = BranchTip(newest, 0)
    return tips


def _first_of_each(project: Project, names: Iterable[str], *, measured: bool = True) -> Iterable[Any]:
    """The newest commit of each branch, in one query; no more than that is read of any."""
    rows = []
    for name in dict.fromkeys(names):
        on_branch = Commit.objects.filter(project=project, branch=name).order_by("-position")
        newest = on_branch.annotate(newest=Subquery(on_branch.values("position")[:1]))
        rows.append((newest.filter(has_values()) if measured else newest)[:1])
    if not rows:
        return []
    return rows[0].union(*rows[1:], all=True)


def has_values() -> Exists:
    """Of a commit, whether a run of it has points."""
    runs = Run.objects.filter(commit=OuterRef("pk"), state=Run.State.DONE)
    return Exists(runs.exclude(origin=Run.Origin.SENTINEL))


def known_names(project: Project) -> list[tuple[str, str, str]]:
    """(kind, name, subject) of what may be compared: branches, tags, and the newest commits with values."""
    branches = [project.branch, *other_branches(project)]
    others = _KNOWN_TAGS_AND_COMMITS.read_rows(project=project.pk, branch=project.branch)
    return [*(("branch", name, "") for name in branches), *others]


def _build_known_names() -> QuerySet[Any]:
    newest = Commit.objects.filter(has_values(), project=Parameter("project"), branch=Parameter("branch"))
    commits = newest.order_by("-position").annotate(kind=_as_text("commit"), name=Left("hash", SHORT_HASH))
    tagged = Commit.objects.filter(project=Parameter("project")).exclude(tags=[]).order_by("-pk")
    tags = tagged.annotate(kind=_as_text("tag"), name=Func(F("tags"), function="unnest"))
    rows = [
        part.values_list("kind", "name", "subject")[:most]
        for part, most in ((tags, SUGGESTED_TAGS), (commits, SUGGESTED_COMMITS))
    ]
    return rows[0].union(rows[1], all=True)


_KNOWN_TAGS_AND_COMMITS: CompiledQuery[Any] = CompiledQuery(_build_known_names)


def _as_text(text: str) -> Value:
    return Value(text, CharField())


def runs_of_commits(commits: Iterable[int]) -> list[Run]:
    """The newest runs of these commits that have points, with what they are compared by."""
    return _RUNS_OF_COMMITS.read_rows(commits=list(set(commits)))


def _build_runs_of_commits() -> QuerySet[Run]:
    rows = runs_with_related().filter(commit__in_array=Parameter("commits"), state=Run.State.DONE)
    return rows.exclude(origin=Run.Origin.SENTINEL).order_by("-pk")[: 2 * MOST_RUNS]


_RUNS_OF_COMMITS = CompiledQuery(_build_runs_of_commits)


class ComparedPoint(NamedTuple):
    """One run's value in a series; points of one series share it, and its metric."""

    run_id: int
    value: float
    low: float | None
    high: float | None
    samples: list[float]
    tainted: bool
    series: Series


def headline_points(runs: Collection[Run]) -> tuple[list[ComparedPoint], dict[int, list[float]]]:
    """Of many runs the headline points of a case, and the newest values of each of its series; no other
    points of theirs are looked at."""
    rows = _HEADLINE_POINTS.read_values(
        tuple,
        configurations=list({run.configuration_id for run in runs}),
        positions=list({run.commit.position for run in runs}),
        runs=[run.pk for run in runs],
    )
    recent = {row[len(_OF_POINT)]: row[-1] for row in rows if row[-1] is not None}
    return _make_compared(row[:-1] for row in rows), recent


def points_of_runs(runs: Iterable[int]) -> list[ComparedPoint]:
    """All of a few runs."""
    return _make_compared(_POINTS_OF_RUNS.read_values(tuple, runs=list(runs)))


def recent_values(series: Iterable[int]) -> dict[int, list[float]]:
    """By series its newest values, which tell the noise between its runs."""
    return dict(_RECENT_VALUES.read_values(tuple, series=list(series)))


_OF_POINT = ("run_id", "value", "low", "high", "samples", "tainted")
_OF_SERIES = ("pk", "configuration_id", "metric_id", "phase", "exact", "headline")
_OF_METRIC = ("name", "unit", "better", "kind")
_COMPARED = (
    *_OF_POINT,
    *(f"series__{name}" for name in _OF_SERIES),
    *(f"series__metric__{name}" for name in _OF_METRIC),
)


def _make_compared(rows: Iterable[Sequence[Any]]) -> list[ComparedPoint]:
    """An object for each series and metric, not for each of the hundreds of points."""
    metrics: dict[int, Metric] = {}
    series: dict[int, Series] = {}
    points = []
    own = len(_OF_POINT)
    for row in rows:
        found = series.get(row[own])
        if found is None:
            found = series[row[own]] = _make_series(row[own:], metrics)
        points.append(ComparedPoint._make((*row[:own], found)))
    return points


def _make_series(row: Sequence[Any], metrics: dict[int, Metric]) -> Series:
    """`metrics`: by key those that there are already."""
    key, configuration, metric, phase, exact, headline, *described = row
    if metric not in metrics:
        metrics[metric] = Metric(pk=metric, **dict(zip(_OF_METRIC, described, strict=True)))
    return Series(
        pk=key,
        configuration_id=configuration,
        metric=metrics[metric],
        phase=phase,
        exact=exact,
        headline=headline,
    )


def _build_headline_points() -> QuerySet[Any]:
    rows = Point.objects.filter(
        series__headline=True,
        series__configuration__in_array=Parameter("configurations"),
        position__in_array=Parameter("positions"),
        run__in_array=Parameter("runs"),
    )
    return rows.values_list(*_COMPARED, "series__latest__recent")


def _build_points_of_runs() -> QuerySet[Any]:
    rows = Point.objects.filter(run__in_array=Parameter("runs"))
    return rows.order_by("series__metric__name", "series__phase", "run").values_list(*_COMPARED)


def _build_recent_values() -> QuerySet[Any]:
    return SeriesLatest.objects.filter(series__in_array=Parameter("series")).values_list("series", "recent")


_HEADLINE_POINTS: CompiledQuery[Any] = CompiledQuery(_build_headline_points)
_POINTS_OF_RUNS: CompiledQuery[Any] = CompiledQuery(_build_points_of_runs)
_RECENT_VALUES: CompiledQuery[Any] = CompiledQuery(_build_recent_values)


def measured_parts(runs: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Of a few runs the environment, and what documents say of the measurement, with their profiles."""
    rows = _MEASURED_PARTS.read_rows(runs=list(runs))
    return {run: dict(zip(_PARTS, parts, strict=True)) for run, *parts in rows}


_PARTS = {"environment": "environment__values"} | {
    name: f"document__body__{name}" for name in ("protocol", "profile", "device_profile")
}
_MEASURED_PARTS: CompiledQuery[Any] = CompiledQuery(
    lambda: Run.objects.filter(pk__in_array=Parameter("runs")).values_list("pk", *_PARTS.values())
)


def experiments_of_pair(base: Commit, head: Commit, most: int) -> list[Experiment]:
    """Those that measure the two side by side, the newest first; of two cases that of one commit. Without
    those whose sides couldn't be measured."""
    return _EXPERIMENTS_OF_PAIR.read_rows(most, base=base.pk, head=head.pk, project=base.project_id)


def _build_experiments_of_pair(most: int) -> QuerySet[Experiment]:
    rows = Experiment.objects.select_related("metric", "base_configuration__case", "head_configuration__case")
    of_pair = rows.filter(
        base_commit=Parameter("base"), head_commit=Parameter("head"), project=Parameter("project")
    )
    of_pair = of_pair.exclude(verdict=Experiment.Verdict.UNTESTABLE)
    return of_pair.defer("profiles", "commands").order_by("-pk")[:most]


_EXPERIMENTS_OF_PAIR = CompiledQuery(_build_experiments_of_pair)
