"""The samples of points as one array."""

from itertools import combinations

import numpy as np
import pytest

from dashboard.detection.repetitions import Repetitions, chances_of_best, usual_fewest

SAMPLES = [(3.0, 1.0), (), (2.0,), (5.0, 4.0), (9.0, 7.0, 8.0)]


def test_a_point_without_samples_keeps_its_value():
    repetitions = Repetitions.of(SAMPLES)
    values = np.array([2.0, 6.0, 2.0, 4.5, 8.0])
    best = [1.0, 6.0, 2.0, 4.0, (2 * 7.0 + 8.0) / 3]  # of the last the best of two, as of most others
    assert repetitions.best("lower", values).tolist() == pytest.approx(best)
    best = [3.0, 6.0, 2.0, 5.0, (2 * 9.0 + 8.0) / 3]
    assert repetitions.best("higher", values).tolist() == pytest.approx(best)
    assert Repetitions.of([(), ()]).best("lower", values[:2]).tolist() == [2.0, 6.0]


def test_points_of_as_many_samples_are_rows():
    rows = {tuple(points.tolist()): values.tolist() for points, values in Repetitions.of(SAMPLES).alike()}
    assert rows == {(0, 3): [[3.0, 1.0], [5.0, 4.0]], (4,): [[9.0, 7.0, 8.0]]}


def test_chosen_points_have_their_own_samples():
    chosen = Repetitions.of(SAMPLES).of_points(np.array([False, True, True, False, True]))
    assert chosen.counts.tolist() == [0, 1, 3]
    assert chosen.values.tolist() == [2.0, 9.0, 7.0, 8.0]


def test_the_best_of_a_few_is_averaged_over_all_choices_of_so_many():
    samples = [3.0, 4.0, 8.0, 9.0, 20.0]
    choices = [min(chosen) for chosen in combinations(samples, 3)]
    assert np.array(samples) @ chances_of_best(5, 3) == pytest.approx(np.mean(choices))
    assert chances_of_best(4, 4).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_one_point_of_few_samples_sets_no_usual_number():
    assert usual_fewest(np.array([5, 5, 1, 5])) == 5
    assert usual_fewest(np.array([3])) == 3
    assert usual_fewest(np.repeat([5, 3], [30, 10])) == 3
