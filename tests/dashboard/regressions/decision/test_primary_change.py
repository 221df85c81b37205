"""By which change a regression is told, with a verdict on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from dashboard.regressions.decision.facts import Change, ExperimentVerdict
from dashboard.regressions.decision.primary_change import (
    bounding_commits,
    choose_primary,
    measured_size,
)
from dashboard.regressions.decision.proofs import (
    Verdict,
    find_proof,
    newest_first,
    verdict_on_size,
    with_steps_between,
)
from dashboard.regressions.decision.series_kinds import BETTER, WORSE
from tests.dashboard.regressions.decision.builders import (
    make_change,
    make_regression,
    make_series,
    make_verdict,
)

GOOD, BAD = 5, 6
MEMORY = make_change(make_series("peak_memory"), GOOD, BAD, 1.1)
TIME = make_change(make_series("step_time"), GOOD, BAD, 1.4)
BESIDE = make_change(make_series("step_time"), BAD, BAD + 1, 1.4)
CALLS = make_change(make_series("function_calls"), GOOD, BAD, 1.5)


@dataclass(frozen=True)
class Told:
    """The primary change's metric, the state, what is to be measured too, and where and how large it is."""

    metric: str
    state: str
    larger_unproved: str | None
    first_bad: int
    ratio: float | None
    after: float


def choose_and_measure(
    members: Sequence[Change], verdicts: Sequence[ExperimentVerdict], opened_by: Change = MEMORY
) -> Told:
    primary = choose_primary(members, verdicts, make_regression(opened_by))
    assert primary is not None
    _, bad = bounding_commits(primary)
    size = measured_size(primary.change, verdicts, bad)
    larger = primary.larger_unproved
    return Told(
        primary.change.series.metric.name,
        primary.state,
        larger.series.metric.name if larger else None,
        bad.position,
        size.ratio,
        size.after,
    )


def primary_and_state(found: Told) -> tuple[str, str, str | None]:
    return found.metric, found.state, found.larger_unproved


def proof_of(change: Change, verdict: str, ratio: float | None = None) -> ExperimentVerdict:
    """Pairs of the change's series, between the regression's commits."""
    return make_verdict(change, verdict, GOOD, BAD, ratio=ratio)


def test_what_no_pairs_have_measured_is_not_told_as_proved() -> None:
    found = choose_and_measure([MEMORY, TIME], [proof_of(MEMORY, "confirmed", 1.1)])
    assert primary_and_state(found) == ("peak_memory", "confirmed", "step_time")


def test_once_confirmed_it_is_primary() -> None:
    found = choose_and_measure(
        [MEMORY, TIME], [proof_of(MEMORY, "confirmed", 1.1), proof_of(TIME, "confirmed", 1.35)]
    )
    assert primary_and_state(found) == ("step_time", "confirmed", None)
    assert found.ratio == 1.35


def test_what_pairs_measured_decides_which_is_primary() -> None:
    found = choose_and_measure(
        [MEMORY, TIME], [proof_of(MEMORY, "confirmed", 1.1), proof_of(TIME, "confirmed", 1.05)]
    )
    assert primary_and_state(found) == ("peak_memory", "confirmed", None)
    assert found.ratio == 1.1


def test_a_series_of_another_pool_is_not_waited_for() -> None:
    other_pool = make_change(make_series("step_time", 2, pool=7), GOOD, BAD, 1.4)
    found = choose_and_measure([MEMORY, other_pool], [proof_of(MEMORY, "confirmed", 1.1)])
    assert primary_and_state(found) == ("peak_memory", "confirmed", None)


@pytest.mark.parametrize("verdict", ["refuted", "undecided"])
def test_what_is_refuted_leaves_the_cause_proved(verdict: str) -> None:
    found = choose_and_measure([MEMORY, TIME], [proof_of(MEMORY, "confirmed", 1.1), proof_of(TIME, verdict)])
    assert primary_and_state(found) == ("peak_memory", "confirmed", None)


def test_a_verdict_beside_the_proved_commits_is_one_too() -> None:
    verdicts = [proof_of(MEMORY, "confirmed", 1.1)]
    assert choose_and_measure([MEMORY, BESIDE], verdicts).larger_unproved == "step_time"
    found = choose_and_measure([MEMORY, BESIDE], [*verdicts, proof_of(BESIDE, "confirmed", 1.3)])
    assert primary_and_state(found) == ("step_time", "confirmed", None)
    assert (found.first_bad, found.ratio) == (BAD, 1.3)


def test_a_refuted_series_refutes_no_other() -> None:
    verdicts = [proof_of(TIME, "refuted")]
    assert primary_and_state(choose_and_measure([MEMORY, TIME], verdicts)) == (
        "peak_memory",
        "suspected",
        None,
    )
    verdicts.append(proof_of(MEMORY, "confirmed", 1.1))
    assert primary_and_state(choose_and_measure([MEMORY, TIME], verdicts)) == (
        "peak_memory",
        "confirmed",
        None,
    )


@pytest.mark.parametrize(("refuted", "state"), [((3, 5), "confirmed"), ((3, 6), "refuted")])
def test_only_pairs_around_the_proved_commit_refute_it_later(refuted: tuple[int, int], state: str) -> None:
    verdicts = [
        make_verdict(TIME, "confirmed", 3, 6),
        make_verdict(TIME, "none", 3, 5, purpose="bisection"),
        make_verdict(TIME, "refuted", *refuted),
    ]
    seen_beside = make_change(TIME.series, 4, 5, 1.4)
    proof = find_proof(newest_first(verdicts), TIME.series, seen_beside.range)
    assert proof is not None
    assert proof.state == state


def test_what_is_refuted_in_all_series_is_refuted() -> None:
    found = choose_and_measure([MEMORY, TIME], [proof_of(TIME, "refuted"), proof_of(MEMORY, "refuted")])
    assert primary_and_state(found) == ("step_time", "refuted", None)


def test_a_counter_stays_proved_where_a_time_is_refuted() -> None:
    assert choose_and_measure([MEMORY, CALLS], []).state == "suspected"
    found = choose_and_measure([MEMORY, CALLS], [proof_of(MEMORY, "refuted")])
    assert primary_and_state(found) == ("function_calls", "confirmed", None)


def test_a_proof_outlives_a_series_that_joins_beside_it() -> None:
    time = replace(BESIDE, ratio=1.2, after=1.2)
    memory = replace(MEMORY, ratio=1.5, after=1.5)
    found = choose_and_measure([CALLS, time, memory], [proof_of(time, "confirmed", 1.2)])
    assert primary_and_state(found) == ("step_time", "confirmed", "peak_memory")


def test_throughput_is_proved_by_the_pairs_of_the_step_time() -> None:
    throughput = make_change(make_series("throughput"), GOOD, BAD, 0.7)
    assert primary_and_state(choose_and_measure([throughput], [proof_of(TIME, "confirmed", 1.4)])) == (
        "throughput",
        "confirmed",
        None,
    )


def test_a_series_whose_change_is_gone_is_still_primary_by_its_pairs() -> None:
    found = choose_and_measure([MEMORY], [proof_of(TIME, "confirmed", 1.38)])
    assert primary_and_state(found) == ("step_time", "confirmed", None)
    assert (found.ratio, found.after) == (1.38, pytest.approx(1.38))


@pytest.mark.parametrize(("ratio", "larger"), [(1.12, None), (1.3, "peak_memory")])
def test_the_same_metric_of_another_case_is_measured_only_if_much_larger(
    ratio: float, larger: str | None
) -> None:
    other = make_change(make_series("peak_memory", 2), GOOD, BAD, ratio)
    assert choose_and_measure([MEMORY, other], [proof_of(MEMORY, "confirmed", 1.1)]).larger_unproved == larger


def test_what_no_commit_is_blamed_for_is_not_measured() -> None:
    around = replace(TIME, environment_only=True)
    found = choose_and_measure([MEMORY, around], [proof_of(MEMORY, "confirmed", 1.1)])
    assert primary_and_state(found) == ("peak_memory", "confirmed", None)


def test_nothing_is_told_without_a_change_or_a_proof() -> None:
    assert MEMORY.direction == WORSE
    assert choose_primary([], [], make_regression(MEMORY)) is None
    assert choose_primary([], [proof_of(MEMORY, "refuted")], make_regression(MEMORY)) is None


def test_pairs_of_another_commit_or_series_say_nothing_of_its_size() -> None:
    own = make_verdict(TIME, Verdict.CONFIRMED, GOOD, BAD, ratio=1.3)
    of_next = make_verdict(TIME, Verdict.CONFIRMED, GOOD, BAD + 1, ratio=1.9)
    of_memory = make_verdict(MEMORY, Verdict.CONFIRMED, GOOD, BAD, ratio=1.2)
    assert verdict_on_size([of_next, of_memory, own], TIME, TIME.first_bad) is own
    assert verdict_on_size([of_next, of_memory], TIME, TIME.first_bad) is None


def test_pairs_that_span_a_second_step_tell_the_size_of_neither() -> None:
    wide = make_verdict(TIME, Verdict.CONFIRMED, GOOD - 3, BAD, ratio=1.05)
    faster = replace(make_change(TIME.series, GOOD - 2, GOOD - 1, 0.75), direction=BETTER)
    (spanning,) = with_steps_between([wide], [TIME, faster])
    assert spanning.steps_between == (faster.first_bad.position,)
    assert verdict_on_size([spanning], TIME, TIME.first_bad) is None
    (alone,) = with_steps_between([wide], [TIME])
    assert verdict_on_size([alone], TIME, TIME.first_bad) is alone


@pytest.mark.parametrize(("verdict", "expected"), [("confirmed", 0.02), ("part", 0.02), ("refuted", None)])
def test_the_level_before_is_that_of_the_pairs_that_sized_it(verdict: str, expected: float | None) -> None:
    said = make_verdict(TIME, verdict, GOOD, BAD, ratio=1.3, base_level=0.02)
    assert measured_size(TIME, [said], TIME.first_bad).paired_before == expected
