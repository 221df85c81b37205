"""A look that continues the last one gives the answer of a whole look."""

from __future__ import annotations

import numpy as np
import pytest

from bench.detection.null_models import simulate_null
from dashboard.detection import detect, growing_history
from dashboard.detection.history_fit import (
    SETTLED,
    find_starts,
    finite_values,
    learning_length,
    learning_phase,
    scale_history,
)
from dashboard.detection.rules import ALARM
from dashboard.detection.short_histories import first_starts, with_first_starts

LEVELS = np.repeat([1.0, 1.06, 0.97], 50)


def whole_look(values):
    found = find_starts(scale_history(values, ALARM.reach), ALARM)
    return with_first_starts(first_starts(finite_values(values)), found)


@pytest.fixture
def whole_looks(monkeypatch):
    """The lengths of the histories that were looked at anew."""
    lengths, look_at = [], growing_history.look_at
    monkeypatch.setattr(growing_history, "RECENT_LOOKS", growing_history.RecentLooks())
    monkeypatch.setattr(
        growing_history,
        "look_at",
        lambda values, *rest: lengths.append(len(values)) or look_at(values, *rest),
    )
    return lengths


@pytest.mark.parametrize("model", ["white", "wander, half the noise", "rounded"])
def test_each_point_has_the_answer_of_a_whole_look(model, whole_looks):
    values = simulate_null(model, 3, len(LEVELS)) * LEVELS
    lengths = range(SETTLED, len(values) + 1)
    found = [detect(values[:n].tolist()) for n in lengths]
    assert found == [whole_look(values[:n]) for n in lengths]
    due = [learning_length(n, learning_phase(values)) for n in lengths]
    assert whole_looks == [n for n, last, now in zip(lengths, [0, *due], due, strict=False) if now != last]


def test_series_that_grow_in_turns_by_several_points(whole_looks):
    first, second = (simulate_null("white", seed, len(LEVELS)) * LEVELS for seed in (1, 2))
    lengths = range(130, len(LEVELS), 2)
    for n in lengths:
        assert [detect(first[:n]), detect(second[:n])] == [whole_look(first[:n]), whole_look(second[:n])]
    assert len(whole_looks) <= 1.5 * len(lengths)


def test_a_history_that_began_with_a_step(whole_looks):
    values = simulate_null("white", 4, 130) * np.repeat([1.0, 1.5], [7, 123])
    found = [detect(values[:n]) for n in range(9, 131)]
    assert found == [[]] * 2 + [[7]] * 120
    assert len(whole_looks) < 90


@pytest.mark.parametrize("other", [[-1.0], [0.0], [1e9] * 5])
def test_what_ends_the_logarithms_or_lies_far_off(other):
    values = [*simulate_null("white", 5, 160), *other, *simulate_null("white", 6, 20)]
    for n in range(157, len(values) + 1):
        assert detect(values[:n]) == whole_look(values[:n])


def test_a_history_that_is_another_one_by_now(whole_looks):
    values = simulate_null("white", 7, 150)
    detect(values[:140])
    # What the caller does to its array, or another value in the middle, is no continuation.
    values[100:] *= 1.2
    assert detect(values) == whole_look(values) == [100]
    assert whole_looks == [140, 150]


def test_the_same_history_is_looked_at_anew(whole_looks):
    values = simulate_null("white", 8, 150)
    assert detect(values) == detect(values)
    assert whole_looks == [150, 150]


def test_few_looks_are_kept(whole_looks):
    for seed in range(growing_history.MOST_LOOKS + 3):
        detect(simulate_null("white", seed, 30))
    assert len(growing_history.RECENT_LOOKS.looks) == growing_history.MOST_LOOKS
