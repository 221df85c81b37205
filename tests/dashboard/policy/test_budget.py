"""On which cases a commit's seconds are spent: facts in, plan out, no database."""

from __future__ import annotations

from dataclasses import replace

import pytest
from paceline.manifest import Benchmark, parse_manifest

from dashboard.policy.budget import (
    CaseHistory,
    CommitPlan,
    informative_repetitions,
    limit_decision,
    spend_budget,
)
from dashboard.policy.decision import Candidate, Decision, Reason, SkippedCommits
from dashboard.policy.effective import EffectivePolicy

FOUR_CASES = """
[benchmarks.tiny]
version = 1
script = "train.py"
steps = 100
repetitions = 5
cases = [{ size = 1 }, { size = 2 }, { size = 3 }, { size = 4 }]
"""
TINY = parse_manifest(FOUR_CASES, "test").benchmarks["tiny"]
KNOWN = CaseHistory(standard_seconds=60, quick_seconds=20, standard_at=9, measured_at=9)

Histories = dict[tuple[str, str], CaseHistory]


def histories_of(*rows: CaseHistory) -> Histories:
    return {("tiny", f"size={number + 1}"): row for number, row in enumerate(rows)}


def plan_commit(seconds: float, histories: Histories, benchmark: Benchmark = TINY) -> CommitPlan:
    return spend_budget(seconds, [benchmark], histories, 10)


def plan_text(plan: CommitPlan) -> str:
    """The cases of a plan, quick ones with a question mark, those that are left out behind a dash."""
    measured = [f"{row.case}{'?' if row.quick else ''}" for row in plan.measured]
    return " ".join([*measured, *(f"-{case}" for _, case in plan.left_out)])


def test_what_fits_is_measured_in_standard() -> None:
    plan = plan_commit(240, histories_of(*[KNOWN] * 4))
    assert plan_text(plan) == "size=1 size=2 size=3 size=4"
    assert plan.seconds == 240


@pytest.mark.parametrize(
    ("seconds", "planned"),
    [
        (200, "size=1 size=2 size=3 size=4?"),
        (120, "size=1 size=2? size=3? size=4?"),
        (80, "size=1? size=2? size=3? size=4?"),
        (50, "size=1? size=2? -size=3 -size=4"),
        (1, "size=1? -size=2 -size=3 -size=4"),
    ],
)
def test_less_is_spent_on_quick_runs_and_then_on_some_in_standard(seconds: float, planned: str) -> None:
    plan = plan_commit(seconds, histories_of(*[KNOWN] * 4))
    assert plan_text(plan) == planned
    assert plan.seconds <= seconds or len(plan.measured) == 1


def test_what_was_left_longest_comes_first() -> None:
    longest = replace(KNOWN, standard_at=2)
    assert plan_text(plan_commit(120, histories_of(KNOWN, KNOWN, longest, KNOWN))) == (
        "size=1? size=2? size=3 size=4?"
    )
    unmeasured = replace(KNOWN, measured_at=3)
    assert plan_text(plan_commit(20, histories_of(KNOWN, KNOWN, KNOWN, unmeasured))).startswith("size=4? ")


def test_a_suspicion_is_measured_in_standard_whatever_it_costs() -> None:
    plan = plan_commit(50, histories_of(KNOWN, replace(KNOWN, suspected=True), KNOWN, KNOWN))
    assert plan_text(plan) == "size=2 -size=1 -size=3 -size=4"


def test_without_a_history_all_is_measured_so_that_there_is_one() -> None:
    assert plan_text(plan_commit(10, {})) == "size=1 size=2 size=3 size=4"


def test_a_new_case_costs_what_the_others_do() -> None:
    plan = plan_commit(240, histories_of(KNOWN, KNOWN, KNOWN))
    assert (plan_text(plan), plan.seconds) == ("size=1 size=2 size=3 size=4", 240)
    assert plan_text(plan_commit(239, histories_of(KNOWN, KNOWN, KNOWN))) == "size=1 size=2 size=3? size=4"


@pytest.mark.parametrize(
    ("within", "between", "repetitions"),
    [
        (0.01, 0.05, 3),
        (0.05, 0.05, 5),
        (0.02, 0.02, 5),
        (0.02, 0.022, 4),
        (None, 0.02, 5),
        (0.02, 0.0, 5),
    ],
)
def test_repetitions_end_where_the_noise_between_runs_rules(
    within: float | None, between: float, repetitions: int
) -> None:
    history = replace(KNOWN, noise_within=within, noise_between=between)
    assert informative_repetitions(5, history) == repetitions


def test_fewer_repetitions_cost_less() -> None:
    quiet = replace(KNOWN, repetitions=5, repetition_seconds=10, noise_within=0.01, noise_between=0.05)
    plan = plan_commit(160, histories_of(*[quiet] * 4))
    assert plan_text(plan) == "size=1 size=2 size=3 size=4"
    assert {row.repetitions for row in plan.measured} == {3}
    assert plan.seconds == 160


def test_the_commits_of_a_push_take_turns() -> None:
    policy = EffectivePolicy(branches=("main",))
    commits = [Candidate(f"{number:040x}", 10 + number, [TINY], policy) for number in range(4)]
    decision = Decision(newest=[(commit, [TINY]) for commit in commits])
    kept = limit_decision(decision, 40, histories_of(*[KNOWN] * 4))
    measured = [[row.cases[0].key for row in benchmarks] for _, benchmarks in kept.newest]
    assert measured == [["size=1", "size=2"], ["size=3", "size=4"]] * 2
    assert len(kept.quick) == 8
    assert kept.left_out == (
        SkippedCommits(Reason.BUDGET, 4, "tiny"),
        SkippedCommits(Reason.QUICK, 4, "tiny"),
    )
