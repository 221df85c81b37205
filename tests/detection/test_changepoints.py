"""What `detect` learns from a history, and that the site's judgement takes its answers."""

from __future__ import annotations

import numpy as np
import pytest

from bench.detection.null_models import NULL_MODELS, simulate_null
from dashboard.detection import detect, judge_series
from dashboard.detection.changepoints import detect_again
from dashboard.detection.history_fit import SETTLED, learning_length, scale_history
from dashboard.detection.judgement import DETECT_FROM, drop_irrelevant
from dashboard.detection.readings import prepare_readings
from tests.detection.builders import noise_factors, plain_series, step_levels

LENGTHS = (DETECT_FROM, DETECT_FROM + 7, 64, 95, 97, 150)


def found_indices(values, known=()):
    return [change.index for change in judge_series(plain_series(values), known)]


@pytest.mark.parametrize("model", NULL_MODELS)
def test_a_plain_series_has_the_changes_that_detect_finds(model):
    for seed, n in enumerate(LENGTHS * 4):
        values = simulate_null(model, seed, n)
        values[5 + 3 * seed :] *= 1.08
        relevant = drop_irrelevant(detect(values), prepare_readings(plain_series(values)))
        assert found_indices(values) == relevant


def test_a_change_that_is_known_is_kept_by_less_than_finds_it():
    values = step_levels(40, 40, 1.025) * noise_factors(80, 0.02, seed=3)
    assert detect(values) == []
    assert detect_again(values, [40]) == [40]
    assert detect_again(values, [20]) == []


@pytest.mark.parametrize("model", NULL_MODELS)
def test_a_change_that_never_was_hides_none(model):
    for seed in range(10):
        values = simulate_null(model, seed, 120)
        values[60:] *= 1.05
        found = detect(values)
        for known in ([30], [59], [62], [90]):
            assert len(detect_again(values, known)) >= len(found)


def test_a_known_change_keeps_its_place():
    moved = [seed for seed in range(30) if detect(noisy_step(seed)) not in ([], [40])]
    assert len(moved) > 5
    assert [detect_again(noisy_step(seed), [40]) for seed in moved].count([40]) > 0.7 * len(moved)


def noisy_step(seed):
    """A step of less than two noises."""
    return step_levels(40, 40, 1.05) * noise_factors(80, 0.03, seed)


def test_what_is_found_again_takes_nothing_from_what_is_new():
    values = np.repeat([1.0, 1.2, 1.5], 40) * noise_factors(120, 0.02)
    assert detect_again(values, [40]) == detect_again(values, [7, 40]) == [40, 80]


def test_a_known_change_whose_level_before_is_gone_is_nothing():
    values = noise_factors(60, 0.01)
    assert found_indices(values, known=[0]) == []
    assert detect_again(values, known=[0]) == []


@pytest.mark.parametrize("at", [5, 8, 12, 18])
def test_an_early_change_is_kept_when_the_history_is_long_enough_for_detect(at):
    values = step_levels(at, 50 - at, 1.25) * noise_factors(50, 0.02, seed=at)
    known = found_indices(values[: DETECT_FROM - 1])
    assert known == [at]
    for n in range(DETECT_FROM, 51):
        known = found_indices(values[:n], known)
        assert known == [at]


@pytest.mark.parametrize("model", NULL_MODELS)
def test_judging_again_finds_the_same_in_any_noise(model):
    rng = np.random.default_rng(3)
    for seed in range(12):
        values = simulate_null(model, seed, 90) * step_levels(60, 30, 1.05)
        found = found_indices(values, rng.integers(1, 90, 3).tolist())
        assert found_indices(values, found) == found


def test_the_noise_is_learnt_ever_more_seldom():
    learnt = [learning_length(n, 0.3) for n in range(20_000)]
    assert learnt[:SETTLED] == list(range(SETTLED))
    assert learnt == sorted(learnt)
    assert all(0.97 * n <= at <= n for n, at in enumerate(learnt))
    assert len(set(learnt[10_000:])) <= 36


def test_series_of_one_length_learn_at_different_commits():
    due = [n for phase in np.arange(0, 1, 0.01) for n in range(1000, 1070) if learning_length(n, phase) == n]
    assert max(due.count(n) for n in due) <= 8


def test_a_first_value_of_another_sign_ends_the_logarithms():
    values = np.concatenate([noise_factors(180, 0.01), [-1.0, 1.0]])
    assert scale_history(values[:180], reach=10).values[0] == pytest.approx(np.log(values[0]))
    history = scale_history(values, reach=10)
    assert history.learnt >= 181
    assert history.values[180] == pytest.approx(-1, abs=0.05)
    assert detect(values) == []


def test_a_known_step_is_no_noise():
    levels = np.repeat([1.0, 1.5, 1.0, 1.5], 6)
    values = levels * noise_factors(24, 0.01)
    assert scale_history(values, 10).noise > 0.2
    assert scale_history(values, 10, known=[6, 12, 18]).noise < 0.03


def test_one_step_passes_for_no_wander():
    values = step_levels(10, 14, 1.5) * noise_factors(24, 0.01)
    assert scale_history(values, 10).noise < 0.03


@pytest.mark.parametrize("count", [30, 31, 34, 40, 60])
@pytest.mark.parametrize("size", [1.3, 0.7])
def test_a_clear_step_is_found_after_ten_points_and_before_six(count: int, size: float) -> None:
    """Also where the level before is shorter than a baseline: an imported history has nothing known."""
    for at in range(10, count - 5):
        values = [value * (size if i >= at else 1.0) for i, value in enumerate(noise_factors(count, 0.01))]
        found = [change.index for change in judge_series(plain_series(values))]
        assert found == [at], f"{count} points, a step at {at}"
