"""How the newest point of a series stands to its baseline: rolling, merge base, or a pinned tag or commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.http import HttpRequest
from paceline.manifest.policy import MERGE_BASE, ROLLING

from dashboard.charts.baseline_line import TrendBaseline
from dashboard.detection import Comparison
from dashboard.models import Change, Commit, Series
from dashboard.pages.comparisons.phases import PhaseComparison, drawn_comparison
from dashboard.pages.experiments.links import form_address, series_fields
from dashboard.policy.baselines import MeasuredValue, compare_to_baseline, default_baseline
from dashboard.policy.project_policy import project_policy
from dashboard.querysets import baselines, series_points
from dashboard.querysets.series import is_measured_here
from dashboard.querysets.series_points import PointCommit, SeriesPoint
from dashboard.sentences.series.baselines import PROBLEMS, baseline_label, comparison_word, format_comparison

LONGEST_NAME = 200
# So many points before the newest one are the level that it is read against.
LEVEL_POINTS = 10
# By so many of the newest ones the noise between runs is estimated.
NOISE_POINTS = 50


@dataclass(frozen=True, slots=True)
class SeriesBaseline:
    """What the points are read against. `points` are those of the baseline's commit, or before the newest
    one on its level; `problem`: a code of why there are none. `is_drawn`: the trend has no such level yet."""

    name: str
    points: Sequence[SeriesPoint] = ()
    commit: Commit | PointCommit | None = None
    problem: str = ""
    is_drawn: bool = True

    @property
    def value(self) -> float:
        return float(median(point.value for point in self.points))

    @property
    def trend_line(self) -> TrendBaseline | None:
        drawn = self.points and self.is_drawn
        return TrendBaseline(self.value, baseline_label(self.name)) if drawn else None


def read_baseline(
    request: HttpRequest,
    series: Series,
    branch: str,
    points: Sequence[SeriesPoint],
    changes: Sequence[Change],
) -> SeriesBaseline:
    """That of the address, `against`, else that of the policy."""
    project = series.case.project
    named = request.GET.get("against", "").strip()[:LONGEST_NAME].replace("\0", "")
    name = named or default_baseline(project_policy(project), branch, project.branch)
    clean = [point for point in points if not point.tainted]
    if not clean:
        return SeriesBaseline(name, problem="no points")
    if name == ROLLING:
        # Levels are found on the project's branch, and drawn there.
        return _rolling_baseline(clean, changes, is_drawn=branch != project.branch)
    if name == MERGE_BASE:
        return _fork_baseline(series, branch, clean[-1].commit)
    commit = baselines.find_named_commit(project, name)
    if commit is None:
        return SeriesBaseline(name, problem="unknown")
    found = series_points.points_at_commit(series, commit)
    return SeriesBaseline(name, found, commit, "" if found else "not measured")


def _rolling_baseline(
    clean: Sequence[SeriesPoint], changes: Sequence[Change], *, is_drawn: bool
) -> SeriesBaseline:
    """The level on which the points before the newest one are, since the last step before it."""
    newest = clean[-1]
    start = max((change.position for change in changes if change.position < newest.position), default=0)
    before = [point for point in clean[:-1] if start <= point.position < newest.position][-LEVEL_POINTS:]
    return SeriesBaseline(ROLLING, before, problem="" if before else "no level", is_drawn=is_drawn)


def _fork_baseline(series: Series, branch: str, newest: PointCommit) -> SeriesBaseline:
    if branch == series.case.project.branch:
        return SeriesBaseline(MERGE_BASE, problem="own branch")
    if newest.fork is None:
        return SeriesBaseline(MERGE_BASE, problem="no fork")
    found = series_points.points_at_fork(series, newest.fork)
    commit = found[0].commit if found else None
    return SeriesBaseline(MERGE_BASE, found, commit, "" if found else "not measured")


def baseline_context(
    series: Series, baseline: SeriesBaseline, points: Sequence[SeriesPoint], branch: str
) -> dict[str, Any]:
    project = series.case.project
    newest = next((point for point in reversed(points) if not point.tainted), None)
    policy = project_policy(project)
    names = dict.fromkeys(
        [ROLLING, MERGE_BASE, policy.pinned, *policy.branch_baselines.values(), baseline.name]
    )
    offered = [
        (name, baseline_label(name))
        for name in names
        if name and (name != MERGE_BASE or branch != project.branch or name == baseline.name)
    ]
    context: dict[str, Any] = {
        "against": baseline.name,
        "against_label": baseline_label(baseline.name),
        "baselines": offered,
        "baseline": baseline,
        "baseline_problem": PROBLEMS.get(baseline.problem, ""),
        "measure_baseline": _measurable_revision(baseline),
        "branch": branch,
        "branches": [project.branch, *baselines.other_branches(project)],
    }
    if newest is None or not baseline.points:
        return context
    found = _compare_newest(series, baseline, newest, points)
    return {
        **context,
        "newest_point": newest,
        "newer_tainted": len(points) - 1 - points.index(newest),
        "baseline_value": baseline.value,
        "baseline_ratio": format_comparison(series.metric, found, baseline.value),
        "baseline_word": comparison_word(series.metric.better, found),
        "baseline_experiment": _experiment_address(series, baseline, newest),
        **_phase_context(series, baseline, newest),
    }


def _measurable_revision(baseline: SeriesBaseline) -> str:
    """What may be asked for where a tag or commit has no points: the repository may know one that is unknown
    here."""
    if baseline.problem == "unknown":
        return baseline.name
    return baseline.commit.hash if baseline.commit and baseline.problem == "not measured" else ""


def _compare_newest(
    series: Series, baseline: SeriesBaseline, newest: SeriesPoint, points: Sequence[SeriesPoint]
) -> Comparison:
    old = [MeasuredValue(point.value, point.samples) for point in baseline.points]
    recent = [point.value for point in points if not point.tainted][-NOISE_POINTS:]
    return compare_to_baseline(
        series.metric, old, MeasuredValue(newest.value, newest.samples), recent, exact=series.exact
    )


def _experiment_address(series: Series, baseline: SeriesBaseline, newest: SeriesPoint) -> str:
    """The form that measures both side by side; of a level the newest commit that is on it."""
    project, head = series.case.project, newest.commit
    base = baseline.commit or baseline.points[-1].commit
    if base.hash == head.hash or not is_measured_here(series):
        return ""
    return form_address(project, base=base.hash, head=head.hash, **series_fields(series))


def _phase_context(series: Series, baseline: SeriesBaseline, newest: SeriesPoint) -> dict[str, Any]:
    """The phases of the newest run beside those of the baseline's; of a level there are none."""
    if baseline.commit is None or series.metric.is_exponent or series.phase:
        return {}
    before, after = baselines.phases_of_runs(series, baseline.points[0].run, newest.run)
    unit = {"memory": "bytes", "counter": series.metric.unit}.get(series.metric.kind, "s")
    title = "per step, own time" if unit == "s" else ""
    return drawn_comparison(PhaseComparison(before, after, unit, title), ("baseline", "newest"))
