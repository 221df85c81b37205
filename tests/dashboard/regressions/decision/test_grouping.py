"""Which changes are one cause where pairs have placed it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.regressions.decision.continuation import continue_regressions
from dashboard.regressions.decision.decide import decide
from dashboard.regressions.decision.facts import Change, ExperimentVerdict, Regression, Series, Snapshot
from dashboard.regressions.decision.grouping import group_changes
from dashboard.regressions.decision.primary_change import bounding_commits, choose_primary
from dashboard.regressions.decision.proofs import Verdict
from dashboard.regressions.decision.ranges import Range
from tests.dashboard.regressions.decision.builders import (
    make_change,
    make_commit,
    make_regression,
    make_series,
    make_verdict,
)

TIME, RATE = make_series("step_time"), make_series("throughput")
CALLS, SCORE = make_series("function_calls"), replace(make_series("quality.score"), guarded=True)
PROVED = make_regression(make_change(TIME, 5, 6, 1.22), state="confirmed")


def placed_at_six(ratio_before: float = 1.004) -> list[ExperimentVerdict]:
    """Pairs have confirmed a step between 4 and 6, and measured this ratio between 4 and 5."""
    step = make_change(TIME, 4, 6, 1.22)
    found = Verdict.NONE if ratio_before < 1.1 else Verdict.PART
    return [
        make_verdict(step, Verdict.CONFIRMED, 4, 6, ratio=1.22),
        make_verdict(step, found, 4, 5, ratio=ratio_before, purpose="bisection"),
    ]


def snapshot_of(*changes: Change, verdicts: list[ExperimentVerdict]) -> Snapshot:
    regressions: tuple[Regression, ...] = (PROVED,)
    return Snapshot("main", changes, regressions, tuple(verdicts))


@pytest.mark.parametrize("second", [TIME, RATE])
def test_a_step_that_is_seen_twice_is_one_where_pairs_have_placed_it(second: object) -> None:
    """By its phase at 6, and at 5 by a noisy point, where pairs saw nothing."""
    at_six = make_change(TIME, 5, 6, 1.2, regression_id=1)
    at_five = make_change(second, 4, 5, 1.22 if second == TIME else 0.82)  # type: ignore[arg-type]
    snapshot = snapshot_of(at_six, at_five, verdicts=placed_at_six())
    (group,) = group_changes(snapshot)
    assert {change.pk for change in group.changes} == {at_six.pk, at_five.pk}
    assert all(outcome.key == PROVED.pk for outcome in decide(snapshot).outcomes)


def test_a_step_beside_it_that_pairs_have_not_denied_is_another_one() -> None:
    at_six = make_change(TIME, 5, 6, 1.2, regression_id=1)
    at_four = make_change(TIME, 3, 4, 1.22)
    groups = group_changes(snapshot_of(at_six, at_four, verdicts=placed_at_six()))
    assert [[change.pk for change in group.changes] for group in groups] == [[at_six.pk], [at_four.pk]]


@pytest.mark.parametrize("cost", [CALLS, TIME])
def test_a_cost_at_one_commit_does_not_place_a_loss_of_learning(cost: Series) -> None:
    """Of eleven commits one is slow, and one of them no longer learns: pairs have proved that over all."""
    lost = make_change(SCORE, 1, 12, 0.2, regression_id=1)
    proved = make_verdict(lost, Verdict.CONFIRMED, 1, 12, difference=-7.0)
    owner = make_regression(lost, state="confirmed")
    slower = make_change(cost, 3, 4, 1.4)
    for seen in (lost, replace(lost, last_good=make_commit(5))):
        for verdicts in ((), (proved,)):
            snapshot = Snapshot("main", (slower, seen), (owner,), verdicts)
            continued = continue_regressions(group_changes(snapshot), snapshot)
            members = {row.regression: row.group.members for row in continued}
            assert members == {owner: [seen], None: [slower]}


def test_costs_in_the_range_of_a_loss_of_learning_do_not_narrow_it() -> None:
    """Also where they end at the same commit, and are told together until pairs have parted them."""
    lost, slower = make_change(SCORE, 1, 12, 0.2), make_change(CALLS, 11, 12, 1.4)
    primary = choose_primary([slower, lost], [], None)
    assert primary is not None
    assert primary.change == lost
    assert bounding_commits(primary) == (lost.last_good, lost.first_bad)


def test_a_cost_and_a_loss_of_learning_at_one_commit_are_one_cause() -> None:
    lost, slower = make_change(SCORE, 5, 6, 0.2), make_change(TIME, 4, 7, 1.4)
    (group,) = group_changes(Snapshot("main", (slower, lost), (), ()))
    assert [change.series for change in group.members] == [SCORE, TIME]


@pytest.mark.parametrize("other", [CALLS, make_series("peak_memory")])
def test_between_the_levels_of_one_series_others_keep_their_own_commits(other: Series) -> None:
    """A range in which pairs of the place have shown nothing is wide: it says nothing of other series."""
    at_place, beside = make_change(TIME, 20, 22, 1.3, regression_id=1), make_change(other, 27, 28, 1.5)
    verdicts = [
        make_verdict(at_place, Verdict.REFUTED, 20, 22, ratio=1.01),
        make_verdict(at_place, Verdict.REFUTED, 19, 24, ratio=1.04),
        make_verdict(at_place, Verdict.CONFIRMED, 12, 30, ratio=1.3),
    ]
    row = make_regression(at_place, state="confirmed")
    snapshot = Snapshot("main", (at_place, beside), (row,), tuple(verdicts))
    groups = group_changes(snapshot)
    assert [[change.series for change in group.members] for group in groups] == [[TIME], [other]]


@pytest.mark.parametrize("proved", [2, 1], ids=["each", "the first alone"])
def test_two_cases_that_seemed_to_step_at_the_refuted_place_are_one(proved: int) -> None:
    """Neither is proved again and again: by pairs of its own, or since both seemed to be one step there."""
    cases = (TIME, make_series("step_time", 2))
    changes = [make_change(series, 20, 22, 1.3, regression_id=1) for series in cases]
    verdicts = [
        make_verdict(change, verdict, *ends)
        for change in changes[:proved]
        for verdict, ends in (
            (Verdict.REFUTED, (20, 22)),
            (Verdict.REFUTED, (19, 24)),
            (Verdict.CONFIRMED, (12, 30)),
        )
    ]
    row = make_regression(changes[0], state="confirmed")
    (group,) = group_changes(Snapshot("main", tuple(changes), (row,), tuple(verdicts)))
    assert group.members == changes


def test_what_its_levels_show_is_confirmed_where_bisection_leads_back_to_its_place() -> None:
    """Pairs of the place had shown less than half of it; all of it is there all the same."""
    step = make_change(TIME, 20, 22, 1.3, regression_id=1)
    verdicts = [
        make_verdict(step, Verdict.REFUTED, 20, 22),
        make_verdict(step, Verdict.REFUTED, 19, 24),
        make_verdict(step, Verdict.CONFIRMED, 12, 30),
        make_verdict(step, Verdict.NONE, 12, 20, purpose="bisection"),
        make_verdict(step, Verdict.WHOLE, 12, 22, purpose="bisection"),
    ]
    primary = choose_primary([step], verdicts, make_regression(step, state="confirmed"))
    assert primary is not None
    assert primary.state == "confirmed"
    assert [commit.position for commit in bounding_commits(primary)] == [20, 22]


def test_a_step_that_pairs_have_placed_beside_leaves_what_lies_where_it_was_seen() -> None:
    """Both seemed to step at 22; pairs of memory found it at 18, those of the time have none at 22."""
    memory = make_change(make_series("peak_memory"), 20, 22, 1.3, regression_id=1)
    time = make_change(TIME, 20, 22, 1.4, regression_id=1)
    verdicts = [
        make_verdict(memory, Verdict.REFUTED, 20, 22),
        make_verdict(time, Verdict.REFUTED, 20, 22),
        make_verdict(memory, Verdict.REFUTED, 19, 24),
        make_verdict(memory, Verdict.CONFIRMED, 12, 30, ratio=1.3),
        make_verdict(memory, Verdict.NONE, 12, 17, purpose="bisection"),
        make_verdict(memory, Verdict.WHOLE, 12, 18, purpose="bisection"),
    ]
    row = make_regression(memory, state="confirmed")
    snapshot = Snapshot("main", (time, memory), (row,), tuple(verdicts))
    groups = group_changes(snapshot)
    assert [(group.anchors, group.members) for group in groups] == [([Range(17, 18)], [memory]), ([], [time])]


def test_what_another_series_has_placed_is_not_wide_for_those_of_its_commit() -> None:
    """The time is found at 18; memory, which is bisected on the way to it, takes no series from there."""
    time, rate = make_change(TIME, 17, 19, 1.4, regression_id=1), make_change(RATE, 17, 19, 0.7)
    memory = make_change(make_series("peak_memory"), 24, 26, 1.3, regression_id=1)
    verdicts = [
        make_verdict(time, Verdict.CONFIRMED, 17, 19, ratio=1.4),
        make_verdict(time, Verdict.WHOLE, 17, 18, ratio=1.4, purpose="bisection"),
        make_verdict(memory, Verdict.REFUTED, 24, 26),
        make_verdict(memory, Verdict.REFUTED, 22, 28),
        make_verdict(memory, Verdict.CONFIRMED, 12, 34, ratio=1.3),
        make_verdict(memory, Verdict.WHOLE, 12, 20, ratio=1.3, purpose="bisection"),
    ]
    row = make_regression(time, state="confirmed")
    (group,) = group_changes(Snapshot("main", (time, rate, memory), (row,), tuple(verdicts)))
    assert group.anchors == [Range(17, 18)]
    assert {change.series for change in group.members} == {TIME, RATE, memory.series}
