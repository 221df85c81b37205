"""The same change, as points arrive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.promises import reports
from dashboard.detection import judge, paired, same_change
from dashboard.detection.identity import Steadiness
from tests.detection.builders import noise, series, step

(CHANGE,) = judge(series(step(10, 10, 1.3)))


def moved(by):
    return replace(CHANGE, index=10 + by, earliest=10 + by, latest=10 + by)


def test_a_step_between_constants_has_one_place():
    assert (CHANGE.earliest, CHANGE.index, CHANGE.latest) == (10, 10, 10)


def test_a_point_between_two_levels_may_belong_to_either():
    values = np.concatenate([noise(10, 0.01), [1.15], 1.3 * noise(9, 0.01, seed=1)])
    (change,) = judge(series(values))
    assert (change.earliest, change.latest) == (10, 11)


def test_it_may_move_by_two_points():
    assert [same_change(CHANGE, moved(by)) for by in (0, 1, 2, 3)] == [True, True, True, False]


def test_a_doubtful_place_may_move_within_its_doubt():
    assert same_change(replace(CHANGE, latest=15), moved(6))


def test_the_other_direction_is_another_change():
    assert not same_change(CHANGE, replace(CHANGE, direction="improvement"))


def test_pairs_are_the_nearest_and_never_cross():
    near, far = moved(1), moved(20)
    assert paired([CHANGE, far], [near]) == [(CHANGE, near), (far, None)]
    assert paired([CHANGE], [moved(-9), near]) == [(None, moved(-9)), (CHANGE, near)]
    assert paired([], []) == []


def test_steadiness_counts_what_became_of_reports():
    total = Steadiness()
    total.follow(iter([[], [CHANGE], [moved(1)], [], [CHANGE]]))
    assert (total.reported, total.moved, total.vanished) == (2, 1, 1)


def test_clear_steps_stay_where_they_were_found():
    total = Steadiness()
    for seed in range(10):
        values = step(30, 30, 1.15) * noise(60, 0.02, seed)
        total.follow(judge(series(values[:n])) for n in range(31, 61))
    assert total.reported == 10
    assert (total.moved, total.vanished) <= (1, 0)


def test_what_is_known_is_not_given_up_for_a_little():
    told, untold = Steadiness(), Steadiness()
    for seed in range(12):
        values = (step(30, 30, 1.05) * noise(60, 0.025, seed)).tolist()
        told.follow(reports(values, told=True))
        untold.follow(reports(values, told=False))
    assert told.moved + told.vanished < 0.7 * (untold.moved + untold.vanished)


def test_judging_again_finds_the_same():
    for seed in range(40):
        one = series(step(20, 20, 1.06) * noise(40, 0.03, seed))
        found = judge(one, known=[19, 22, 33])
        assert judge(one, known=[change.index for change in found]) == found
