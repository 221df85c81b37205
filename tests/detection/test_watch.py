"""A watch says after each point what a look at the whole history says."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest

from dashboard.detection import detect, suspect
from dashboard.detection.changepoints import suspected_starts
from dashboard.detection.null_models import NULL_MODELS, simulate_null
from dashboard.detection.rules import ALARM, SUSPICION
from dashboard.detection.watch import SETTLED, Watch, learning_length
from tests.detection.builders import noise_factors, step_levels
from tests.detection.test_properties import extreme_values


@pytest.mark.parametrize("model", NULL_MODELS)
def test_point_by_point_is_the_same_as_all_at_once(model):
    values = simulate_null(model, 1, 240) * step_levels(100, 140, 1.05)
    alarms, suspicions = Watch(values[:100], ALARM), Watch(values[:100], SUSPICION)
    for n in range(101, 241):
        assert alarms.add(values[n - 1]) == alarms.starts()
        suspicions.extend([values[n - 1]])
        if n % 7 == 0:
            assert alarms.starts() == detect(values[:n])
            assert suspected_starts(suspicions) == suspect(values[:n])


def test_nasty_values_point_by_point_are_the_same_too():
    rng = np.random.default_rng(3)
    for _ in range(40):
        values = extreme_values(rng, int(rng.integers(1, 220)))
        first = max(0, len(values) - int(rng.integers(1, 60)))
        watch = Watch(values[:first], ALARM)
        for value in values[first:]:
            watch.extend([value])
        assert watch.starts() == detect(values)


def test_a_first_value_of_another_sign_ends_the_logarithms():
    values = np.concatenate([noise_factors(180, 0.01), [-1.0], noise_factors(9, 0.01, seed=1)])
    watch = Watch(values[:180], ALARM)
    for n in range(181, 191):
        assert watch.add(values[n - 1]) == detect(values[:n])
    assert not watch.scale.logarithmic


def test_the_noise_is_learnt_ever_more_seldom():
    learnt = [learning_length(n, 0.3) for n in range(20_000)]
    assert learnt[:SETTLED] == list(range(SETTLED))
    assert learnt == sorted(learnt)
    assert all(0.97 * n <= at <= n for n, at in enumerate(learnt))
    assert len(set(learnt[10_000:])) <= 36


def test_series_of_one_length_learn_at_different_commits():
    due = [n for phase in np.arange(0, 1, 0.01) for n in range(1000, 1070) if learning_length(n, phase) == n]
    assert max(due.count(n) for n in due) <= 8


def test_a_watch_survives_pickling():
    values = step_levels(150, 50, 1.1) * noise_factors(200, 0.01)
    watch = pickle.loads(pickle.dumps(Watch(values[:170], ALARM)))  # noqa: S301 - our own bytes
    watch.extend(values[170:])
    assert watch.starts() == detect(values) == [150]


def test_a_value_that_is_not_finite_leaves_it_as_it_was():
    watch = Watch(noise_factors(50, 0.01), ALARM)
    with pytest.raises(ValueError, match="finite"):
        watch.add(float("nan"))
    assert len(watch.values) == len(watch.scaled) == 50


def test_a_point_after_ten_thousand_costs_next_to_nothing():
    values = np.repeat([1.0, 1.05, 1.1, 1.15], 2500) * noise_factors(10_000, 0.01)
    watch = Watch(values, ALARM)
    begun = time.process_time()
    for value in 1.15 * noise_factors(200, 0.01, seed=1):
        watch.add(value)
    assert (time.process_time() - begun) / 200 < 0.002
