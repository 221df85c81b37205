"""Where a suspicion that pairs refuted is looked for once more."""

from __future__ import annotations

import pytest

from dashboard.regressions.decision.facts import Evidence, ExperimentVerdict, Regression
from dashboard.regressions.decision.next_step import INTO_LEVEL, plan_next_step
from dashboard.regressions.decision.primary_change import bounding_commits, choose_primary
from dashboard.regressions.decision.proofs import Purpose, Verdict, bisection_steps, newest_first
from dashboard.regressions.decision.requested_facts import (
    CommitRow,
    CommitsBetween,
    GatheredFacts,
    PointsAround,
    PointsAroundRequest,
    RegressionsBetween,
    RunsAtCommits,
)
from dashboard.regressions.decision.wanted_measurements import NextStep, Placement, ProofContext
from tests.dashboard.regressions.decision.builders import (
    make_change,
    make_commit,
    make_regression,
    make_series,
    make_verdict,
)
from tests.dashboard.regressions.decision.simulated_project import Planted, SimulatedProject

TIME, MEMORY = make_series("step_time"), make_series("peak_memory")
GOOD, BAD = 20, 22
CHANGE = make_change(TIME, GOOD, BAD, 1.3)
EARLIER, LATER = make_commit(19), make_commit(24)


def proved_at(position: int, series: object = TIME, state: str = "confirmed") -> Regression:
    change = make_change(series, position - 1, position, 1.9)  # type: ignore[arg-type]
    return make_regression(change, key=position, state=state)


def next_pairs(*others: Regression, other_steps: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Between which positions is measured next, of a step that pairs have refuted at its own commits."""
    refuted = [make_verdict(CHANGE, Verdict.REFUTED, GOOD, BAD, ratio=1.0)]
    primary = choose_primary([CHANGE], refuted, make_regression(CHANGE))
    assert primary is not None
    good, bad = make_commit(GOOD), make_commit(BAD)
    facts = GatheredFacts(
        {
            PointsAroundRequest(TIME, good, bad): PointsAround(earlier=EARLIER, later=LATER),
            RegressionsBetween(EARLIER, LATER): others,
            RunsAtCommits(TIME, (good.hash, bad.hash), 1): {},
        }
    )
    step = plan_next_step(ProofContext(1, good, bad, primary, [CHANGE], refuted, other_steps, facts=facts))
    assert all(wanted.purpose == Purpose.PROOF for wanted in step.experiments)
    return [(wanted.base.position, wanted.head.position) for wanted in step.experiments]


def test_it_is_looked_for_on_both_sides() -> None:
    assert next_pairs() == [(EARLIER.position, LATER.position)]


@pytest.mark.parametrize(
    ("others", "measured"),
    [
        ([proved_at(20)], [(GOOD, 24)]),
        ([proved_at(23)], [(19, BAD)]),
        ([proved_at(20), proved_at(24)], []),
        ([proved_at(20, MEMORY)], [(19, 24)]),
        ([proved_at(20, state="suspected")], [(19, 24)]),
    ],
)
def test_where_another_step_was_proved_it_is_not_looked_for(
    others: list[Regression], measured: list[tuple[int, int]]
) -> None:
    """Pairs that span that step would confirm it a second time."""
    assert next_pairs(*others) == measured


@pytest.mark.parametrize(
    ("position", "measured"), [(19, (19, 24)), (20, (GOOD, 24)), (23, (19, BAD)), (25, (19, 24))]
)
def test_it_is_not_looked_for_across_an_improvement(position: int, measured: tuple[int, int]) -> None:
    assert next_pairs(other_steps=(position,)) == [measured]


def test_the_wider_range_is_bisected_beside_the_commits_that_were_refuted() -> None:
    wide = make_change(TIME, EARLIER.position, LATER.position, 1.3)
    verdicts = [
        make_verdict(CHANGE, Verdict.REFUTED, GOOD, BAD, ratio=1.0),
        make_verdict(wide, Verdict.CONFIRMED, EARLIER.position, LATER.position, ratio=1.3),
    ]
    primary = choose_primary([CHANGE], verdicts, make_regression(CHANGE))
    assert primary is not None
    line = [make_commit(position) for position in range(EARLIER.position + 1, LATER.position)]
    facts = GatheredFacts(
        {
            CommitsBetween(EARLIER, LATER): tuple(commit.hash for commit in line),
            **{CommitRow(commit.hash): commit for commit in line},
        }
    )
    step = plan_next_step(ProofContext(1, EARLIER, LATER, primary, [CHANGE], verdicts, facts=facts))
    (wanted,) = step.experiments
    assert (wanted.purpose, wanted.base, wanted.head.position) == (Purpose.BISECTION, EARLIER, BAD)


def next_pairs_after(refuted_ranges: list[tuple[int, int]], *, stands: bool = True) -> list[tuple[int, int]]:
    """What is measured next of a step that pairs have refuted in these ranges, and that stands or doesn't."""
    refuted = [make_verdict(CHANGE, Verdict.REFUTED, *ends, ratio=1.01) for ends in refuted_ranges]
    primary = choose_primary([CHANGE], newest_first(refuted), make_regression(CHANGE))
    assert primary is not None
    good, bad = bounding_commits(primary)
    inside = PointsAround(earlier=make_commit(12), later=make_commit(30))
    facts = GatheredFacts(
        {
            PointsAroundRequest(TIME, good, bad): PointsAround(earlier=EARLIER, later=LATER),
            PointsAroundRequest(TIME, good, bad, INTO_LEVEL): inside,
            RegressionsBetween(EARLIER, LATER): (),
            RegressionsBetween(make_commit(12), make_commit(30)): (),
            RunsAtCommits(TIME, (good.hash, bad.hash), 1): {},
        }
    )
    step = plan_next_step(
        ProofContext(1, good, bad, primary, [CHANGE], refuted, proved_again=stands, facts=facts)
    )
    return [(wanted.base.position, wanted.head.position) for wanted in step.experiments]


def test_what_stands_though_it_was_refuted_twice_is_looked_for_between_its_levels() -> None:
    assert next_pairs_after([(20, 22), (19, 24)]) == [(12, 30)]
    assert next_pairs_after([(20, 22), (19, 24)], stands=False) == []
    assert next_pairs_after([(20, 22), (19, 24), (12, 30)]) == []


def proved_between_levels(*steps: tuple[int, str], alone: str = "") -> NextStep:
    """What is measured next of a step that only pairs of its levels show, bisected at these commits.

    `alone`: what 19 has of it by itself.
    """
    wide = make_change(TIME, 12, 30, 1.12)
    verdicts = [
        make_verdict(CHANGE, Verdict.REFUTED, GOOD, BAD, ratio=1.01),
        make_verdict(CHANGE, Verdict.REFUTED, EARLIER.position, LATER.position, ratio=1.04),
        make_verdict(wide, Verdict.CONFIRMED, 12, 30, ratio=1.12),
        *(make_verdict(wide, verdict, 12, at, purpose=Purpose.BISECTION) for at, verdict in steps),
    ]
    verdicts += [make_verdict(wide, alone, 18, 19, purpose=Purpose.BISECTION)] if alone else []
    primary = choose_primary([CHANGE], newest_first(verdicts), make_regression(CHANGE))
    assert primary is not None
    assert primary.state == "confirmed"
    line = [make_commit(position) for position in range(13, 30)]
    facts = GatheredFacts(
        {
            CommitsBetween(make_commit(12), make_commit(30)): tuple(commit.hash for commit in line),
            **{CommitRow(commit.hash): commit for commit in line},
        }
    )
    good, bad = bounding_commits(primary)
    return plan_next_step(ProofContext(1, good, bad, primary, [CHANGE], verdicts, facts=facts))


def test_a_step_between_levels_is_looked_for_beside_its_place() -> None:
    """Detection may have put one commit's step a few commits beside it."""
    (wanted,) = proved_between_levels().experiments
    assert (wanted.purpose, wanted.base.position) == (Purpose.BISECTION, 12)
    (again,) = proved_between_levels((wanted.head.position, Verdict.NONE)).experiments
    assert again.purpose == Purpose.BISECTION
    assert again.head.position > wanted.head.position


LED_TO_19 = ((19, Verdict.PART), (18, Verdict.NONE))


def test_a_commit_to_which_a_part_of_a_step_leads_is_measured_alone() -> None:
    (further,) = proved_between_levels(LED_TO_19[0]).experiments
    assert (further.base.position, further.head.position) == (12, 15)
    (alone,) = proved_between_levels(*LED_TO_19).experiments
    assert (alone.purpose, alone.base.position, alone.head.position) == (Purpose.BISECTION, 18, 19)
    assert alone.after == pytest.approx(1.12)


@pytest.mark.parametrize("alone", [Verdict.NONE, Verdict.UNDECIDED])
def test_what_came_gradually_is_blamed_on_no_commit(alone: str) -> None:
    assert proved_between_levels(*LED_TO_19, alone=alone) == NextStep(
        placement=Placement(bisection=Evidence.of("gradual", commits=18))
    )


def verdicts_on_wide_step(alone: str) -> list[ExperimentVerdict]:
    """Those of a step that was confirmed at once, and bisected to 19; `alone`: what that has by itself."""
    wide = make_change(TIME, 12, 30, 1.12)
    steps = [(21, Verdict.PART), (16, Verdict.NONE), (18, Verdict.NONE), (19, Verdict.PART)]
    return [
        make_verdict(wide, Verdict.CONFIRMED, 12, 30, ratio=1.12),
        *(make_verdict(wide, verdict, 12, at, purpose=Purpose.BISECTION) for at, verdict in steps),
        make_verdict(wide, alone, 18, 19, purpose=Purpose.BISECTION),
    ]


def test_what_came_gradually_stays_so_where_its_points_narrow_it() -> None:
    """Commits of its range that were measured later place detection's step at one of them."""
    narrow = make_change(TIME, 20, 21, 1.12)
    verdicts = verdicts_on_wide_step(Verdict.NONE)
    primary = choose_primary([narrow], newest_first(verdicts), make_regression(narrow, state="confirmed"))
    assert primary is not None
    assert [commit.position for commit in bounding_commits(primary)] == [12, 30]


def test_a_commit_that_ran_before_is_not_left_out_of_its_bisection() -> None:
    verdicts = verdicts_on_wide_step(Verdict.UNTESTABLE)
    steps = {step.head.position: step.verdict for step in bisection_steps(verdicts, verdicts[0])}
    assert (steps[19], steps[18]) == (Verdict.PART, Verdict.NONE)


def test_what_was_measured_since_the_proof_was_asked_says_where_to_bisect() -> None:
    project = SimulatedProject(60, [Planted(TIME, 28, 1.2)])
    for position in (*range(0, 60, 12), *range(25, 36)):
        project.measure(position)
    project.answer_all()
    told = [(row.purpose, row.base.position, row.head.position, row.verdict) for row in project.verdicts]
    assert told == [
        ("proof", 24, 36, "confirmed"),
        ("bisection", 24, 28, "whole"),
        ("bisection", 24, 27, "none"),
    ]
