"""What a commit may cost, and on which of its cases that is spent: facts in, plan out.

While all cases fit in standard, they are measured so. Else every case is measured quickly, what was left
longest first, and what remains is spent on standard runs, again what was left longest first. A case in which
something is suspected is measured in standard whatever it costs. Repetitions are no more than tell something.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from paceline.manifest import Benchmark

from dashboard.policy.decision import Chosen, Decision, Reason, SkippedCommits

# What a quick run costs of a standard one, where none was seen yet.
QUICK_SHARE = 0.5
FEWEST_REPETITIONS = 3
# Repetitions are enough once their own noise adds less than this share to the noise between runs.
ADDED_NOISE = 0.1
NEVER = 1_000_000


@dataclass(frozen=True, slots=True)
class CaseHistory:
    """What past runs of a case say; None where none tells.

    Seconds of a run, in standard and quick, and of one repetition in standard; the noise of the step time, as
    the deviation of its logarithm: of repetitions within a run, and between runs. Where on the branch it was
    measured last, in standard, and at all.
    """

    standard_seconds: float | None = None
    quick_seconds: float | None = None
    repetition_seconds: float = 0.0
    repetitions: int = 0
    noise_within: float | None = None
    noise_between: float | None = None
    standard_at: int | None = None
    measured_at: int | None = None
    suspected: bool = False


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case of a commit, how it is measured, and what that is expected to cost."""

    benchmark: str
    case: str
    quick: bool
    repetitions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """What is measured of a commit; the (benchmark, case) of the others. `seconds` is what that will cost."""

    measured: Sequence[PlannedCase] = ()
    left_out: Sequence[tuple[str, str]] = ()

    @property
    def seconds(self) -> float:
        return sum(planned.seconds for planned in self.measured)


@dataclass(slots=True)
class _Candidate:
    key: tuple[str, str]
    history: CaseHistory
    repetitions: int
    standard: float
    quick: float
    planned: PlannedCase | None = None

    def plan(self, *, quick: bool, quick_repetitions: int) -> None:
        self.planned = PlannedCase(
            *self.key,
            quick=quick,
            repetitions=quick_repetitions if quick else self.repetitions,
            seconds=self.quick if quick else self.standard,
        )


def spend_budget(
    seconds: float,
    benchmarks: Sequence[Benchmark],
    histories: Mapping[tuple[str, str], CaseHistory],
    position: int,
) -> CommitPlan:
    """The plan of a commit at this position, whose cases are those of `benchmarks`."""
    quick_repetitions = {row.name: row.as_quick().repetitions for row in benchmarks}
    candidates = _estimate_cases(benchmarks, histories)

    def plan(candidate: _Candidate, *, quick: bool) -> None:
        candidate.plan(quick=quick, quick_repetitions=quick_repetitions[candidate.key[0]])

    if sum(candidate.standard for candidate in candidates) <= seconds:
        for candidate in candidates:
            plan(candidate, quick=False)
        return _make_plan(candidates)
    left = seconds
    for candidate in candidates:
        if candidate.history.suspected:
            plan(candidate, quick=False)
            left -= candidate.standard
    for candidate in sorted(
        candidates, key=lambda row: _waiting_order(row, row.history.measured_at, position)
    ):
        nothing_yet = all(row.planned is None for row in candidates)
        if candidate.planned is None and (candidate.quick <= left or nothing_yet):
            plan(candidate, quick=True)
            left -= candidate.quick
    for candidate in sorted(
        candidates, key=lambda row: _waiting_order(row, row.history.standard_at, position)
    ):
        more = candidate.standard - candidate.quick
        if candidate.planned is not None and candidate.planned.quick and more <= left:
            plan(candidate, quick=False)
            left -= more
    return _make_plan(candidates)


def _estimate_cases(
    benchmarks: Sequence[Benchmark], histories: Mapping[tuple[str, str], CaseHistory]
) -> list[_Candidate]:
    keys = [(row, (row.name, case.key)) for row in benchmarks for case in row.cases]
    found = {key: histories.get(key, CaseHistory()) for _, key in keys}
    known = [row.standard_seconds for row in found.values() if row.standard_seconds is not None]
    # Of what was never measured nothing is known but what the others cost; of nothing, nothing.
    usual = median(known) if known else 0.0
    candidates = []
    for benchmark, key in keys:
        history = found[key]
        repetitions = informative_repetitions(benchmark.repetitions, history)
        standard = history.standard_seconds
        if standard is None:
            standard = usual if history.quick_seconds is None else history.quick_seconds / QUICK_SHARE
        else:
            saved = max(0, history.repetitions - repetitions) * history.repetition_seconds
            standard = max(0.0, standard - saved)
        quick = standard * QUICK_SHARE if history.quick_seconds is None else history.quick_seconds
        candidates.append(_Candidate(key, history, repetitions, max(standard, quick), quick))
    return candidates


def informative_repetitions(most: int, history: CaseHistory) -> int:
    """As many repetitions as bring a run's value to where the noise between runs rules; three at least."""
    within, between = history.noise_within, history.noise_between
    if most <= FEWEST_REPETITIONS or not within or not between:
        return most
    # sqrt(between² + within² / n) is within a tenth of what runs differ by anyway.
    needed = (within / between) ** 2 / ((1 + ADDED_NOISE) ** 2 - 1)
    return max(FEWEST_REPETITIONS, min(most, math.ceil(needed)))


def _waiting_order(
    candidate: _Candidate, measured_at: int | None, position: int
) -> tuple[int, float, str, str]:
    """What was left longest first, of equals the cheapest."""
    waited = NEVER if measured_at is None else max(0, position - measured_at)
    return (-waited, candidate.quick, *candidate.key)


def _make_plan(candidates: Sequence[_Candidate]) -> CommitPlan:
    return CommitPlan(
        measured=[row.planned for row in candidates if row.planned is not None],
        left_out=[row.key for row in candidates if row.planned is None],
    )


def note_measured(
    histories: Mapping[tuple[str, str], CaseHistory], plan: CommitPlan, position: int
) -> dict[tuple[str, str], CaseHistory]:
    """The histories once this plan is measured, for the next commit of a push."""
    changed = dict(histories)
    for planned in plan.measured:
        key = (planned.benchmark, planned.case)
        history = changed.get(key, CaseHistory())
        standard_at = history.standard_at if planned.quick else position
        changed[key] = replace(history, measured_at=position, standard_at=standard_at)
    return changed


def limit_decision(
    decision: Decision, seconds: float, histories: Mapping[tuple[str, str], CaseHistory]
) -> Decision:
    """The decision with so many seconds for each of its commits, the urgent ones first."""
    reasons: Counter[tuple[Reason, str]] = Counter()
    quick: set[tuple[str, str, str]] = set()
    parts: list[list[Chosen]] = []
    for chosen in (decision.newest, decision.backlog):
        parts.append([])
        for candidate, benchmarks in chosen:
            plan = spend_budget(seconds, benchmarks, histories, candidate.position)
            histories = note_measured(histories, plan, candidate.position)
            parts[-1].append((candidate, apply_plan(benchmarks, plan)))
            short = {(row.benchmark, row.case) for row in plan.measured if row.quick}
            quick |= {(candidate.hash, *key) for key in short}
            reasons.update((Reason.QUICK, name) for name in {name for name, _ in short})
            reasons.update((Reason.BUDGET, name) for name in {name for name, _ in plan.left_out})
    skipped = [SkippedCommits(reason, count, name) for (reason, name), count in sorted(reasons.items())]
    return replace(
        decision,
        newest=parts[0],
        backlog=parts[1],
        left_out=(*decision.left_out, *skipped),
        quick=frozenset(quick),
    )


def apply_plan(benchmarks: Sequence[Benchmark], plan: CommitPlan) -> list[Benchmark]:
    """Each planned case as a benchmark of its own, with as many repetitions as it gets in standard."""
    planned = {(row.benchmark, row.case): row for row in plan.measured}
    chosen = []
    for benchmark in benchmarks:
        for case in benchmark.cases:
            row = planned.get((benchmark.name, case.key))
            if row is not None:
                repetitions = benchmark.repetitions if row.quick else row.repetitions
                chosen.append(replace(benchmark, cases=(case,), repetitions=repetitions))
    return chosen
