"""From a trigger to runs: its revisions become commits, their manifests cases, each case a requested run."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from paceline.manifest import Benchmark, ManifestError

from dashboard import dispatch
from dashboard.models import Backlog, Case, Commit, Project, Run, Trigger
from dashboard.policy.decision import Chosen, Reason, SkippedCommits
from dashboard.policy.newest_manifest import follow_manifest_policy
from dashboard.policy.project_policy import project_policy
from dashboard.postgresql.lost_connections import is_refused_by_driver
from dashboard.repositories import RepositoryBusy, RepositoryError, Unreachable
from dashboard.runs.backlog import BACKLOG_PRIORITY, rank_backlog, supersede_runs, trim_queue
from dashboard.runs.caps import TooManyRuns
from dashboard.runs.commits import forget_problems, get_or_create_commits, keep_unreadable
from dashboard.runs.errors import Busy
from dashboard.runs.planning import PUSHED, UNATTENDED, TriggerPlan, UnmeasurableError, make_plan
from dashboard.runs.requests import request_runs
from dashboard.runs.rewritten_history import follow_rewritten_history
from dashboard.runs.tags import follow_tags

logger = logging.getLogger(__name__)

# Nobody looks at the answer of a hook: what can't be reached just now is tried again for this long.
TRY_AGAIN_FOR = timedelta(minutes=15)
# A new commit is measured before a backlog, what a schedule asks for after it.
PRIORITY = {**dict.fromkeys(PUSHED, 10), Trigger.Source.SCHEDULE: -10}


class RequestedRun(NamedTuple):
    """A case of a commit that is asked for, as its benchmark is measured there; `quick`: in short windows."""

    commit: Commit
    case: Case
    benchmark: Benchmark
    quick: bool = False


def resolve_trigger(trigger_id: int, *, quick: bool = False, patience: float | None = None) -> list[int]:
    """Turn a received trigger into runs, or refuse it with a sentence. Safe to repeat, also at once.

    Quick runs are asked for here alone: a trigger's row, from which the sweep resolves, doesn't tell.
    `patience`: how many seconds it waits for another process that fetches the repository.

    The ids of the runs, also of those that had been asked for before; none where it was refused or resolved
    already. Raises Busy while another process fetches the repository, and what the database raises while it
    can't be reached.
    """
    trigger = Trigger.objects.select_related("project").filter(pk=trigger_id, state=Trigger.State.RECEIVED)
    received = trigger.first()
    if received is None:
        return []
    try:
        return _resolve_received(received, quick, patience)
    except Busy:
        raise
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and not is_refused_by_driver(error):
            raise
        # The border of a process: a trigger that stayed received would be sent again for ever.
        logger.exception("Trigger %s can't be resolved", trigger_id)
        name = type(error).__name__
        _close_trigger(
            received, Trigger.State.REFUSED, f"An error of Paceline's own, {name}: its log has the details."
        )
    return []


def _resolve_received(received: Trigger, quick: bool, patience: float | None) -> list[int]:
    """Fetch the repository and request what a trigger asks for, or refuse it with a sentence. Raises Busy."""
    project = received.project
    try:
        project.mirror.fetch(patience)
        project.note_reading()
        follow_rewritten_history(project)
        follow_manifest_policy(project)
        plan = make_plan(received)
    except RepositoryBusy as error:
        raise Busy(str(error)) from error
    except Unreachable as error:
        project.note_reading(str(error))
        if received.source in UNATTENDED and timezone.now() - received.received_at < TRY_AGAIN_FOR:
            return []
        _close_trigger(received, Trigger.State.REFUSED, str(error))
    except ManifestError as error:
        if isinstance(error, UnmeasurableError):
            keep_unreadable(project, error.found, error.unreadable)
        _close_trigger(received, Trigger.State.REFUSED, str(error), _broken_manifests(received, 1))
    except (RepositoryError, TooManyRuns) as error:
        _close_trigger(received, Trigger.State.REFUSED, str(error))
    else:
        requested = _request_planned(received, plan, quick)
        # Once the commits are stored that they name.
        follow_tags(project)
        return requested
    return []


def _request_planned(trigger: Trigger, plan: TriggerPlan, quick: bool) -> list[int]:
    """Store the commits of a plan, request its runs and resolve the trigger; the keys of the runs."""
    project = trigger.project
    with transaction.atomic():
        # Held until the end: a second resolving of the same trigger waits here and then finds it closed.
        if not Trigger.objects.select_for_update().filter(pk=trigger.pk, state=Trigger.State.RECEIVED):
            return []
        commits = store_commits(project, plan)
        forget_problems(commits.values())
        keep_unreadable(project, [plan.facts[sha] for sha in plan.unreadable], plan.unreadable)
        if any(commit.branch == project.branch for commit in commits.values()):
            dispatch.send_task(dispatch.READ_CLAIMS, project.pk)
        runs = _request_decided(trigger, plan, commits, quick)
        left_out = [asdict(row) for row in plan.decision.left_out if row.reason != Reason.SPREAD]
        left_out += _broken_manifests(trigger, len(plan.skipped))
        _close_trigger(trigger, Trigger.State.RESOLVED, _describe_runs(runs, plan, trigger), left_out)
    return [run.pk for run in runs]


def _request_decided(
    trigger: Trigger, plan: TriggerPlan, commits: dict[str, Commit], quick: bool
) -> list[Run]:
    """The newest commits' runs, and those behind them; what they make unnecessary is taken off the queue."""
    decision, project = plan.decision, trigger.project
    urgent = _as_wanted(project, commits, decision.newest, decision.quick)
    others = _as_wanted(project, commits, decision.backlog, decision.quick)
    if trigger.source in UNATTENDED and not plan.always:
        urgent, others = _leave_out_measured(urgent), _leave_out_measured(others)
    policy = project_policy(project)
    coalesced = policy.coalesce and trigger.source in PUSHED
    priority = PRIORITY.get(Trigger.Source(trigger.source), 0)
    runs = _request_wanted(urgent, quick, priority, trigger)
    # Of a large push only the newest commit is urgent: the others are a backlog.
    behind = BACKLOG_PRIORITY if coalesced else 0
    runs += _request_wanted(others, quick, behind, trigger)
    if coalesced and decision.newest:
        newest = commits[decision.newest[-1][0].hash]
        supersede_runs(newest)
        if decision.later:
            Backlog.objects.create(trigger=trigger, branch=newest.branch, hashes=list(decision.later))
        rank_backlog(project, newest.branch)
    if trigger.source in PUSHED:
        trim_queue(project, policy, [commits[candidate.hash] for candidate, _ in decision.newest[-1:]])
    return runs


def store_commits(project: Project, plan: TriggerPlan) -> dict[str, Commit]:
    """The rows of the commits that are asked for, by hash."""
    asked = [candidate.hash for candidate, _ in (*plan.decision.backlog, *plan.decision.newest)]
    commits = get_or_create_commits(project, [plan.facts[sha] for sha in asked])
    if plan.fork is not None:
        beside = project.commits.filter(hash__in=asked).exclude(branch=project.branch)
        beside.exclude(fork=plan.fork).update(fork=plan.fork)
    return commits


def _request_wanted(
    wanted: Sequence[RequestedRun], quick: bool, priority: int, trigger: Trigger
) -> list[Run]:
    """Ask for all of it; `quick` where a person asked for short windows of everything."""
    runs: list[Run] = []
    for in_short in (False, True):
        rows = [(row.commit, row.case, row.benchmark) for row in wanted if (quick or row.quick) == in_short]
        if rows:
            runs += request_runs(rows, quick=in_short, priority=priority, trigger=trigger)
    return runs


def _as_wanted(
    project: Project,
    commits: dict[str, Commit],
    chosen: Sequence[Chosen],
    quick: Collection[tuple[str, str, str]] = (),
) -> list[RequestedRun]:
    """One for each case of the chosen benchmarks at each commit."""
    cases = _get_or_create_cases(project, (benchmark for _, benchmarks in chosen for benchmark in benchmarks))
    return [
        RequestedRun(
            commits[candidate.hash],
            cases[benchmark.name, case.key],
            benchmark,
            (candidate.hash, benchmark.name, case.key) in quick,
        )
        for candidate, benchmarks in chosen
        for benchmark in benchmarks
        for case in benchmark.cases
    ]


def _get_or_create_cases(project: Project, benchmarks: Iterable[Benchmark]) -> dict[tuple[str, str], Case]:
    """By benchmark and key, made where they are new."""
    rows = {
        (benchmark.name, case.key): Case(
            project=project, benchmark=benchmark.name, key=case.key, params=dict(case.params)
        )
        for benchmark in benchmarks
        for case in benchmark.cases
    }
    if not rows:
        return {}
    Case.objects.bulk_create([rows[key] for key in sorted(rows)], ignore_conflicts=True)
    return {(case.benchmark, case.key): case for case in project.cases.all()}


def _leave_out_measured(wanted: list[RequestedRun]) -> list[RequestedRun]:
    """Without those that the site's pool has measured already at their commits."""
    if not wanted:
        return []
    done = Run.objects.filter(
        commit__in={row.commit.pk for row in wanted},
        configuration__pool__name=settings.PACELINE_POOL,
        state=Run.State.DONE,
    ).exclude(origin=Run.Origin.SENTINEL)
    names = ("commit", "configuration__case", "configuration__version")
    measured = set(done.filter(configuration__quick=False).values_list(*names))
    if any(row.quick for row in wanted):
        # A quick run says nothing where a longer one has said more.
        in_short = measured | set(done.filter(configuration__quick=True).values_list(*names))
    return [
        row
        for row in wanted
        if (row.commit.pk, row.case.pk, row.benchmark.version) not in (in_short if row.quick else measured)
    ]


def request_backlog(trigger: Trigger, plan: TriggerPlan) -> int:
    """Ask for what the backlog of a push still lacks, behind everything else; how many runs. Called within a
    transaction."""
    project = trigger.project
    wanted = _as_wanted(project, store_commits(project, plan), plan.decision.backlog, plan.decision.quick)
    return len(_request_wanted(_leave_out_measured(wanted), False, BACKLOG_PRIORITY, trigger))


def _broken_manifests(trigger: Trigger, commits: int) -> list[dict[str, object]]:
    """As a reason why at least so many commits have no row; a benchmark that isn't in one may be a slip."""
    if not commits or trigger.benchmarks or trigger.schedule:
        return []
    return [asdict(SkippedCommits(Reason.MANIFEST, commits))]


def _describe_runs(runs: list[Run], plan: TriggerPlan, trigger: Trigger) -> str:
    if plan.skipped_by:
        return f"Nothing is measured: the message of {plan.skipped_by[:10]} says so."
    if not plan.decision.newest:
        return "Nothing is measured."
    commits = len({run.commit_id for run in runs})
    summary = f"{_format_count(len(runs), 'run')} at {_format_count(commits, 'commit')}"
    # What waits already is asked for once: it belongs to the request that came first.
    before = sum(run.trigger_id != trigger.pk for run in runs)
    summary += f", {'' if before == len(runs) else f'{before} of them '}asked for before." if before else "."
    if not runs:
        summary = "Nothing to do: every case is measured at these commits already."
    if plan.pushed:
        kept = len(plan.decision.newest) + len(plan.decision.backlog) + len(plan.skipped)
        summary += f" The push has {plan.pushed} commits: {kept} of them, evenly spread, stand for all."
    return " ".join([summary, *(f"Left out: {_end_sentence(sentence)}" for sentence in plan.skipped)])


def _end_sentence(text: str) -> str:
    """What a manifest is refused with ends in the offending value, and another sentence follows."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _close_trigger(
    trigger: Trigger, state: Trigger.State, detail: str, left_out: Collection[dict[str, object]] = ()
) -> None:
    # A sentence may quote what stands in a manifest; Postgres keeps no NUL in a text.
    storable = detail.replace("\0", "\N{REPLACEMENT CHARACTER}")
    Trigger.objects.filter(pk=trigger.pk, state=Trigger.State.RECEIVED).update(
        state=state, detail=storable, left_out=list(left_out), resolved_at=timezone.now()
    )
