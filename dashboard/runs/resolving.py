"""From a trigger to runs: its revisions become commits, their manifests cases, each case a requested run."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from paceline import manifest as manifests
from paceline.manifest import Benchmark, Manifest, ManifestError

from dashboard import repositories
from dashboard.models import Case, Commit, Project, Run, Trigger
from dashboard.repositories import CommitFacts, Mirror, RepositoryBusy, RepositoryError, Unreachable
from dashboard.runs import caps
from dashboard.runs.caps import TooMuch
from dashboard.runs.commits import get_or_create_commits
from dashboard.runs.errors import Busy
from dashboard.runs.requests import request_runs
from dashboard.runs.rewritten_history import follow_rewritten_history

Item = TypeVar("Item")

logger = logging.getLogger(__name__)

# Nobody looks at the answer of a hook: what can't be reached just now is tried again for this long.
PUSHED = (Trigger.Source.HOOK, Trigger.Source.FORGE, Trigger.Source.POLL)
UNATTENDED = (*PUSHED, Trigger.Source.SCHEDULE)
PATIENCE = timedelta(minutes=15)
# Of a larger push so many commits are measured, evenly spread: bisection finds a cause that lies between.
MOST_PUSHED = 100
# More first-parent commits than any push has.
LARGEST_PUSH = 1_000_000
# A new commit is measured before a backlog, what a schedule asks for after it.
PRIORITY = {**dict.fromkeys(PUSHED, 10), Trigger.Source.SCHEDULE: -10}
# In the message of a push's newest commit: nothing of it is measured.
SKIP_MARKS = ("[skip bench]", "[bench skip]")


@dataclass
class Plan:
    """Which benchmarks to measure at which commits, and a sentence for each commit that is left out.

    `pushed` is the number of commits of a push of which only some are measured, else 0. `skipped_by` is the
    commit whose message says that none is.
    """

    wanted: list[tuple[CommitFacts, list[Benchmark]]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    pushed: int = 0
    skipped_by: str = ""


def resolve_trigger(trigger_id: int, *, quick: bool = False) -> list[int]:
    """Turn a received trigger into runs, or refuse it with a sentence. Safe to repeat, also at once.

    Quick runs are asked for here alone: a trigger's row, from which the sweep resolves, doesn't tell.

    The ids of the runs, also of those that had been asked for before; none where it was refused or resolved
    already. Raises Busy while another process fetches the repository, and what the database raises while it
    can't be reached.
    """
    trigger = Trigger.objects.select_related("project").filter(pk=trigger_id, state=Trigger.State.RECEIVED)
    received = trigger.first()
    if received is None:
        return []
    try:
        return _resolve_received(received, quick)
    except (Busy, OperationalError, InterfaceError):
        raise
    except Exception as error:
        # The border of a process: a trigger that stayed received would be sent again for ever.
        logger.exception("Trigger %s can't be resolved", trigger_id)
        name = type(error).__name__
        _close_trigger(
            received, Trigger.State.REFUSED, f"An error of Paceline's own, {name}: its log has the details."
        )
    return []


def _resolve_received(received: Trigger, quick: bool) -> list[int]:
    try:
        received.project.mirror.fetch()
        follow_rewritten_history(received.project)
        plan = make_plan(received)
    except RepositoryBusy as error:
        raise Busy(str(error)) from error
    except Unreachable as error:
        if received.source in UNATTENDED and timezone.now() - received.received_at < PATIENCE:
            return []
        _close_trigger(received, Trigger.State.REFUSED, str(error))
    except (RepositoryError, ManifestError, TooMuch) as error:
        _close_trigger(received, Trigger.State.REFUSED, str(error))
    else:
        return _request_planned(received, plan, quick)
    return []


def make_plan(trigger: Trigger) -> Plan:
    """Reads the fetched repository, writes nothing. Raises RepositoryError, ManifestError, TooMuch."""
    project = trigger.project
    mirror = project.mirror
    plan = Plan()
    if trigger.source in UNATTENDED:
        # Nobody reads a refusal, or asks again for less.
        hashes = repositories.select_commits(mirror, pushed_revisions(mirror, trigger), LARGEST_PUSH)
        if trigger.source in PUSHED and is_skipped(mirror, hashes[-1]):
            plan.skipped_by = hashes[-1]
            return plan
        if len(hashes) > MOST_PUSHED:
            plan.pushed, hashes = len(hashes), spread_evenly(hashes, MOST_PUSHED)
    else:
        hashes = repositories.select_commits(mirror, trigger.revisions)
    for facts, manifest in read_commit_manifests(project, mirror, repositories.read_commits(mirror, hashes)):
        try:
            if isinstance(manifest, ManifestError):
                raise manifest
            plan.wanted.append((facts, _choose_benchmarks(manifest, trigger.benchmarks, facts)))
        except ManifestError as error:
            if len(hashes) == 1:
                raise
            plan.skipped.append(str(error))
    if not plan.wanted:
        raise ManifestError(
            f"None of the {len(hashes)} commits can be measured; the last: {plan.skipped[-1]}"
        )
    if trigger.source in UNATTENDED:
        fitting = caps.fit_commits(plan.wanted)
        if fitting < len(plan.wanted):
            plan.pushed = plan.pushed or len(plan.wanted)
            plan.wanted = spread_evenly(plan.wanted, fitting)
    caps.check_runs(project, plan.wanted)
    return plan


def pushed_revisions(mirror: Mirror, trigger: Trigger) -> dict[str, Any]:
    """What a push asks for, as the repository is now: a range whose beginning isn't behind its end, or isn't
    known here, was forced there, and stands for its newest commit."""
    span = trigger.revisions.get("range")
    if trigger.source not in PUSHED or not span:
        return dict(trigger.revisions)
    first, final = repositories.parse_range(span)
    if mirror.has_commit(first):
        ends = [repositories.resolve_revision(mirror, name) for name in (first, final)]
        if ends[0] != ends[1] and repositories.merge_base(mirror, *ends) == ends[0]:
            return {"range": span}
    return {"commit": final}


def is_skipped(mirror: Mirror, commit: str) -> bool:
    """Whether the message of a push's newest commit asks for no measurement."""
    message = repositories.read_message(mirror, commit).lower()
    return any(mark in message for mark in SKIP_MARKS)


def spread_evenly(items: list[Item], count: int) -> list[Item]:
    """So many of them, at even distances, the last one included."""
    return [items[number * len(items) // count - 1] for number in range(1, count + 1)]


def read_commit_manifests(
    project: Project, mirror: Mirror, commits: list[CommitFacts]
) -> Iterable[tuple[CommitFacts, Manifest | ManifestError]]:
    """Each commit with its manifest, or with what is wrong with it."""
    kept = project.manifest
    texts = {} if kept else repositories.read_manifests(mirror, [facts.hash for facts in commits])
    parsed: dict[str, Manifest | ManifestError] = {}
    for facts in commits:
        text = kept or texts.get(facts.hash)
        if text is None:
            yield facts, ManifestError(f"Commit {facts.hash[:10]} has no {manifests.FILE_NAME}.")
            continue
        if isinstance(text, ManifestError):
            yield facts, text
            continue
        if text not in parsed:
            where = f"The manifest of {project}" if kept else f"{manifests.FILE_NAME} of {facts.hash[:10]}"
            parsed[text] = _parse_manifest(text, where)
        yield facts, parsed[text]


def _parse_manifest(text: str, where: str) -> Manifest | ManifestError:
    try:
        return manifests.parse_manifest(text, where)
    except ManifestError as error:
        return error


def _choose_benchmarks(manifest: Manifest, names: list[str], facts: CommitFacts) -> list[Benchmark]:
    known = manifest.benchmarks
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}."
            raise ManifestError(f"Commit {facts.hash[:10]} has no benchmark {name!r}; {hint}")
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    caps.check_benchmarks(chosen, facts)
    return chosen


def _request_planned(trigger: Trigger, plan: Plan, quick: bool) -> list[int]:
    with transaction.atomic():
        # Held until the end: a second resolving of the same trigger waits here and then finds it closed.
        if not Trigger.objects.select_for_update().filter(pk=trigger.pk, state=Trigger.State.RECEIVED):
            return []
        if plan.skipped_by:
            said = f"Nothing is measured: the message of {plan.skipped_by[:10]} says so."
            _close_trigger(trigger, Trigger.State.RESOLVED, said)
            return []
        commits = get_or_create_commits(trigger.project, [facts for facts, _ in plan.wanted])
        cases = _get_or_create_cases(trigger.project, plan)
        wanted = [
            (commits[facts.hash], cases[benchmark.name, case.key], benchmark)
            for facts, benchmarks in plan.wanted
            for benchmark in benchmarks
            for case in benchmark.cases
        ]
        if trigger.source in UNATTENDED:
            wanted = _leave_out_measured(wanted)
        # Of a large push only the newest commit is urgent: the others are a backlog.
        newest = commits[plan.wanted[-1][0].hash]
        urgent = [item for item in wanted if not plan.pushed or item[0] == newest]
        backlog = [item for item in wanted if plan.pushed and item[0] != newest]
        priority = PRIORITY.get(Trigger.Source(trigger.source), 0)
        runs = request_runs(urgent, quick=quick, priority=priority, trigger=trigger)
        runs += request_runs(backlog, quick=quick, trigger=trigger)
        _close_trigger(trigger, Trigger.State.RESOLVED, _describe_runs(runs, plan))
    return [run.pk for run in runs]


def _get_or_create_cases(project: Project, plan: Plan) -> dict[tuple[str, str], Case]:
    """By benchmark and key, made where they are new."""
    benchmarks = [benchmark for _, chosen in plan.wanted for benchmark in chosen]
    rows = {
        (benchmark.name, case.key): Case(
            project=project, benchmark=benchmark.name, key=case.key, params=dict(case.params)
        )
        for benchmark in benchmarks
        for case in benchmark.cases
    }
    Case.objects.bulk_create([rows[key] for key in sorted(rows)], ignore_conflicts=True)
    return {(case.benchmark, case.key): case for case in project.cases.all()}


def _leave_out_measured(wanted: list[tuple[Commit, Case, Benchmark]]) -> list[tuple[Commit, Case, Benchmark]]:
    done = Run.objects.filter(
        commit__in={commit.pk for commit, _, _ in wanted},
        configuration__pool__name=settings.PACELINE_POOL,
        configuration__quick=False,
        state=Run.State.DONE,
    ).exclude(origin=Run.Origin.SENTINEL)
    measured = set(done.values_list("commit", "configuration__case", "configuration__version"))
    return [item for item in wanted if (item[0].pk, item[1].pk, item[2].version) not in measured]


def _describe_runs(runs: list[Run], plan: Plan) -> str:
    commits = len({run.commit_id for run in runs})
    said = f"{_format_count(len(runs), 'run')} at {_format_count(commits, 'commit')}."
    if not runs:
        said = "Nothing to do: every case is measured at these commits already."
    if plan.pushed:
        kept = len(plan.wanted) + len(plan.skipped)
        said += f" The push has {plan.pushed} commits: {kept} of them, evenly spread, stand for all."
    return " ".join([said, *(f"Left out: {sentence}" for sentence in plan.skipped)])


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _close_trigger(trigger: Trigger, state: Trigger.State, detail: str) -> None:
    # A sentence may quote what stands in a manifest; Postgres keeps no NUL in a text.
    storable = detail.replace("\0", "\N{REPLACEMENT CHARACTER}")
    Trigger.objects.filter(pk=trigger.pk, state=Trigger.State.RECEIVED).update(
        state=state, detail=storable, resolved_at=timezone.now()
    )
