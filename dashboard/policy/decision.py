"""Which cases are measured at which commits of an event, and why the others aren't: facts in, plan out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from paceline.manifest import Benchmark, Case
from paceline.manifest.policy import Schedule

from dashboard.policy.effective import EffectivePolicy
from dashboard.policy.halving import halving_order
from dashboard.policy.patterns import selects_name, touched_paths

Item = TypeVar("Item")

# In the message of a push's newest commit: nothing of it is measured.
SKIP_MARKS = ("[skip bench]", "[bench skip]")


class EventKind(StrEnum):
    """What asks for measurements. A person decides alone: no pattern keeps a benchmark from them."""

    BRANCH = "branch"
    TAG = "tag"
    SCHEDULE = "schedule"
    MANUAL = "manual"


class Reason(StrEnum):
    """Why something isn't measured now."""

    SKIP_MARK = "skip mark"
    REF = "ref"
    IGNORED_PATHS = "ignored paths"
    UNTOUCHED_PATHS = "untouched paths"
    BENCHMARK_REF = "benchmark ref"
    SCHEDULED = "scheduled"
    NEWEST_FIRST = "newest first"
    QUEUE_FULL = "queue full"
    SPREAD = "spread"
    BUDGET = "budget"
    QUICK = "quick"
    # No choice of the policy: the commits' manifests can't be read, or aren't there.
    MANIFEST = "manifest"


@dataclass(frozen=True, slots=True)
class Event:
    """`name`: of the branch, the tag or the schedule."""

    kind: EventKind
    name: str = ""
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A commit of an event with the benchmarks that its manifest offers, and the policy that holds for it.

    `changed`: the files that it changes; None where that isn't known, or doesn't matter.
    """

    hash: str
    position: int
    benchmarks: Sequence[Benchmark]
    policy: EffectivePolicy
    changed: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class SkippedCommits:
    """`commits`: at how many this benchmark isn't measured; no name: at how many nothing is."""

    reason: Reason
    commits: int
    benchmark: str = ""


Chosen = tuple[Candidate, list[Benchmark]]


@dataclass(frozen=True, slots=True)
class Decision:
    """`newest` is urgent; `backlog` is measured when nothing else waits, in this order; `later` are the
    hashes of those that are asked for once the queue is shorter. `quick`: the (hash, benchmark, case) of
    short windows."""

    newest: Sequence[Chosen] = ()
    backlog: Sequence[Chosen] = ()
    later: Sequence[str] = ()
    left_out: Sequence[SkippedCommits] = field(default_factory=tuple)
    quick: frozenset[tuple[str, str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Queue:
    """How many more runs may wait, how many commits of a push are measured where bursts aren't coalesced, and
    the positions that are measured already."""

    room: int
    most_commits: int
    measured: Collection[int] = ()


def measures_ref(policy: EffectivePolicy, event: Event) -> bool:
    """Whether a push to this branch or tag measures anything. For a benchmark that has patterns of its own
    these stand beside the common ones: a push that any of them takes in is looked at."""
    if event.kind == EventKind.BRANCH:
        patterns = [policy.branches, *(row.branches for row in policy.benchmarks.values())]
    elif event.kind == EventKind.TAG:
        patterns = [policy.tags, *(row.tags for row in policy.benchmarks.values())]
    else:
        return True
    return any(selects_name(row, event.name) for row in patterns if row)


def has_skip_mark(message: str) -> bool:
    """Whether the message of a push's newest commit asks for no measurement."""
    return any(mark in message.lower() for mark in SKIP_MARKS)


def decide_cases(
    policy: EffectivePolicy, event: Event, candidates: Sequence[Candidate], queue: Queue
) -> Decision:
    """`candidates` are the commits of an event, oldest first; `policy` is that of the project."""
    chosen: list[Chosen] = []
    reasons: Counter[tuple[Reason, str]] = Counter()
    for candidate in candidates:
        benchmarks, left_out = choose_benchmarks(candidate, event, policy)
        if benchmarks:
            chosen.append((candidate, benchmarks))
            reasons.update((reason, name) for name, reason in left_out.items())
        elif left_out:
            reasons[common_reason(left_out), ""] += 1
    if event.kind == EventKind.MANUAL:
        return Decision(newest=chosen)
    plan = order_commits(policy, chosen, queue)
    skipped = [SkippedCommits(reason, count, name) for (reason, name), count in reasons.items()]
    return replace(plan, left_out=(*plan.left_out, *skipped))


def choose_benchmarks(
    candidate: Candidate, event: Event, policy: EffectivePolicy
) -> tuple[list[Benchmark], dict[str, Reason]]:
    """The benchmarks that are measured at this commit, each with the cases that are; and the others."""
    chosen: list[Benchmark] = []
    left_out: dict[str, Reason] = {}
    for benchmark in candidate.benchmarks:
        reason = exclude_benchmark(candidate, event, benchmark.name)
        cases = () if reason else select_cases(benchmark, event, policy)
        if cases:
            chosen.append(replace(benchmark, cases=cases))
        elif reason or event.kind != EventKind.SCHEDULE:
            left_out[benchmark.name] = reason or Reason.SCHEDULED
    return chosen, left_out


def exclude_benchmark(candidate: Candidate, event: Event, name: str) -> Reason | None:
    """Why a benchmark isn't measured at this commit; None where its patterns take it in."""
    if event.kind not in (EventKind.BRANCH, EventKind.TAG):
        return None
    filters = candidate.policy.filters_of(name)
    patterns = filters.branches if event.kind == EventKind.BRANCH else filters.tags
    if not selects_name(patterns or (), event.name):
        return Reason.BENCHMARK_REF
    # A tag changes no file.
    if candidate.changed is None or event.kind == EventKind.TAG:
        return None
    paths, ignored = filters.paths or (), filters.paths_ignore or ()
    if (not paths and not ignored) or touched_paths(candidate.changed, paths, ignored):
        return None
    return Reason.UNTOUCHED_PATHS if touched_paths(candidate.changed, (), ignored) else Reason.IGNORED_PATHS


def select_cases(benchmark: Benchmark, event: Event, policy: EffectivePolicy) -> tuple[Case, ...]:
    """Of a benchmark the cases that this event measures: those of the schedule, or those of no schedule."""
    if event.kind == EventKind.MANUAL:
        return benchmark.cases
    if event.schedule is not None:
        return tuple(case for case in benchmark.cases if event.schedule.selects(benchmark.name, case.params))
    # A schedule that names nothing measures again what pushes measure.
    apart = [row for row in policy.schedules if (row.benchmarks or row.cases) and not row.on_push]
    return tuple(
        case
        for case in benchmark.cases
        if not any(schedule.selects(benchmark.name, case.params) for schedule in apart)
    )


def common_reason(left_out: Mapping[str, Reason]) -> Reason:
    """Why nothing of a commit is measured, of what keeps its benchmarks out."""
    found = set(left_out.values())
    if len(found) == 1:
        return found.pop()
    # What stands in the way of the most: a commit that touches other files than those of a benchmark.
    found.discard(Reason.SCHEDULED)
    return Reason.UNTOUCHED_PATHS if Reason.UNTOUCHED_PATHS in found else sorted(found)[0]


def order_commits(policy: EffectivePolicy, chosen: Sequence[Chosen], queue: Queue) -> Decision:
    """The newest commit first, and as many of the others as may wait."""
    if not chosen:
        return Decision()
    *older, newest = chosen
    if not policy.coalesce:
        return _spread_commits(older, newest, queue)
    known = {newest[0].position, *queue.measured}
    taken = replace(queue, room=queue.room - count_cases([newest]), measured=known)
    return replace(order_backlog(older, taken), newest=[newest])


def order_backlog(chosen: Sequence[Chosen], queue: Queue) -> Decision:
    """Commits that wait until nothing else does: each halves the largest gap between measured ones."""
    of_position = {candidate.position: (candidate, benchmarks) for candidate, benchmarks in chosen}
    ordered = [of_position[position] for position in halving_order(of_position, queue.measured)]
    fitting = _count_fitting(ordered, queue.room)
    left_out = [SkippedCommits(Reason.NEWEST_FIRST, fitting)] if fitting else []
    if later := [candidate.hash for candidate, _ in ordered[fitting:]]:
        left_out.append(SkippedCommits(Reason.QUEUE_FULL, len(later)))
    return Decision(backlog=ordered[:fitting], later=later, left_out=left_out)


def _spread_commits(older: Sequence[Chosen], newest: Chosen, queue: Queue) -> Decision:
    """All at once while they fit; of more, some at even distances: bisection finds what lies between."""
    whole = [*older, newest]
    most_cases = max(count_cases([row]) for row in whole)
    fitting = min(len(whole), queue.most_commits, max(1, queue.room // max(1, most_cases)))
    if fitting == len(whole):
        return Decision(newest=whole)
    *some, last = spread_evenly(whole, fitting)
    return Decision([last], some, left_out=[SkippedCommits(Reason.SPREAD, len(whole) - fitting)])


def _count_fitting(ordered: Sequence[Chosen], room: int) -> int:
    for number, row in enumerate(ordered):
        room -= count_cases([row])
        if room < 0:
            return number
    return len(ordered)


def count_cases(chosen: Sequence[Chosen]) -> int:
    return sum(len(benchmark.cases) for _, benchmarks in chosen for benchmark in benchmarks)


def spread_evenly(items: Sequence[Item], count: int) -> list[Item]:
    """So many of them, at even distances, the last one included."""
    return [items[number * len(items) // count - 1] for number in range(1, count + 1)]
