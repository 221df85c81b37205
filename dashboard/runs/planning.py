"""What a trigger asks for: its commits, and which cases the policy measures there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from paceline import manifest as manifests
from paceline.manifest import Benchmark, Manifest, ManifestError

from dashboard import repositories
from dashboard.models import Project, Run, Trigger
from dashboard.policy.budget import limit_decision
from dashboard.policy.decision import (
    Candidate,
    Decision,
    Event,
    EventKind,
    Queue,
    Reason,
    SkippedCommits,
    decide_cases,
    has_skip_mark,
    measures_ref,
    spread_evenly,
)
from dashboard.policy.effective import EffectivePolicy
from dashboard.policy.project_policy import commit_policy, project_policy
from dashboard.repositories import DETACHED, CommitFacts, Mirror
from dashboard.runs import caps
from dashboard.runs.case_history import read_case_histories
from dashboard.runs.name_suggestions import suggest_name

# Nobody looks at the answer of a hook: what can't be reached just now is tried again.
PUSHED = (Trigger.Source.HOOK, Trigger.Source.FORGE, Trigger.Source.POLL)
UNATTENDED = (*PUSHED, Trigger.Source.SCHEDULE)
# Of a larger push so many commits are measured, evenly spread: bisection finds a cause that lies between.
MOST_PUSHED = 100
# Of a push whose commits wait for the newest, so many are looked at, evenly spread.
MOST_COALESCED = 1000
# More first-parent commits than any push has.
LARGEST_PUSH = 1_000_000
HEADS, TAGS = "refs/heads/", "refs/tags/"


@dataclass
class TriggerPlan:
    """What to measure, and a sentence for each commit whose manifest can't be read.

    `pushed` is the number of commits of a push of which only some are measured, else 0. `fork`: where the
    commits' branch left the project's. `skipped_by`: the commit whose message says that none is measured.
    """

    decision: Decision = field(default_factory=Decision)
    facts: dict[str, CommitFacts] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    # By hash, why the manifest of a commit can't be read.
    unreadable: dict[str, str] = field(default_factory=dict)
    pushed: int = 0
    fork: int | None = None
    skipped_by: str = ""
    always: bool = False


class UnmeasurableError(ManifestError):
    """None of the commits can be measured; `found` are those whose manifests can't be read, `unreadable`
    says by hash why."""

    def __init__(self, sentence: str, found: Sequence[CommitFacts], unreadable: Mapping[str, str]) -> None:
        super().__init__(sentence)
        self.found = [facts for facts in found if facts.hash in unreadable]
        self.unreadable = unreadable


def make_plan(trigger: Trigger) -> TriggerPlan:
    """Reads the fetched repository, writes nothing. Raises RepositoryError, ManifestError, TooManyRuns."""
    project, mirror = trigger.project, trigger.project.mirror
    policy = project_policy(project)
    event = event_of(trigger, policy)
    if event.kind == EventKind.MANUAL:
        hashes = repositories.select_commits(mirror, trigger.revisions)
        return plan_commits(trigger, event, policy, hashes)
    # Nobody reads a refusal, or asks again for less.
    pushed = repositories.select_commits(mirror, pushed_revisions(mirror, trigger), LARGEST_PUSH)
    if trigger.source in PUSHED and (reason := refuse_push(mirror, policy, event, pushed[-1])):
        marked_commit = pushed[-1] if reason == Reason.SKIP_MARK else ""
        return TriggerPlan(Decision(left_out=[SkippedCommits(reason, len(pushed))]), skipped_by=marked_commit)
    hashes = spread_evenly(pushed, min(len(pushed), MOST_COALESCED))
    plan = plan_commits(trigger, event, policy, hashes)
    plan.always = event.schedule is not None and event.schedule.always
    if len(pushed) > len(hashes) or any(row.reason == Reason.SPREAD for row in plan.decision.left_out):
        plan.pushed = len(pushed)
    return plan


def keep_to_budget(project: Project, policy: EffectivePolicy, event: Event, decision: Decision) -> Decision:
    """What a push measures of each commit for the seconds that one may cost; what else asks isn't bound."""
    if not policy.seconds_per_commit or event.kind not in (EventKind.BRANCH, EventKind.TAG):
        return decision
    return limit_decision(decision, policy.seconds_per_commit, read_case_histories(project))


def event_of(trigger: Trigger, policy: EffectivePolicy) -> Event:
    """What asks, as the policy has words for it; raises ManifestError for a schedule that is gone."""
    if trigger.source == Trigger.Source.SCHEDULE and trigger.schedule:
        schedule = next((row for row in policy.schedules if row.name == trigger.schedule), None)
        if schedule is None:
            raise ManifestError(f"The policy has no schedule {trigger.schedule} any more.")
        return Event(EventKind.SCHEDULE, schedule.name, schedule)
    if trigger.source not in PUSHED:
        return Event(EventKind.MANUAL)
    if trigger.ref.startswith(TAGS):
        return Event(EventKind.TAG, trigger.ref.removeprefix(TAGS))
    return Event(EventKind.BRANCH, trigger.ref.removeprefix(HEADS) or trigger.project.branch)


def refuse_push(mirror: Mirror, policy: EffectivePolicy, event: Event, newest: str) -> Reason | None:
    """Why nothing of a push is measured, whatever its commits change."""
    if not measures_ref(policy, event):
        return Reason.REF
    return Reason.SKIP_MARK if has_skip_mark(repositories.read_message(mirror, newest)) else None


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


def plan_commits(
    trigger: Trigger, event: Event, policy: EffectivePolicy, hashes: Sequence[str]
) -> TriggerPlan:
    """The plan for these commits, oldest first; raises where none of them can be measured."""
    project, mirror = trigger.project, trigger.project.mirror
    found = repositories.read_commits(mirror, hashes)
    plan = TriggerPlan(facts={facts.hash: facts for facts in found})
    candidates = list(read_candidates(project, mirror, found, trigger.benchmarks, plan))
    if not candidates:
        reason = plan.skipped[-1]
        if len(hashes) > 1:
            reason = f"None of the {len(hashes)} commits can be measured; the last: {reason}"
        raise UnmeasurableError(reason, found, plan.unreadable)
    if event.kind == EventKind.BRANCH:
        candidates = add_changed_paths(mirror, candidates, plan)
    plan.decision = decide_cases(policy, event, candidates, read_queue(project, policy, candidates, plan))
    plan.decision = keep_to_budget(project, policy, event, plan.decision)
    caps.check_runs(project, [*plan.decision.newest, *plan.decision.backlog])
    plan.fork = find_fork(project, mirror, plan)
    return plan


def read_candidates(
    project: Project, mirror: Mirror, commits: Sequence[CommitFacts], names: list[str], plan: TriggerPlan
) -> Iterable[Candidate]:
    """The commits that can be measured; what is wrong with the others goes to the plan."""
    policies: dict[int, EffectivePolicy] = {}
    for facts, manifest in read_commit_manifests(project, mirror, list(commits)):
        try:
            if isinstance(manifest, ManifestError):
                plan.unreadable[facts.hash] = str(manifest)
                raise manifest
            benchmarks = choose_benchmarks_named(manifest, names, facts)
        except ManifestError as error:
            plan.skipped.append(str(error))
            continue
        # Most commits have the manifest of the one before them.
        own = policies.setdefault(id(manifest), commit_policy(project, manifest.policy))
        yield Candidate(facts.hash, facts.position, benchmarks, own)


def add_changed_paths(mirror: Mirror, candidates: list[Candidate], plan: TriggerPlan) -> list[Candidate]:
    """The files that each commit changes, where a pattern asks for them."""
    if not any(candidate.policy.reads_paths for candidate in candidates):
        return candidates
    bases = {}
    before = ""
    for sha, facts in plan.facts.items():
        base = before or find_base(mirror, facts)
        if base:
            bases[sha] = base
        before = sha
    changed = repositories.changed_paths(mirror, bases)
    return [replace(candidate, changed=changed.get(candidate.hash)) for candidate in candidates]


def find_base(mirror: Mirror, facts: CommitFacts) -> str | None:
    """What the first commit of a push is compared with: the commit before it, or where its branch began."""
    if facts.branch not in (mirror.branch, DETACHED):
        try:
            return repositories.merge_base(mirror, facts.hash, f"refs/heads/{mirror.branch}")
        except repositories.RepositoryError:
            return None
    return facts.parents[0] if facts.parents else None


def read_queue(
    project: Project, policy: EffectivePolicy, candidates: Sequence[Candidate], plan: TriggerPlan
) -> Queue:
    positions = [candidate.position for candidate in candidates]
    branch = plan.facts[candidates[-1].hash].branch
    return Queue(
        room=queue_room(project, policy),
        most_commits=MOST_PUSHED,
        measured=measured_positions(project, branch, min(positions), max(positions)),
    )


def queue_room(project: Project, policy: EffectivePolicy) -> int:
    """How many more runs of the project may be asked for."""
    return min(settings.PACELINE_MOST_RUNS, most_waiting(policy) - waiting_runs(project))


def most_waiting(policy: EffectivePolicy) -> int:
    """How many runs of a project may wait at once, by its policy and by the site."""
    return min(policy.most_queued or settings.PACELINE_MOST_WAITING, settings.PACELINE_MOST_WAITING)


def waiting_runs(project: Project) -> int:
    return Run.objects.filter(configuration__case__project=project, state=Run.State.REQUESTED).count()


def measured_positions(project: Project, branch: str, first: int, last: int) -> set[int]:
    """Where a branch has been measured between two positions, or is just being."""
    runs = Run.objects.filter(
        commit__project=project, commit__branch=branch, commit__position__range=(first, last)
    )
    states = (Run.State.DONE, *Run.HELD)
    return set(runs.filter(state__in=states).values_list("commit__position", flat=True))


def find_fork(project: Project, mirror: Mirror, plan: TriggerPlan) -> int | None:
    """Where a branch beside the project's left it."""
    asked = [*plan.decision.newest, *plan.decision.backlog]
    branch = plan.facts[asked[0][0].hash].branch if asked else project.branch
    if branch in (project.branch, DETACHED):
        return None
    try:
        _, fork = repositories.commits_since_fork(mirror, f"refs/heads/{branch}")
    except repositories.RepositoryError:
        return None
    return fork if fork >= 0 else None


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
            yield facts, ManifestError(describe_missing_manifest(facts.hash))
            continue
        if isinstance(text, ManifestError):
            yield facts, text
            continue
        if text not in parsed:
            where = f"The manifest of {project}" if kept else f"{manifests.FILE_NAME} of {facts.hash[:10]}"
            parsed[text] = _parse_manifest(text, where)
        yield facts, parsed[text]


def describe_missing_manifest(commit: str) -> str:
    """A file that is pushed counts for the commits that have it; one that is kept here, for all."""
    return (
        f"Commit {commit[:10]} has no {manifests.FILE_NAME}. Write one with paceline init and push it; "
        "or keep one in the project's settings, which counts for all its commits."
    )


def _parse_manifest(text: str, where: str) -> Manifest | ManifestError:
    try:
        return manifests.parse_manifest(text, where)
    except ManifestError as error:
        return error


def choose_benchmarks_named(manifest: Manifest, names: Sequence[str], facts: CommitFacts) -> list[Benchmark]:
    """Those of these names, all without any. Raises ManifestError for a name that the commit doesn't have."""
    check_benchmark_names(manifest, names, f"Commit {facts.hash[:10]}")
    known = manifest.benchmarks
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    caps.check_benchmarks(chosen, facts)
    return chosen


def check_benchmark_names(manifest: Manifest, names: Sequence[str], where: str) -> None:
    """Raises ManifestError for the first name that a manifest, which `where` names, doesn't have."""
    for name in names:
        if name not in manifest.benchmarks:
            hint = suggest_name(name, manifest.benchmarks)
            raise ManifestError(f"{where} has no benchmark {name!r}; {hint}")
