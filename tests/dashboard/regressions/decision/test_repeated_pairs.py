"""Where the pairs that a proof needs have answered three times already."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.models import Regression
from dashboard.regressions.decision.decide import decide
from dashboard.regressions.decision.facts import Change, Evidence, Snapshot
from dashboard.regressions.decision.outcomes import Outcome, row_as_stored
from dashboard.regressions.decision.proofs import Purpose, State
from dashboard.regressions.decision.repeated_pairs import without_repeated
from dashboard.regressions.decision.requested_facts import GatheredFacts, RunsAtCommits, TimesAnswered
from dashboard.regressions.decision.wanted_measurements import NextStep, Placement, WantedExperiment
from dashboard.sentences.regressions.bisections import bisection_sentence
from tests.dashboard.regressions.decision.builders import (
    make_change,
    make_commit,
    make_regression,
    make_series,
    make_verdict,
)
from tests.dashboard.regressions.decision.simulated_project import SimulatedProject, TrueFacts

TIME, MEMORY = make_series("step_time"), make_series("peak_memory")
BASE, HEAD = make_commit(4), make_commit(9)


def wanted_pairs(purpose: str, series: object = TIME) -> WantedExperiment:
    return WantedExperiment(purpose, BASE, HEAD, series, 1.0, 1.2)  # type: ignore[arg-type]


def left_of(step: NextStep, state: str, **times: int) -> NextStep:
    """What is left where the pairs of each wanted experiment have answered so often, by metric."""
    answers = {
        TimesAnswered(each.series.pk, each.purpose, BASE.pk, HEAD.pk): times.get(each.series.metric.name, 0)
        for each in step.experiments
    }
    return without_repeated(step, state, 5, GatheredFacts(dict(answers)))


@pytest.mark.parametrize(
    ("purpose", "state"), [(Purpose.PROOF, State.SUSPECTED), (Purpose.BISECTION, State.CONFIRMED)]
)
def test_what_answered_three_times_ends_and_says_so(purpose: str, state: str) -> None:
    step = NextStep((wanted_pairs(purpose),))
    assert left_of(step, state, step_time=2) == step
    ended = left_of(step, state, step_time=3)
    assert ended == NextStep(placement=Placement(bisection=Evidence.of("answered", times=3, commits=5)))
    assert ended.ended
    assert ended.ended_answered_often


def test_another_series_of_a_proved_cause_is_only_left_out() -> None:
    ended = left_of(NextStep((wanted_pairs(Purpose.PROOF),)), State.CONFIRMED, step_time=3)
    assert (ended.ended, ended.placement) == (True, None)


def test_what_else_is_asked_goes_on() -> None:
    both = NextStep((wanted_pairs(Purpose.PROOF), wanted_pairs(Purpose.PROOF, MEMORY)))
    left = left_of(both, State.SUSPECTED, step_time=3)
    assert [each.series for each in left.experiments] == [MEMORY]
    assert left.placement is None


def test_a_confirmed_range_that_stays_is_told() -> None:
    regression = Regression(state="confirmed", bisection={"code": "answered", "times": 3, "commits": 5})
    assert bisection_sentence(regression) == (
        "It is one of these 5 commits: the pairs that would tell them apart have answered 3 times, for "
        "causes close to each other, and aren't measured again."
    )


def test_a_confirmed_commit_that_stays_is_told() -> None:
    regression = Regression(state="confirmed", bisection={"code": "answered", "times": 3, "commits": 1})
    assert bisection_sentence(regression).startswith("This commit isn't examined further: the pairs ")


def test_what_a_counter_confirms_since_is_unknown_no_more() -> None:
    """The time's change is gone, and the counter's is left: it needs no pairs."""
    calls = make_change(make_series("function_calls"), 4, 5, 1.5, regression_id=1)
    unknown = Evidence.of("answered", times=3, commits=1)
    suspected = make_regression(make_change(TIME, 4, 5, 1.2), state="undecided", bisection=unknown)
    snapshot = Snapshot("main", (calls,), (suspected,), focus=frozenset({1}))
    (outcome,) = decide(snapshot, TrueFacts(SimulatedProject(9, []))).outcomes
    assert outcome.decided
    assert (outcome.decided.state, outcome.decided.bisection) == ("confirmed", None)


def test_what_crosses_a_limit_alone_is_unknown_no_more() -> None:
    unknown = Evidence.of("answered", times=3, commits=1)
    regression = make_regression(make_change(TIME, 4, 5, 1.2), state="undecided", bisection=unknown)
    assert row_as_stored(regression, State.UNDECIDED, proving=False).bisection == unknown
    assert row_as_stored(regression, State.CONFIRMED, proving=False).bisection is None


class OftenAnswered(TrueFacts):
    """Pairs of bisections have answered often already. `in_full`: the commits were measured so."""

    def __init__(self, *, in_full: bool) -> None:
        super().__init__(SimulatedProject(12, []))
        self.in_full = in_full

    def answer_to(self, request: Any) -> Any:
        match request:
            case TimesAnswered():
                return 3 if request.purpose == Purpose.BISECTION else 0
            case RunsAtCommits() if not self.in_full:
                return {}
        return super().answer_to(request)


def decide_often_answered(*larger: Change, in_full: bool = False) -> Outcome:
    """What is decided of a step time confirmed between two commits, whose bisection isn't measured again."""
    slower = make_change(TIME, 4, 9, 1.2, regression_id=1)
    snapshot = Snapshot(
        "main",
        (slower, *larger),
        (make_regression(slower, state="confirmed", proving=True),),
        (make_verdict(slower, "confirmed", 4, 9, ratio=1.2),),
        focus=frozenset({1}),
    )
    (outcome,) = decide(snapshot, OftenAnswered(in_full=in_full)).outcomes
    return outcome


def test_the_ends_of_a_confirmed_range_that_stays_are_measured_in_full() -> None:
    outcome = decide_often_answered()
    assert [wanted.commit.position for wanted in outcome.next_step.runs] == [4, 9]
    assert outcome.decided
    assert (outcome.decided.proving, outcome.announce) == (True, False)


def test_a_larger_series_of_a_confirmed_range_that_stays_is_proved() -> None:
    outcome = decide_often_answered(make_change(MEMORY, 4, 9, 1.6, regression_id=1), in_full=True)
    (wanted,) = outcome.next_step.experiments
    assert (wanted.purpose, wanted.series) == (Purpose.PROOF, MEMORY)
    assert not outcome.announce


def test_a_confirmed_range_that_stays_is_told_once_nothing_else_is_asked() -> None:
    outcome = decide_often_answered(in_full=True)
    assert outcome.decided
    assert outcome.decided.bisection == Evidence.of("answered", times=3, commits=5)
    assert (outcome.decided.proving, outcome.announce) == (False, True)


def decide_moved(good: int, bad: int, *, live: bool) -> Outcome:
    """What becomes of a step that ended undecided at one commit, once points place it elsewhere."""
    unknown = Evidence.of("answered", times=3, commits=1)
    suspected = make_regression(make_change(TIME, 4, 5, 1.2), state="undecided", bisection=unknown)
    moved = make_change(TIME, good, bad, 1.2, regression_id=1)
    snapshot = Snapshot("main", (moved,), (suspected,), altered=frozenset({moved.pk or 0}), live=live)
    (outcome,) = decide(snapshot, TrueFacts(SimulatedProject(9, []))).outcomes
    return outcome


@pytest.mark.parametrize(("good", "bad"), [(4, 6), (5, 6), (3, 5)])
def test_what_is_judged_again_elsewhere_stays_undecided_until_it_may_be_proved(good: int, bad: int) -> None:
    again = decide_moved(good, bad, live=False)
    assert again.decided
    assert (again.decided.state, again.decided.proving, again.announce) == ("undecided", False, False)
    assert again.decided.bisection == Evidence.of("answered", times=3, commits=bad - good)
    (wanted,) = decide_moved(good, bad, live=True).next_step.experiments
    assert (wanted.base.position, wanted.head.position) == (good, bad)
