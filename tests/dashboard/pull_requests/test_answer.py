from __future__ import annotations

import math

import pytest

from dashboard.experiments.bounds import BoundedDifference, MeasuredMetric
from dashboard.pull_requests.answer import CaseEvaluation, answer_check, prove_worse

STEP_TIME = MeasuredMetric("step_time", "s", "lower", "time")
RETURN = MeasuredMetric("quality.return", "1", "higher", "quality")


def make_bounded(low: float, high: float, metric: MeasuredMetric = STEP_TIME) -> BoundedDifference:
    ends = math.log(low), math.log(high)
    return BoundedDifference(metric, 10, True, math.log(1.03), sum(ends) / 2, *ends)


SLOWER, SAME, OPEN, FASTER = (
    make_bounded(low, high) for low, high in ((1.2, 1.4), (0.99, 1.01), (0.98, 1.09), (0.7, 0.8))
)
LEARNS_LESS = make_bounded(1.5, 2.0, RETURN)
MEMORY = MeasuredMetric("peak_memory", "B", "lower", "memory")
NEEDS_MORE, NEEDS_LESS = make_bounded(1.2, 1.4, MEMORY), make_bounded(0.7, 0.8, MEMORY)
# Worse by its middle, and perhaps by less than the floor.
NEEDS_PERHAPS_MORE = make_bounded(1.02, 1.06, MEMORY)

CALLS = MeasuredMetric("function_calls", "calls/step", "lower", "counter")


def make_counted(ratio: float, *, is_offset: bool = False) -> BoundedDifference:
    moved = math.log(ratio)
    return BoundedDifference(CALLS, 0, True, math.log(1.05), moved, moved, moved, is_offset=is_offset)


PERHAPS_FASTER = make_bounded(0.95, 1.01)
CALLS_MORE, CALLS_OFFSET = make_counted(1.3), make_counted(1.3, is_offset=True)


def make_case(
    own: BoundedDifference | None, *others: BoundedDifference, failure: str = "", ended: bool = True
) -> CaseEvaluation:
    return CaseEvaluation("tiny", own, others, failure, ended)


@pytest.mark.parametrize(
    ("cases", "answer"),
    [
        ([make_case(SLOWER)], "worse"),
        ([make_case(SAME), make_case(SLOWER)], "worse"),
        ([make_case(SAME), make_case(FASTER)], "not worse"),
        ([make_case(SAME), make_case(OPEN)], "not known"),
        ([make_case(SLOWER), make_case(OPEN)], "worse"),
        ([make_case(FASTER, LEARNS_LESS)], "worse"),
        ([make_case(SAME, CALLS_MORE)], "worse"),
        ([make_case(OPEN, CALLS_MORE)], "worse"),
        ([make_case(None, CALLS_MORE)], "worse"),
        ([make_case(FASTER, CALLS_OFFSET)], "not worse"),
        ([make_case(None)], "not known"),
        ([make_case(SAME, failure="it crashed")], "not known"),
        ([], "not known"),
    ],
)
def test_one_proved_case_is_enough_and_all_have_to_pass(cases: list[CaseEvaluation], answer: str) -> None:
    assert answer_check(cases, make_case(SAME)).answer == answer


@pytest.mark.parametrize("control", [SLOWER, FASTER])
def test_where_the_base_differs_from_itself_nothing_is_known(control: BoundedDifference) -> None:
    answered = answer_check([make_case(SLOWER)], make_case(control))
    assert answered.answer == "not known"
    assert answered.reason["code"] == "control moved"
    assert answered.reason["ratio"] == pytest.approx(math.exp(control.middle))


def test_a_control_that_tells_nothing_is_no_reason_to_doubt() -> None:
    assert answer_check([make_case(SLOWER)], make_case(None)).answer == "worse"
    assert answer_check([make_case(SAME)], None).answer == "not worse"


def test_what_would_have_been_seen_is_said() -> None:
    answered = answer_check([make_case(OPEN)], None)
    assert answered.reason["code"] == "both answers possible"
    assert answered.reason["visible"] == pytest.approx(0.0547, abs=0.001)
    assert answer_check([make_case(OPEN), make_case(None)], None).reason["visible"] is None


def test_a_counter_that_varies_on_the_same_code_is_left_out() -> None:
    assert answer_check([make_case(SAME, CALLS_MORE)], make_case(SAME, CALLS_MORE)).answer == "not worse"
    assert answer_check([make_case(OPEN, CALLS_MORE)], make_case(SAME, CALLS_MORE)).answer == "not known"


def test_a_side_that_does_not_run_is_named() -> None:
    answered = answer_check([make_case(None, failure="abc: it crashed")], None)
    assert answered.reason == {"code": "side failed", "case": "tiny", "text": "abc: it crashed"}


def test_what_the_base_does_not_differ_in_is_proved_all_the_same() -> None:
    answered = answer_check([make_case(SAME, NEEDS_MORE)], make_case(SLOWER))
    assert (answered.answer, answered.reason["code"]) == ("worse", "control moved")
    assert answer_check([make_case(SLOWER, NEEDS_MORE)], make_case(SAME, NEEDS_LESS)).answer == "worse"


def test_what_the_base_differs_in_itself_proves_nothing() -> None:
    answered = answer_check([make_case(SAME, NEEDS_MORE)], make_case(SAME, NEEDS_LESS))
    assert (answered.answer, answered.reason["code"]) == ("not known", "control moved")
    assert answered.reason["ratio"] == pytest.approx(math.exp(NEEDS_LESS.middle))


@pytest.mark.parametrize(
    ("case", "control", "proved"),
    [
        (make_case(OPEN, NEEDS_MORE, ended=False), make_case(None, ended=False), "peak_memory"),
        (make_case(OPEN, NEEDS_PERHAPS_MORE, ended=False), make_case(SAME), ""),
        (make_case(SAME, NEEDS_PERHAPS_MORE), make_case(None, ended=False), "peak_memory"),
        (make_case(SLOWER), make_case(None, ended=False), ""),
        (make_case(SLOWER), make_case(SAME), "step_time"),
        (make_case(SLOWER), make_case(FASTER), ""),
        (make_case(OPEN, NEEDS_MORE, ended=False), make_case(SAME, NEEDS_LESS), ""),
        (make_case(FASTER, ended=False), make_case(SAME), ""),
        (make_case(SAME, CALLS_MORE, ended=False), make_case(None, ended=False), "function_calls"),
        (make_case(PERHAPS_FASTER, CALLS_MORE, ended=False), make_case(SAME), ""),
        (make_case(None, CALLS_MORE, ended=False), make_case(SAME), ""),
        (make_case(SAME, CALLS_MORE, ended=False), make_case(SAME, CALLS_MORE), ""),
    ],
)
def test_what_is_worse_whatever_comes_is_proved_early(
    case: CaseEvaluation, control: CaseEvaluation, proved: str
) -> None:
    answered = prove_worse([case], control)
    assert (answered.reason["metric"] if answered else "") == proved
