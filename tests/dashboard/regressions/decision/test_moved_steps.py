"""A step that pairs have told of, and that detection places elsewhere now, with news or judged again."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.regressions.decision.decide import decide
from dashboard.regressions.decision.facts import Evidence, Snapshot
from dashboard.regressions.decision.outcomes import Outcome
from tests.dashboard.regressions.decision.builders import (
    make_change,
    make_commit,
    make_regression,
    make_series,
    make_verdict,
)
from tests.dashboard.regressions.decision.simulated_project import SimulatedProject, TrueFacts

TIME = make_series("step_time")
FOUND = make_change(TIME, 4, 5, 1.2)


def decide_moved(
    verdict: str, told: tuple[int, int], seen: tuple[int, int], *, live: bool = False, **fields: Any
) -> Outcome:
    """What becomes of a step once it is seen elsewhere than pairs told of it; `fields` of its row."""
    moved = make_change(
        TIME, *seen, 1.2, regression_id=1, environment_only=fields.pop("environment_only", False)
    )
    regression = make_regression(FOUND, **{"state": verdict} | fields)
    verdicts = (make_verdict(FOUND, verdict, *told, ratio=1.0),)
    snapshot = Snapshot(
        "main", (moved,), (regression,), verdicts, altered=frozenset({moved.pk or 0}), live=live
    )
    (outcome,) = decide(snapshot, TrueFacts(SimulatedProject(9, []))).outcomes
    return outcome


def pairs_of(outcome: Outcome) -> list[tuple[int, int]]:
    return [(wanted.base.position, wanted.head.position) for wanted in outcome.next_step.experiments]


@pytest.mark.parametrize("live", [False, True], ids=["judged again", "with news"])
@pytest.mark.parametrize("verdict", ["refuted", "undecided"])
@pytest.mark.parametrize("seen", [(5, 6), (4, 6), (2, 3)])
def test_where_pairs_have_not_told_of_it_it_is_proved(
    verdict: str, seen: tuple[int, int], live: bool
) -> None:
    outcome = decide_moved(verdict, (4, 5), seen, live=live)
    assert outcome.decided
    assert (outcome.decided.state, outcome.decided.proving, outcome.announce) == ("suspected", True, False)
    assert pairs_of(outcome) == [seen]


@pytest.mark.parametrize("verdict", ["refuted", "undecided"])
def test_a_verdict_stands_where_its_pairs_span_the_new_place(verdict: str) -> None:
    outcome = decide_moved(verdict, (3, 6), (5, 6))
    assert outcome.decided
    assert (outcome.decided.state, outcome.decided.proving, pairs_of(outcome)) == (verdict, False, [])


@pytest.mark.parametrize("live", [False, True], ids=["judged again", "with news"])
def test_what_was_left_suspected_beside_its_pairs_is_proved(live: bool) -> None:
    outcome = decide_moved("refuted", (4, 5), (6, 7), live=live, state="suspected")
    assert pairs_of(outcome) == [(6, 7)]


@pytest.mark.parametrize("live", [False, True], ids=["judged again", "with news"])
def test_what_could_not_be_measured_at_its_pairs_is_proved_where_it_lies(live: bool) -> None:
    """Other commits may run."""
    outcome = decide_moved("untestable", (4, 5), (6, 7), live=live, state="undecided")
    assert pairs_of(outcome) == [(6, 7)]


@pytest.mark.parametrize(
    "over",
    [
        {"triaged_away": True},
        {"recovered_by": make_commit(8).pk},
        {"withdrawn": True},
        {"environment_only": True},
        {"bisection": Evidence.of("answered", times=3, commits=1)},
    ],
    ids=lambda over: next(iter(over)),
)
def test_judged_again_nothing_is_measured_for_what_is_over(over: dict[str, Any]) -> None:
    outcome = decide_moved("refuted", (4, 5), (5, 6), **over)
    assert outcome.decided
    assert (outcome.decided.proving, pairs_of(outcome)) == (False, [])


@pytest.mark.parametrize("state", ["refuted", "undecided"])
def test_judged_again_nothing_is_measured_for_what_is_seen_repaired_now(state: str) -> None:
    moved = make_change(TIME, 5, 6, 1.2, regression_id=1)
    repair = make_change(TIME, 8, 9, 1 / 1.2, before=1.2, after=1.0, direction="improvement")
    verdicts = (make_verdict(FOUND, state, 4, 5, ratio=1.0),)
    regression = make_regression(FOUND, state=state)
    changes, altered = (moved, repair), frozenset({moved.pk or 0, repair.pk or 0})
    snapshot = Snapshot("main", changes, (regression,), verdicts, altered=altered, live=False)
    (outcome,) = decide(snapshot, TrueFacts(SimulatedProject(12, []))).outcomes
    assert outcome.decided
    assert outcome.decided.recovered_by == make_commit(9).pk
    assert (outcome.decided.proving, pairs_of(outcome)) == (False, [])
