"""Finds out what a decision asks for: quick facts from rows, and slow ones from the repository and documents.

Quick ones are read within the project's lock, each time anew. Slow ones never are: no git process starts, no
document is compared and no syntax tree is read while the project is locked.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from dashboard import experiments, repositories, runs
from dashboard.models import Commit, Experiment, Point, Project, Regression, RegressionExperiment, Run
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import PAIR_DETAILS
from dashboard.regressions.branch_causes import find_cause_on_other_branch
from dashboard.regressions.decision import facts, requested_facts
from dashboard.regressions.decision.cause_class import Confounders, TouchedFiles
from dashboard.regressions.decision.requested_facts import (
    AskedProof,
    AsksForEnvironment,
    CauseOnOtherBranch,
    CommitRow,
    CommitRuns,
    CommitsBetween,
    DifferencesAtStep,
    Explanation,
    GatheredFacts,
    HistoryOfMerge,
    MergeBase,
    MergedChecks,
    MergedHistory,
    PhaseLeftOver,
    PointsAround,
    PointsAroundRequest,
    PointsJudgedSince,
    ProofsOfSeries,
    RefutedForAnother,
    RegressionsBetween,
    Request,
    ReusedProof,
    RunsAtCommits,
    StepInPairs,
    TimesAnswered,
)
from dashboard.regressions.explanation.commit_difference import asks_for_other_environment
from dashboard.regressions.explanation.confounders import read_differences_at_step
from dashboard.regressions.explanation.explain import explain_step
from dashboard.regressions.explanation.left_over import phase_left_over
from dashboard.regressions.false_alarm_budget import error_of_next_proof
from dashboard.regressions.judged_rows import read_commits, read_series
from dashboard.regressions.merged_checks import merged_check_facts
from dashboard.regressions.row_facts import commit_fact, regression_fact
from dashboard.regressions.series.branch_line import BranchLine, branch_line
from dashboard.regressions.series.history import load_history
from dashboard.repositories import DETACHED, RepositoryError

logger = logging.getLogger(__name__)

# What pairs have answered; another verdict is no answer.
Verdict = Experiment.Verdict
CONCLUSIVE = (Verdict.CONFIRMED, Verdict.REFUTED, Verdict.WHOLE, Verdict.PART, Verdict.NONE)
# The same pairs are reused for so many regressions: those that hand verdicts to and fro would do it for ever.
MOST_REUSED = 3
# The commits between two, at most: only those that are measured become rows.
MOST_BETWEEN = 100_000


class BranchLines:
    """The lines of a project's branches, each read in the repository once."""

    def __init__(self, project: Project, known: Mapping[str, BranchLine]) -> None:
        self.project = project
        self.known = dict(known)

    def is_known(self, branch: str) -> bool:
        """True where no repository is asked for it; the project's own needs none."""
        return branch in self.known or branch in (self.project.branch, DETACHED)

    def of_branch(self, branch: str) -> BranchLine:
        if branch not in self.known:
            self.known[branch] = branch_line(self.project, branch)
        return self.known[branch]


def gather_facts(lines: BranchLines, requests: Iterable[Request[Any]], facts_: GatheredFacts) -> None:
    """Answer all requests."""
    for request in requests:
        answer = ANSWERS[type(request)]
        facts_.answers[request] = answer(lines, request)


def is_quick(lines: BranchLines, request: Request[Any]) -> bool:
    """True for what a few queries answer, and no repository: branches' lines are read there."""
    return type(request) in QUICK and all(lines.is_known(branch) for branch in branches_of(request))


def branches_of(request: Request[Any]) -> tuple[str, ...]:
    """The branches whose lines an answer needs."""
    if isinstance(request, PointsAroundRequest):
        return (request.bad.branch,)
    return (request.step.first_bad.branch,) if isinstance(request, PhaseLeftOver) else ()


def forget_quick_facts(facts_: GatheredFacts) -> None:
    """What rows say may have changed since the lock was given back."""
    answers = facts_.answers.items()
    facts_.answers = {request: answer for request, answer in answers if type(request) not in QUICK}


# From the repository


def commits_between(lines: BranchLines, request: CommitsBetween) -> tuple[str, ...]:
    good, bad = request.good, request.bad
    if bad.position - good.position <= 1:
        return ()
    try:
        mirror = lines.project.mirror
        return tuple(repositories.commits_between(mirror, good.hash, bad.hash, MOST_BETWEEN)[:-1])
    except RepositoryError as error:
        logger.warning("The commits between %s and %s can't be determined: %s", good.hash, bad.hash, error)
        return ()


def asks_for_environment(lines: BranchLines, request: AsksForEnvironment) -> bool:
    return asks_for_other_environment(lines.project, request.good.hash, request.bad.hash)


def commit_row(lines: BranchLines, request: CommitRow) -> facts.Commit:
    known = Commit.objects.filter(project=lines.project, hash=request.hash).first()
    if known is None:
        mirror = lines.project.mirror
        made = runs.get_or_create_commits(lines.project, repositories.read_commits(mirror, [request.hash]))
        known = made[request.hash]
    return commit_fact(known)


def history_of_merge(lines: BranchLines, request: HistoryOfMerge) -> MergedHistory:
    main, tip = request.merge.parents
    try:
        mirror = lines.project.mirror
        brought = repositories.merged_commits(mirror, main, tip)
        return MergedHistory(
            brought={sha: tuple(parents) for sha, parents in brought.items()},
            base=repositories.merge_base(mirror, main, tip),
            same_files=repositories.is_same_tree(mirror, request.merge.hash, tip),
        )
    except RepositoryError as error:
        return MergedHistory(trouble=str(error))


def merge_base(lines: BranchLines, request: MergeBase) -> str | None:
    try:
        return repositories.merge_base(lines.project.mirror, request.first, request.second)
    except RepositoryError as error:
        logger.warning("The merge base of %s can't be determined: %s", request, error)
        return None


def merged_checks(lines: BranchLines, request: MergedChecks) -> tuple[requested_facts.MergedCheck, ...]:
    return merged_check_facts(lines.project, request)


def cause_on_other_branch(lines: BranchLines, request: CauseOnOtherBranch) -> int | None:
    return find_cause_on_other_branch(lines.project, request.change)


def explanation_of_step(lines: BranchLines, request: Explanation) -> requested_facts.StepExplanation:
    return explain_step(lines.project, lines.of_branch(request.change.first_bad.branch), request)


def differences_at_step(lines: BranchLines, request: DifferencesAtStep) -> tuple[Confounders, TouchedFiles]:
    return read_differences_at_step(lines.project, request)


# From rows


def _build_runs_at_commits() -> QuerySet[Run]:
    rows = Run.objects.filter(
        commit__project=Parameter("project"),
        commit__hash__in_array=Parameter("hashes"),
        configuration=Parameter("configuration"),
    ).exclude(Q(origin=Run.Origin.SENTINEL) | Q(state=Run.State.REQUESTED, not_before__gt=Now()))
    return rows.select_related("commit").only("state", "tainted", "commit__hash").order_by("pk")


def _build_values_at_commits() -> QuerySet[Any, Any]:
    points = Point.objects.filter(
        series=Parameter("series"), run__commit__hash__in_array=Parameter("hashes"), tainted=False
    )
    return points.order_by("run_id").values_list("run__commit__hash", "value")


_RUNS_AT_COMMITS: CompiledQuery[Any] = CompiledQuery(_build_runs_at_commits)
_VALUES_AT_COMMITS: CompiledQuery[Any] = CompiledQuery(_build_values_at_commits)
_AWAITED_RUNS: CompiledQuery[Any] = CompiledQuery(
    lambda: Regression.awaited_runs.through.objects.filter(regression=Parameter("regression")).values_list(
        "run", flat=True
    )
)


def runs_at_commits(lines: BranchLines, request: RunsAtCommits) -> Mapping[str, CommitRuns]:
    """A sentinel's run is none; one that was cancelled counts where the regression waited for it.

    One that waits for a calmer hour is none yet: who asks for it has it measured at once.
    """
    hashes = list(request.hashes)
    rows = _RUNS_AT_COMMITS.read_rows(
        project=lines.project.pk, hashes=hashes, configuration=request.series.configuration_id
    )
    awaited = set(_AWAITED_RUNS.read_rows(regression=request.regression))
    by_commit: dict[str, list[Run]] = defaultdict(list)
    for run in rows:
        if run.state != Run.State.CANCELLED or run.pk in awaited:
            by_commit[run.commit.hash].append(run)
    values = dict(_VALUES_AT_COMMITS.read_rows(series=request.series.pk, hashes=hashes))
    return {
        sha: CommitRuns(
            count=len(found) - disturbed_before(found),
            under_way=any(run.state not in Run.TERMINAL for run in found),
            last_done=found[-1].state == Run.State.DONE,
            value=values.get(sha),
        )
        for sha, found in by_commit.items()
    }


def disturbed_before(rows: list[Run]) -> int:
    """How many of a commit's runs were disturbed before the first that wasn't: with that they count once."""
    return next((index for index, run in enumerate(rows) if not run.tainted), 0)


def series_around(lines: BranchLines, request: PointsAroundRequest) -> PointsAround:
    """The values at both ends of a range, and the measured commits beyond them."""
    series = read_series(request.series.pk)
    past = load_history(series, lines.of_branch(request.bad.branch))
    good, bad = past.index_of(request.good.position), past.index_of(request.bad.position)
    good_at, bad_at = past.untainted_at(request.good.position), past.untainted_at(request.bad.position)
    earlier, later = good, bad if bad_at is not None else bad - 1
    for _ in range(request.reach):
        earlier, later = past.untainted_before(earlier), past.untainted_after(later)
    indices = [index for index in (earlier, later) if 0 <= index < len(past.measured)]
    commits = read_commits([past.measured[index].commit_id for index in indices])

    def commit_at(index: int) -> facts.Commit | None:
        return commit_fact(commits[past.measured[index].commit_id]) if index in indices else None

    return PointsAround(
        good_value=None if good_at is None else past.measured[good_at].value,
        bad_value=None if bad_at is None else past.measured[bad_at].value,
        earlier=commit_at(earlier),
        later=commit_at(later),
    )


def _build_points_judged_since(most: int) -> QuerySet[Any, Any]:
    ended = Experiment.objects.filter(pk=Parameter("experiment")).values("finished_at")
    points = Point.objects.filter(
        series=Parameter("series"),
        position__gt=Parameter("position"),
        tainted=False,
        run__commit__branch=Parameter("branch"),
        run__judged_at__gt=ended,
    )
    return points.values_list("pk", flat=True)[:most]


_POINTS_JUDGED_SINCE: CompiledQuery[Any] = CompiledQuery(_build_points_judged_since)


def points_judged_since(_: BranchLines, request: PointsJudgedSince) -> int:
    found = _POINTS_JUDGED_SINCE.read_rows(
        request.most,
        series=request.series.pk,
        branch=request.bad.branch,
        position=request.bad.position,
        experiment=request.experiment,
    )
    return len(found)


def step_in_pairs(_: BranchLines, request: StepInPairs) -> str:
    experiment = Experiment.objects.select_related("metric").get(pk=request.experiment)
    pairs = experiment.pairs.defer(*PAIR_DETAILS)
    return experiments.place_step(experiment, list(pairs), request.before, request.after)


def proofs_of_series(_: BranchLines, request: ProofsOfSeries) -> tuple[AskedProof, ...]:
    links = RegressionExperiment.objects.filter(
        series=request.series, experiment__purpose=Experiment.Purpose.PROOF
    )
    rows = links.select_related("experiment__base_commit", "experiment__head_commit").order_by("pk")
    return tuple(
        AskedProof(
            link.regression_id,
            commit_fact(link.experiment.base_commit),
            commit_fact(link.experiment.head_commit),
        )
        for link in rows
    )


def _answers_of_series() -> QuerySet[RegressionExperiment]:
    """What experiments between two commits have told of a series."""
    return RegressionExperiment.objects.filter(
        series=Parameter("series"),
        experiment__base_commit=Parameter("base"),
        experiment__head_commit=Parameter("head"),
        experiment__verdict__in=CONCLUSIVE,
    )


def _build_answering_experiments() -> QuerySet[Any, Any]:
    answered = _answers_of_series().filter(experiment__purpose=Parameter("purpose"))
    # Pairs that were reused for other regressions have answered once.
    measured = answered.exclude(experiment__pairs_of__purpose=Experiment.Purpose.PROOF)
    # Several regressions may have asked for the same experiment.
    return measured.order_by().values_list("experiment", flat=True).distinct()


_ANSWERING_EXPERIMENTS: CompiledQuery[Any] = CompiledQuery(_build_answering_experiments)


def times_answered(_: BranchLines, request: TimesAnswered) -> int:
    answering = _ANSWERING_EXPERIMENTS.read_rows(
        series=request.series, base=request.base, head=request.head, purpose=request.purpose
    )
    return len(answering)


def _build_proofs_for_others() -> QuerySet[RegressionExperiment]:
    answered = _answers_of_series().filter(experiment__purpose=Experiment.Purpose.PROOF)
    others = answered.exclude(regression=Parameter("regression")).select_related("experiment__metric")
    return others.order_by("experiment__finished_at", "experiment")


_PROOFS_FOR_OTHERS = CompiledQuery(_build_proofs_for_others)


def refuted_for_another(lines: BranchLines, request: RefutedForAnother) -> ReusedProof | None:
    """The proof by which the same pairs have refuted this step for another regression; None without one."""
    links = _PROOFS_FOR_OTHERS.read_rows(
        series=request.series.pk,
        base=request.base.pk,
        head=request.head.pk,
        regression=request.regression,
    )
    # Pairs that were reused themselves are those of the experiment that measured them.
    link = next((link for link in reversed(links) if link.experiment.pairs_of_id is None), None)
    if link is None or {links[-1].experiment.verdict, link.experiment.verdict} != {Verdict.REFUTED}:
        return None
    measured, error = link.experiment, error_of_next_proof(lines.project)
    if measured.reused_by.count() >= MOST_REUSED or experiments.is_outdated(measured):
        return None
    step = experiments.SuspectedStep(
        measured.metric, request.before, request.after, error, request.phases_with_step
    )
    result, _ = experiments.evaluate_suspected_step(measured, step)
    if result.verdict != Verdict.REFUTED:
        return None
    return ReusedProof(
        experiment=measured.pk,
        series=request.series,
        base=request.base,
        head=request.head,
        verdict=result.verdict,
        before=request.before,
        after=request.after,
        error=error,
        phases_with_step=request.phases_with_step,
        regression=link.regression_id,
    )


def _build_regressions_between() -> QuerySet[Regression]:
    near = Regression.objects.filter(
        project=Parameter("project"),
        first_bad__branch=Parameter("branch"),
        first_bad__position__gt=Parameter("good"),
        first_bad__position__lte=Parameter("bad"),
    )
    related = ("first_bad", "last_good", "culprit", "series__metric", "series__configuration")
    return near.select_related(*related).order_by("pk")


_REGRESSIONS_BETWEEN = CompiledQuery(_build_regressions_between)


def regressions_between(lines: BranchLines, request: RegressionsBetween) -> tuple[facts.Regression, ...]:
    near = _REGRESSIONS_BETWEEN.read_rows(
        project=lines.project.pk,
        branch=request.bad.branch,
        good=request.good.position,
        bad=request.bad.position,
    )
    return tuple(map(regression_fact, near))


def left_over(lines: BranchLines, request: PhaseLeftOver) -> float | None:
    line = lines.of_branch(request.step.first_bad.branch)
    return phase_left_over(line, request.step, request.improvement, request.phase)


QUICK: dict[type[Request[Any]], Callable[[BranchLines, Any], Any]] = {
    RunsAtCommits: runs_at_commits,
    PointsAroundRequest: series_around,
    PointsJudgedSince: points_judged_since,
    StepInPairs: step_in_pairs,
    ProofsOfSeries: proofs_of_series,
    TimesAnswered: times_answered,
    RefutedForAnother: refuted_for_another,
    RegressionsBetween: regressions_between,
    PhaseLeftOver: left_over,
}
ANSWERS: dict[type[Request[Any]], Callable[[BranchLines, Any], Any]] = {
    **QUICK,
    AsksForEnvironment: asks_for_environment,
    CommitsBetween: commits_between,
    CommitRow: commit_row,
    HistoryOfMerge: history_of_merge,
    MergeBase: merge_base,
    MergedChecks: merged_checks,
    CauseOnOtherBranch: cause_on_other_branch,
    Explanation: explanation_of_step,
    DifferencesAtStep: differences_at_step,
}
