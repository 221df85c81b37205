from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from dashboard.detection import pairs
from dashboard.detection.pairs import FEWEST_PAIRS, ShareEstimate, place_verdict, step_verdict

STEP = [0.9, 1.1, 1.0, 0.95, 1.05]
NOTHING = [0.05, -0.04, 0.02, -0.03, 0.01]
HALF = [0.5, 0.52, 0.48, 0.51, 0.49]


def estimate_from_shares(shares: Sequence[float], noise: float = 0.0) -> ShareEstimate:
    """The estimate from pairs of these shares whose noise is that of both repetitions alike."""
    off = (np.asarray(shares) - np.median(shares)) / 2 if len(shares) else np.array([])
    return pairs.estimate_share((-off).tolist(), (np.asarray(shares) - off).tolist(), noise)


def sequential_confirmation(values: np.ndarray, least: float = 0.1) -> str:
    """The verdict of a confirmation that looks after each pair, as the site does."""
    for count in range(3, len(values) + 1):
        found = step_verdict(estimate_from_shares(values[:count]), least)
        if found != "open":
            return found
    return "open"


def sequential_bisection(values: np.ndarray) -> str:
    """The verdict on a commit in the middle, asked after each pair of the budget."""
    for count in range(FEWEST_PAIRS, len(values) + 1):
        found = place_verdict(estimate_from_shares(values[:count]), spent=count / len(values))
        if found != "open":
            return found
    return "open"


def test_a_step_is_confirmed_and_nothing_is_refuted() -> None:
    assert step_verdict(estimate_from_shares(STEP), 0.1) == "confirmed"
    assert step_verdict(estimate_from_shares(NOTHING), 0.1) == "refuted"


def test_a_step_too_small_to_matter_is_refuted() -> None:
    assert step_verdict(estimate_from_shares([0.1, 0.11, 0.09, 0.1, 0.1]), least=0.3) == "refuted"


def test_few_pairs_tell_nothing() -> None:
    estimate = estimate_from_shares([1.0])
    assert (estimate.low, estimate.high, step_verdict(estimate, 0.1)) == (None, None, "open")
    assert step_verdict(estimate_from_shares([1.0, 1.0 + 1e-9]), 0.1) == "open"


@pytest.mark.parametrize(("values", "wanted"), [(STEP, "whole"), (NOTHING, "none"), (HALF, "part")])
def test_a_commit_in_the_middle_has_all_none_or_a_part(values: list[float], wanted: str) -> None:
    assert place_verdict(estimate_from_shares(values)) == wanted


@pytest.mark.parametrize(
    ("estimate", "wanted"),
    [
        (ShareEstimate(24, 0.9, 0.3, 1.5), "whole"),
        (ShareEstimate(24, 0.6, 0.1, 1.1), "whole"),
        (ShareEstimate(24, 0.8, 0.62, 0.98), "whole"),
        (ShareEstimate(24, 0.1, -0.5, 0.7), "none"),
        (ShareEstimate(24, 0.4, -0.1, 0.9), "none"),
        (ShareEstimate(24, 0.5, 0.05, 0.95), "part"),
        (ShareEstimate(24, 0.5, -0.1, 1.1), "open"),
    ],
)
def test_at_the_end_the_half_that_is_sure_is_enough(estimate: ShareEstimate, wanted: str) -> None:
    assert place_verdict(estimate, spent=1.0) == wanted


@pytest.mark.parametrize(
    ("estimate", "wanted"),
    [
        (ShareEstimate(12, 0.9, 0.3, 1.5), "whole"),
        (ShareEstimate(12, 0.1, -0.5, 0.7), "none"),
        (ShareEstimate(12, 0.7, 0.1, 1.3), "open"),
        (ShareEstimate(12, 0.3, -0.3, 0.9), "open"),
    ],
)
def test_halfway_what_looks_like_all_or_nothing_is_told(estimate: ShareEstimate, wanted: str) -> None:
    assert place_verdict(estimate, spent=0.4) == "open"
    assert place_verdict(estimate, spent=0.5) == wanted


@pytest.mark.parametrize(("true", "wanted"), [(1.0, "whole"), (0.0, "none")])
def test_pairs_as_noisy_as_half_the_step_place_it(true: float, wanted: str) -> None:
    rng = np.random.default_rng(7)
    shares = true + rng.standard_t(4, (200, 24)) * 0.35
    found = [sequential_bisection(row) for row in shares]
    assert found.count(wanted) >= 195
    assert set(found) <= {wanted, "part", "open"}


def test_the_interval_narrows_with_pairs_and_widens_with_noise() -> None:
    widths = [pairs.interval_half_width(n, 1.0) for n in range(FEWEST_PAIRS, 40)]
    assert widths == sorted(widths, reverse=True)
    assert pairs.interval_half_width(10, 2.0) == pytest.approx(2 * pairs.interval_half_width(10, 1.0))
    assert math.isinf(pairs.interval_half_width(FEWEST_PAIRS - 1, 1.0))


def test_identical_pairs_are_believed_only_as_far_as_the_least_noise() -> None:
    estimate = estimate_from_shares([1.0] * 5, noise=0.5)
    assert estimate.low is not None
    assert estimate.low < 1 < (estimate.high or 0)


def test_a_repetition_that_was_slowed_counts_up_to_a_bound() -> None:
    good, bad = [0.05, -0.05, 0.0, -0.02, 0.02] * 2, STEP * 2
    calm = pairs.estimate_share(good, bad)
    slowed = pairs.estimate_share([*good[:-1], 5.0], [*bad[:3], 6.0, *bad[4:]])
    assert slowed.share == pytest.approx(calm.share, abs=0.05)
    assert slowed.low is not None
    assert slowed.low > 0.5
    few = pairs.estimate_share(good[:6], [*bad[:5], 6.0])
    assert few.share == pytest.approx(np.mean([*bad[:5], 6.0]) - np.mean(good[:6]))


def test_what_slows_both_of_a_pair_tells_nothing() -> None:
    good, bad = [0.05, -0.05, 0.0, -0.02, 0.02] * 2, NOTHING * 2
    slow = [0.0, 3.0] * 5
    assert pairs.estimate_share(good, bad).share == pytest.approx(
        pairs.estimate_share([*np.add(good, slow)], [*np.add(bad, slow)]).share
    )


def test_two_modes_are_not_taken_for_one_with_slowed_repetitions() -> None:
    modes = [0.0, 0.01, 1.2, 0.0, 1.21, 0.0, 1.2, 1.19, 0.01, 1.2]
    estimate = pairs.estimate_share([0.0, 0.01] * 5, modes)
    assert estimate.share == pytest.approx(0.6, abs=0.01)
    assert estimate.low is not None
    assert estimate.low < 0 < 1 < (estimate.high or 0)


def confirms_step(values: np.ndarray, least: float) -> bool:
    """Whether a test of these shares (2, n) that looks after each pair ends confirmed."""
    looks = (pairs.estimate_share(*values[:, :n].tolist(), 0.1) for n in range(4, values.shape[1] + 1))
    return (
        next((found for look in looks if (found := step_verdict(look, least)) != "open"), "") == "confirmed"
    )


def test_repetitions_of_two_modes_confirm_no_step() -> None:
    drawn = np.random.default_rng(1)
    modes = drawn.normal(0, 0.1, (300, 2, 24)) + 2 * (drawn.random((300, 2, 24)) < 0.5)
    assert sum(confirms_step(values, 0.3) for values in modes) <= 3


def test_a_tenth_that_is_slowed_hides_no_step() -> None:
    drawn = np.random.default_rng(2)
    slowed = drawn.normal(0, 0.2, (200, 2, 24))
    slowed += drawn.uniform(1, 3, slowed.shape) * (drawn.random(slowed.shape) < 0.1)
    slowed[:, 1] += 1
    assert sum(confirms_step(values, 0.3) for values in slowed) >= 190


@pytest.mark.parametrize("bad", [[], [math.nan], [math.inf, 1.0]])
def test_values_must_be_finite(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        pairs.estimate_share([1.0] * len(bad), bad)


@pytest.mark.parametrize("degrees", [2.5, 4, 1000])
def test_looking_after_each_pair_confirms_nothing_that_is_not_there(degrees: float) -> None:
    rng = np.random.default_rng(5)
    noise = rng.standard_t(degrees, (400, 24)) * 0.3
    wrong = sum(sequential_confirmation(row) == "confirmed" for row in noise)
    # The interval's error is one in a hundred on both sides together; 4 + 3 standard errors of 400 draws.
    assert wrong <= 10


def test_a_true_step_is_rarely_refuted() -> None:
    rng = np.random.default_rng(6)
    steps = 1 + rng.standard_t(4, (400, 24)) * 0.3
    found = [sequential_confirmation(row) for row in steps]
    assert found.count("confirmed") > 390
    assert found.count("refuted") <= 4


@pytest.mark.parametrize(
    ("share", "deviation", "least", "most"),
    [
        # So noisy that neither answer will be left out by then; or nearly there.
        (0.4, 4.0, 0.0, 0.01),
        (1.0, 0.5, 0.99, 1.0),
        (0.0, 0.5, 0.9, 1.0),
    ],
)
def test_the_chance_to_decide_is_foreseen(share: float, deviation: float, least: float, most: float) -> None:
    half = pairs.interval_half_width(16, deviation)
    estimate = pairs.ShareEstimate(16, share, share - half, share + half)
    assert least <= pairs.chance_to_decide(estimate, 60, 0.1, pairs.ERROR) <= most


@pytest.mark.parametrize("true", [0.0, 1.0])
def test_what_is_hopeless_would_not_have_been_decided(true: float) -> None:
    """Of experiments with more and more noise: those that were given up after sixteen pairs."""
    drawn, given_up, decided = np.random.default_rng(4), 0, 0
    for number in range(300):
        values = drawn.normal(true, 0.5 + number / 100, 60)
        if pairs.chance_to_decide(estimate_shares(values[:16]), 60, 0.1, pairs.ERROR) < 0.05:
            given_up += 1
            decided += pairs.step_verdict(estimate_shares(values), 0.1) != "open"
    assert given_up > 50
    assert decided <= 0.1 * given_up


@pytest.mark.parametrize("error", [1e-5, 1e-7, 1e-9])
def test_a_step_is_not_given_up_where_the_error_is_small(error: float) -> None:
    drawn, given_up = np.random.default_rng(3), 0
    for _ in range(100):
        values = drawn.normal(1.0, 0.7, 60)
        first, last = (
            pairs.estimate_share([0.0] * n, values[:n], error=error, slowed=False) for n in (16, 60)
        )
        hopeless = pairs.chance_to_decide(first, 60, 0.3, error) < 0.05
        given_up += hopeless and pairs.step_verdict(last, 0.3) == "confirmed"
    assert given_up <= 1


def estimate_shares(values: Sequence[float]) -> ShareEstimate:
    return pairs.estimate_share([0.0] * len(values), values, slowed=False)


def test_before_anything_is_told_everything_may_be() -> None:
    assert pairs.chance_to_decide(pairs.ShareEstimate(3, 0.5, None, None), 60, 0.1, pairs.ERROR) == 1.0
