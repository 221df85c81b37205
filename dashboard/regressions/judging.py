"""From points to changes to regressions: when a run is stored or has ended, or when an experiment has.

One transaction under the project's lock reads, decides and writes; what it lacks is found out without the
lock, and then all of it is done again. Of two workers the second sees all that the first has done.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from statistics import median
from typing import Any, NamedTuple, TypeVar

from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from dashboard import dispatch, failed_jobs, outbox, sentinels
from dashboard.environments import RunEnvironments
from dashboard.measured_kinds import is_exact_counter
from dashboard.models import (
    Change,
    Experiment,
    Limit,
    Project,
    Regression,
    RegressionExperiment,
    Run,
    Series,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.regressions import changes, false_alarm_budget
from dashboard.regressions.apply import apply_decision
from dashboard.regressions.decision.decide import decide
from dashboard.regressions.decision.gradual_changes import Step, steps_weighed_together
from dashboard.regressions.decision.requested_facts import GatheredFacts
from dashboard.regressions.decision.series_kinds import may_open_regression
from dashboard.regressions.environment_only import mark_environment_only
from dashboard.regressions.facts_to_gather import FactsToGather
from dashboard.regressions.gathering import BranchLines, forget_quick_facts, gather_facts, is_quick
from dashboard.regressions.judged_rows import (
    changes_to_open,
    judged_series_of_run,
    lock_project,
    mark_applied,
    mark_judged,
    read_regression,
    unjudged_run,
    unrecovered_regressions,
    write_levels,
)
from dashboard.regressions.limit_violations import limits_of_run
from dashboard.regressions.series.branch_line import branch_line
from dashboard.regressions.series.history import History, load_histories, load_recent
from dashboard.regressions.snapshot import AffectedChanges, take_snapshot
from dashboard.repositories import DETACHED

logger = logging.getLogger(__name__)

# So often facts are found out for one decision: each time what they lead to may ask for more.
MOST_ROUNDS = 50
# A sentinel that was measured later than an experiment may still explain what this refuted.
SENTINEL_EXPLAINS_FOR = timedelta(days=7)
# A proof that waits for nothing for so long has lost the message that moves it on.
STALLED_PROOF_AFTER = timedelta(seconds=60)

Result = TypeVar("Result")


def judge_run(run_id: int) -> None:
    """Judge the series that a stored run touched; alerts go out for what this opens or enlarges.

    Once: a run that is judged already is left alone, and so is one that isn't done (any more).
    """
    run = unjudged_run(run_id)
    if run is None:
        return
    project = run.commit.project
    lines = BranchLines(project, {run.commit.branch: branch_line(project, run.commit.branch)})

    def judge(facts: GatheredFacts) -> None:
        locked = lock_project(project.pk)
        # Within the transaction: it is judged once all that follows is written.
        if not mark_judged(run_id):
            return
        if run.origin == Run.Origin.SENTINEL:
            judge_sentinel(locked, run, lines, facts)
        else:
            judge_measured(locked, run, lines, facts)

    with_facts(lines, judge)


def judge_measured(project: Project, run: Run, lines: BranchLines, facts: GatheredFacts) -> None:
    """Find the changes of the run's series, decide on what they touch, and announce suspicions.

    Called with the project locked. Raises FactsToGather.
    """
    branch = run.commit.branch
    series = judged_series_of_run(run)
    judged = find_all_changes(project, branch, series, lines, facts, run.commit.position)
    touched = judged.touched
    waiting = waiting_for_run(run)
    touched.limits, touched.line = limits_of_run(run, waiting.limited_series), lines.of_branch(branch)
    # No host of this site could measure what was posted again: it is reported as suspected, and stays so.
    touched.live = run.origin != Run.Origin.POSTED
    touched.regressions |= set(waiting.regressions)
    if judged.is_news or touched.regressions or touched.limits.series:
        decide_and_apply(project, branch, touched, lines, facts)
    elif not waiting.suspicions:
        return
    false_alarm_budget.announce_suspicions(project, run, judged.histories)


class WaitingForRun(NamedTuple):
    """What may make a run that shows no change worth a decision.

    The keys of the series of which it measured a limit, of the regressions that waited for it, and whether
    there are suspicions that channels may be notified of.
    """

    limited_series: Sequence[int]
    regressions: Sequence[int]
    suspicions: bool


def _build_waiting() -> QuerySet[Any, Any]:
    limits = Limit.objects.filter(run=OuterRef("pk"), tainted=False)
    awaiting = Regression.objects.filter(awaited_runs=OuterRef("pk")).order_by()
    suspicions = false_alarm_budget.announceable_suspicions(OuterRef("commit__project"))
    return Run.objects.filter(pk=Parameter("run")).values_list(
        ArraySubquery(limits.values("series")), ArraySubquery(awaiting.values("pk")), Exists(suspicions)
    )


_WAITING: CompiledQuery[Any] = CompiledQuery(_build_waiting)


def waiting_for_run(run: Run) -> WaitingForRun:
    """Asked at once: of most runs nothing waits."""
    (row,) = _WAITING.read_values(WaitingForRun._make, run=run.pk)
    return row


def judge_sentinel(project: Project, run: Run, lines: BranchLines, facts: GatheredFacts) -> None:
    """The same code as ever: it can open nothing, only say that its machine moved."""
    sentinels.judge_sentinel(run)
    recent = Regression.objects.filter(
        project=project,
        series__configuration__case=run.configuration.case_id,
        state__in=(Regression.State.REFUTED, Regression.State.UNDECIDED),
        withdrawn_at=None,
        updated_at__gt=timezone.now() - SENTINEL_EXPLAINS_FOR,
    )
    for branch, keys in keys_by_branch(recent).items():
        decide_and_apply(project, branch, AffectedChanges(reconsidered=keys), lines, facts)


def keys_by_branch(regressions: QuerySet[Regression]) -> dict[str, set[int]]:
    """The keys of regressions by the branch on which each was found: one decision is about one branch."""
    keys: dict[str, set[int]] = {}
    for key, branch in regressions.values_list("pk", "first_bad__branch"):
        keys.setdefault(branch, set()).add(key)
    return keys


def run_ended(run_id: int) -> None:
    """A run failed or was cancelled: what waited for it goes on without it."""
    waiting = Regression.objects.filter(awaited_runs=run_id, proving=True)
    for key in waiting.order_by("pk").values_list("pk", flat=True):
        advance_proof(key)


def experiment_ended(experiment_id: int) -> None:
    """An experiment has ended: the regression that asked for it goes on."""
    link = RegressionExperiment.objects.filter(experiment=experiment_id).first()
    if link:
        advance_proof(link.regression_id)


def advance_proof(regression_id: int) -> None:
    """Act on all that has ended for a regression, and ask for what is next. Safe to repeat."""
    row = read_regression(regression_id)
    if row is None:
        return
    lines = BranchLines(row.project, {})

    def go_on(facts: GatheredFacts) -> None:
        project = lock_project(row.project_id)
        regression = read_regression(regression_id)
        if regression is None:
            raise Regression.DoesNotExist(f"There is no regression {regression_id}.")
        mark_applied(regression_id)
        touched = AffectedChanges(regressions={regression_id})
        decide_and_apply(project, regression.first_bad.branch, touched, lines, facts)

    with_facts(lines, go_on)


def sweep_proofs() -> None:
    """What a lost message left behind: verdicts nobody acted on, proofs that wait for nothing.

    And regressions at commits that no branch holds any more.
    """
    ended = RegressionExperiment.objects.filter(applied_at=None, experiment__state__in=Experiment.TERMINAL)
    keys = set(ended.values_list("regression", flat=True))
    active = RegressionExperiment.objects.filter(
        regression=OuterRef("pk"), experiment__state__in=Experiment.ACTIVE
    )
    awaited = Run.objects.exclude(state__in=Run.TERMINAL).filter(awaiting_regressions=OuterRef("pk"))
    going = Regression.objects.filter(
        ~Exists(active),
        ~Exists(awaited),
        proving=True,
        withdrawn_at=None,
        updated_at__lt=timezone.now() - STALLED_PROOF_AFTER,
    ).exclude(triaged__in=Regression.TRIAGED_AWAY)
    keys |= set(going.values_list("pk", flat=True))
    for key in sorted(keys.difference(failed_jobs.failing_keys(dispatch.PROVE))):
        dispatch.send_task(dispatch.PROVE, key)
    left = Regression.objects.filter(withdrawn_at=None).exclude(first_bad__left_branch="")
    lost: dict[int, dict[int, str]] = {}
    for project, commit, branch in left.values_list("project", "first_bad", "first_bad__left_branch"):
        lost.setdefault(project, {})[commit] = branch
    for project in lost.keys() - outbox.waiting_subjects(dispatch.HISTORY_REWRITTEN):
        branches = sorted(set(lost[project].values()))
        outbox.enqueue_message(dispatch.HISTORY_REWRITTEN, project, sorted(lost[project]), branches)


# One judgement


def with_facts(lines: BranchLines, work: Callable[[GatheredFacts], Result]) -> Result:
    """Do it in one transaction; where it lacks facts, find them out without the lock and do it again."""
    facts = GatheredFacts()
    for _ in range(MOST_ROUNDS):
        forget_quick_facts(facts)
        try:
            with transaction.atomic():
                return work(facts)
        except FactsToGather as missing:
            gather_facts(lines, missing.requests, facts)
    raise RuntimeError(f"{lines.project} asks for ever more facts.")


def decide_and_apply(
    project: Project, branch: str, touched: AffectedChanges, lines: BranchLines, facts: GatheredFacts
) -> list[Regression]:
    """Decide on what was touched and write that; the regressions that opened.

    Raises FactsToGather where something is to be found out that no lock may wait for.
    """
    snapshot = take_snapshot(project, branch, touched)
    while True:
        decision = decide(snapshot, facts)
        if not decision.missing:
            return apply_decision(project, branch, decision)
        slow = [request for request in decision.missing if not is_quick(lines, request)]
        if slow:
            raise FactsToGather(slow)
        gather_facts(lines, decision.missing, facts)


@dataclass(slots=True)
class JudgedSeries:
    """What detection says of some series now, and what of that is new."""

    touched: AffectedChanges = field(default_factory=AffectedChanges)
    counts: Counter[str] = field(default_factory=Counter)
    histories: dict[int, History] = field(default_factory=dict)

    @property
    def is_news(self) -> bool:
        return bool(self.touched.changes or self.touched.regressions)


def find_all_changes(
    project: Project,
    branch: str,
    series: Sequence[Series],
    lines: BranchLines,
    facts: GatheredFacts,
    position: int | None = None,
) -> JudgedSeries:
    """Bring the changes of these series in line with their points. The project is locked.

    `position`: only what was measured there is new.
    """
    judged = JudgedSeries()
    if branch == DETACHED:
        return judged  # Commits of no branch have no order among them.
    line = lines.of_branch(branch)
    histories = load_histories(series, line) if position is None else load_recent(series, line, position)
    known = changes.known_directions(histories)
    risk = partial(false_alarm_budget.risk_of_look, project)
    found = changes.find_changes(histories, RunEnvironments(), risk, known)
    # The line of a branch that was left holds other changes than are kept of the branch.
    anything = line.has_fork or any(known.values()) or any(found.values())
    synced = changes.sync_changes(histories, branch, found) if anything else changes.SyncedChanges()
    if branch == project.branch:
        write_levels({past.series.pk: current_level(past, found[past.series.pk]) for past in histories})
    judged.histories = {past.series.pk: past for past in histories}
    judged.counts = synced.counts
    judged.touched.changes = {row.pk for row in synced.altered if not row.is_move}
    judged.touched.changes |= steps_of_growth(series, synced, whole_branch=position is None)
    judged.touched.regressions = synced.left
    rows = changes_to_open(branch, list(judged.histories), judged.touched.changes) if synced.unopened else []
    opening = [
        row
        for row in rows
        if row.position > judged.histories[row.series_id].frozen_until and may_open_regression(row)
    ]
    mark_environment_only(opening, synced.at_new_environment, facts)
    judged.touched.changes |= {row.pk for row in opening}
    improved = [row for row in synced.altered if row.direction == Change.Direction.IMPROVEMENT]
    judged.touched.maybe_recovered = unrecovered_regressions(branch, improved)
    return judged


def steps_of_growth(
    series: Sequence[Series], synced: changes.SyncedChanges, *, whole_branch: bool
) -> set[int]:
    """The keys of small steps that together may be worth telling, beside those that are altered.

    `whole_branch`: all that no regression holds are looked at; the one that held them may have lost its last
    commit.
    """
    news = {row.pk for row in synced.altered if row.direction == Change.Direction.REGRESSION}
    if whole_branch:
        news |= {row.pk for row in synced.rows if row.regression_id is None}
    if not news:
        return set()
    counters = {counter.pk: counter for counter in series if is_exact_counter(counter)}
    steps: defaultdict[int, list[Step]] = defaultdict(list)
    for row in sorted(synced.rows, key=lambda row: row.position):
        if row.series_id in counters and row.direction == Change.Direction.REGRESSION:
            steps[row.series_id].append(Step(row.pk, row.position, row.before, row.after))
    return set().union(*(steps_weighed_together(counters[key], own, news) for key, own in steps.items()))


def current_level(past: History, found: Sequence[changes.FoundChange]) -> float | None:
    """The median since the last change; None where there is no untainted point."""
    steps = [step.change.index for step in found if step.change.direction != "moved"]
    start = steps[-1] if steps else 0
    values = [commit.value for commit in past.untainted(start, len(past.measured))]
    return median(values) if values else None
