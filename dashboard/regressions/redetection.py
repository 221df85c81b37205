"""Judges stored points again: a project's whole history, or the branches whose commits were rewritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from dashboard.ingest import latest
from dashboard.models import Change, Commit, Project, Regression, Run, Series
from dashboard.regressions.decision.requested_facts import GatheredFacts
from dashboard.regressions.gathering import BranchLines
from dashboard.regressions.judged_rows import lock_project
from dashboard.regressions.judging import decide_and_apply, find_all_changes, keys_by_branch, with_facts
from dashboard.regressions.limit_violations import limits_of_commits
from dashboard.regressions.series.branch_line import branch_line
from dashboard.regressions.series.judged_series import JUDGED
from dashboard.regressions.snapshot import AffectedChanges
from dashboard.repositories import DETACHED


@dataclass(slots=True)
class JudgementResult:
    """What a judgement did: changes found, moved, measured again, kept, withdrawn; regressions opened."""

    counts: Counter[str] = field(default_factory=Counter)
    opened: list[Regression] = field(default_factory=list)


def redetect_project(project: Project, show: Callable[[int, int], None] | None = None) -> JudgementResult:
    """Judge a project's whole history again, case by case; `show` gets (cases done, cases) after each.

    Nobody is alerted: what a better detection sees in old commits isn't news.
    """
    total = JudgementResult()
    groups = series_judged_together(project)
    for done, (branch, series) in enumerate(groups, start=1):
        outcome = redetect_series(project, branch, series, is_last=done == len(groups))
        total.counts.update(outcome.counts)
        total.opened.extend(outcome.opened)
        if show:
            show(done, len(groups))
    return total


def redetect_series(
    project: Project, branch: str, series: Sequence[Series], *, is_last: bool
) -> JudgementResult:
    """Judge these series of a branch again; after the last ones all of the branch is explained anew."""
    lines = BranchLines(project, {branch: branch_line(project, branch)})

    def judge_again(facts: GatheredFacts) -> JudgementResult:
        locked = lock_project(project.pk)
        judged = find_all_changes(locked, branch, series, lines, facts)
        judged.touched.live, judged.touched.whole_branch = False, is_last
        opened = decide_and_apply(locked, branch, judged.touched, lines, facts)
        return JudgementResult(judged.counts, opened)

    return with_facts(lines, judge_again)


def series_judged_together(project: Project) -> list[tuple[str, list[Series]]]:
    """The judged series of each configuration and branch."""
    rows = Series.objects.filter(JUDGED, configuration__case__project=project).order_by("pk")
    groups = by_configuration(rows.select_related("metric", "configuration__case", "configuration__pool"))
    branches = Commit.objects.filter(project=project, runs__state=Run.State.DONE)
    names = list(branches.order_by("branch").values_list("branch", flat=True).distinct())
    return [(branch, series) for branch in names for series in groups]


def by_configuration(rows: Iterable[Series]) -> list[list[Series]]:
    """The series of each configuration together: a run measures all of them."""
    groups: dict[int, list[Series]] = {}
    for series in rows:
        groups.setdefault(series.configuration_id, []).append(series)
    return list(groups.values())


def history_rewritten(project_id: int, commits: Sequence[int], branches: Sequence[str]) -> None:
    """Commits have left a branch or returned to one: judge these branches anew without or with their points.

    Regressions at commits that no branch holds are withdrawn. Nobody is alerted. Safe to repeat.
    """
    project = Project.objects.get(pk=project_id)
    lines = BranchLines(project, {})

    def withdraw(facts: GatheredFacts) -> None:
        locked = lock_project(project_id)
        lost = Commit.objects.filter(pk__in=commits).exclude(left_branch="")
        Change.objects.filter(first_bad__in=lost).delete()
        standing = Regression.objects.filter(
            Q(first_bad__in=lost) | Q(recovered_by__in=lost), withdrawn_at=None
        )
        for branch, keys in keys_by_branch(standing).items():
            decide_and_apply(locked, branch, AffectedChanges(regressions=keys, live=False), lines, facts)
        latest.forget_left_points(locked, list(measured.values_list("pk", flat=True)))

    measured = Series.objects.filter(points__run__commit__in=commits).order_by("pk").distinct()
    with_facts(lines, withdraw)
    judged = measured.filter(JUDGED).select_related("metric", "configuration__case", "configuration__pool")
    for branch in branches:
        for series in by_configuration(judged):
            redetect_series(project, branch, series, is_last=False)
        judge_limits_again(project, branch, commits)


def judge_limits_again(project: Project, branch: str, commits: Sequence[int]) -> None:
    """Judge how a branch stands to its limits, which commits have left or returned to."""
    lines = BranchLines(project, {branch: branch_line(project, branch)})
    touched = AffectedChanges(limits=limits_of_commits(commits), line=lines.of_branch(branch), live=False)

    def judge(facts: GatheredFacts) -> None:
        decide_and_apply(lock_project(project.pk), branch, touched, lines, facts)

    if touched.limits.series and branch != DETACHED:
        with_facts(lines, judge)
