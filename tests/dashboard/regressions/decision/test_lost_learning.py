"""Losses of quality: what is told first, how large it is, and what stands beside it."""

from __future__ import annotations

from dataclasses import replace

from dashboard.regressions.decision.facts import Evidence, Learning
from dashboard.regressions.decision.lost_learning import learning_of
from dashboard.regressions.decision.primary_change import choose_primary, measured_size
from dashboard.regressions.decision.repair import find_repair
from dashboard.regressions.decision.requested_facts import GatheredFacts
from dashboard.regressions.decision.series_kinds import BETTER, may_open_regression
from tests.dashboard.regressions.decision.builders import (
    make_change,
    make_regression,
    make_series,
    make_verdict,
)

GOOD, BAD = 5, 6
SCORE = replace(make_series("quality.score"), headline=False, guarded=True)
LOST = replace(
    make_change(SCORE, GOOD, BAD, 0.2, before=9.3, after=2.1, guard_state="violated", guard_bound=3.0),
    **{"ratio": None, "low": None, "high": None},
)
TIME = make_change(make_series("step_time"), GOOD, BAD, 1.4)
PROOF = make_verdict(
    LOST,
    "confirmed",
    GOOD,
    BAD,
    difference=-7.0,
    difference_low=-7.5,
    difference_high=-6.5,
    learning=Learning(4, 0, (0.6, 0.55, 0.65)),
)


def test_only_a_guarded_quality_opens_a_regression() -> None:
    assert may_open_regression(LOST)
    assert not may_open_regression(replace(LOST, series=replace(SCORE, guarded=False)))
    assert not may_open_regression(replace(LOST, direction=BETTER))


def test_what_is_learned_is_told_before_any_time() -> None:
    primary = choose_primary([TIME, LOST], [], None)
    assert primary is not None
    assert (primary.change, primary.state) == (LOST, "suspected")


def test_a_refuted_loss_leaves_the_time() -> None:
    refuted = make_verdict(LOST, "refuted", GOOD, BAD, difference=0.1)
    primary = choose_primary([TIME, LOST], [refuted], make_regression(LOST))
    assert primary is not None
    assert (primary.change, primary.state) == (TIME, "suspected")


def test_a_loss_that_joins_a_proved_time_is_to_be_proved() -> None:
    proved = make_verdict(TIME, "confirmed", GOOD, BAD, ratio=1.4)
    primary = choose_primary([TIME, LOST], [proved], make_regression(TIME))
    assert primary is not None
    assert (primary.change.series.metric.name, primary.larger_unproved) == ("step_time", LOST)


def test_its_size_is_the_difference_that_pairs_measured() -> None:
    size = measured_size(LOST, [PROOF], LOST.first_bad)
    assert (size.before, round(size.after, 6), size.ratio) == (9.3, 2.3, None)


def test_what_stands_beside_its_size() -> None:
    primary = choose_primary([LOST], [PROOF], make_regression(LOST))
    assert primary is not None
    told = learning_of(primary, [PROOF], LOST.first_bad, None)
    assert told is not None
    assert told.as_json() == {
        "code": "learning",
        "state": "violated",
        "bound": 3.0,
        "seeds": 4,
        "unreported": 0,
        "step_time": (0.6, 0.55, 0.65),
    }
    # A change that only pairs have seen doesn't know the guard any more.
    seen = replace(primary, change=replace(LOST, guard_state="", guard_bound=None))
    known = make_regression(LOST, learning=Evidence.of("learning", state="diverged", bound=None))
    kept = learning_of(seen, [PROOF], LOST.first_bad, known)
    assert kept is not None
    assert kept.as_json()["state"] == "diverged"
    time = replace(primary, change=TIME)
    assert learning_of(time, [PROOF], LOST.first_bad, None) is None


def test_only_the_level_says_that_it_has_recovered() -> None:
    back = make_change(SCORE, BAD, BAD + 2, 4.0, before=2.1, after=9.0, direction=BETTER)
    part = replace(back, after=6.0)
    assert find_repair(LOST, [back], GatheredFacts()) == back.first_bad.pk
    assert find_repair(LOST, [part], GatheredFacts()) is None


def test_a_script_that_takes_no_seed_is_told() -> None:
    primary = choose_primary([LOST], [PROOF], make_regression(LOST))
    assert primary is not None
    same = replace(PROOF, learning=Learning(1, 0, None, seed_ignored=True))
    told = learning_of(primary, [same], LOST.first_bad, None)
    assert told is not None
    assert (told.as_json()["seeds"], told.as_json()["seed_ignored"]) == (1, True)
