"""The samples of points as one array."""

import numpy as np

from dashboard.detection.repetitions import Repetitions

SAMPLES = [(3.0, 1.0), (), (2.0,), (5.0, 4.0), (9.0, 7.0, 8.0)]


def test_a_point_without_samples_keeps_its_value():
    repetitions = Repetitions.of(SAMPLES)
    values = np.array([2.0, 6.0, 2.0, 4.5, 8.0])
    assert repetitions.best("lower", values).tolist() == [1.0, 6.0, 2.0, 4.0, 7.0]
    assert repetitions.best("higher", values).tolist() == [3.0, 6.0, 2.0, 5.0, 9.0]
    assert Repetitions.of([(), ()]).best("lower", values[:2]).tolist() == [2.0, 6.0]


def test_points_of_as_many_samples_are_rows():
    rows = {tuple(points.tolist()): values.tolist() for points, values in Repetitions.of(SAMPLES).alike()}
    assert rows == {(0, 3): [[3.0, 1.0], [5.0, 4.0]], (4,): [[9.0, 7.0, 8.0]]}


def test_chosen_points_have_their_own_samples():
    chosen = Repetitions.of(SAMPLES).of_points(np.array([False, True, True, False, True]))
    assert chosen.counts.tolist() == [0, 1, 3]
    assert chosen.values.tolist() == [2.0, 9.0, 7.0, 8.0]
