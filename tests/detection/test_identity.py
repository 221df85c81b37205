"""The same change, as points arrive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.detection.stability import Stability, growing_reports
from dashboard.detection import judge_series
from dashboard.detection.identity import same_change
from tests.detection.builders import noise_factors, plain_series, step_levels

(CHANGE,) = judge_series(plain_series(step_levels(10, 10, 1.3)))


def moved_change(by):
    return replace(CHANGE, index=10 + by, earliest=10 + by, latest=10 + by)


def test_a_step_between_constants_has_one_place():
    assert (CHANGE.earliest, CHANGE.index, CHANGE.latest) == (10, 10, 10)


def test_a_point_between_two_levels_may_belong_to_either():
    values = np.concatenate([noise_factors(10, 0.01), [1.15], 1.3 * noise_factors(9, 0.01, seed=1)])
    (change,) = judge_series(plain_series(values))
    assert (change.earliest, change.latest) == (10, 11)


def test_it_may_move_by_two_points():
    assert [same_change(CHANGE, moved_change(by)) for by in (0, 1, 2, 3)] == [True, True, True, False]


def test_a_doubtful_place_may_move_within_its_doubt():
    assert same_change(replace(CHANGE, latest=15), moved_change(6))


def test_the_other_direction_is_another_change():
    assert not same_change(CHANGE, replace(CHANGE, direction="improvement"))


def test_clear_steps_stay_where_they_were_found():
    total = Stability()
    for seed in range(10):
        values = step_levels(30, 30, 1.15) * noise_factors(60, 0.02, seed)
        total.add_history(judge_series(plain_series(values[:n])) for n in range(31, 61))
    assert total.reported == 10
    assert (total.moved, total.vanished) <= (1, 0)


def test_what_is_known_is_not_given_up_for_a_little():
    told, untold = Stability(), Stability()
    for seed in range(12):
        values = (step_levels(30, 30, 1.05) * noise_factors(60, 0.025, seed)).tolist()
        told.add_history(growing_reports(values, with_known=True))
        untold.add_history(growing_reports(values, with_known=False))
    assert told.moved + told.vanished < 0.7 * (untold.moved + untold.vanished)


def test_judging_again_finds_the_same():
    for seed in range(40):
        history = plain_series(step_levels(20, 20, 1.06) * noise_factors(40, 0.03, seed))
        found = judge_series(history, known=[19, 22, 33])
        assert judge_series(history, known=[change.index for change in found]) == found
