"""Pairs of parts: a small step of one is proved while the whole is too noisy, and moved work isn't lost."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.detection.paired_parts import PartsEstimate, decide_step, estimate_parts, weighted_median
from dashboard.detection.pairs import ShareEstimate, estimate_share
from dashboard.detection.segmentation import Floats

LEVELS = np.array([0.30, 0.25, 0.15, 0.12, 0.10, 0.08])
SUSPECTED = np.arange(6) == 4
STEP, PAIRS, OWN, LEAST = 0.01, 20, 0.004, 0.5
# What repetitions differ by in all their parts alike.
CALM, BUSY = 0.008, 0.03


def draw_pairs(
    seed: int, moved: dict[int, float], shared: float = BUSY, levels: Floats = LEVELS
) -> tuple[Floats, Floats]:
    """What parts took of both commits, (parts, PAIRS) each: slow together, and a little by themselves."""
    drawn = np.random.default_rng(seed)
    after = levels + np.array([moved.get(row, 0.0) for row in range(len(levels))])
    size = (2, len(levels), PAIRS)
    noise = np.exp(drawn.normal(0, shared, (2, 1, PAIRS)) + drawn.normal(0, OWN, size))
    return levels[:, np.newaxis] * noise[0], after[:, np.newaxis] * noise[1]


def verdict_on_pairs(good: Floats, bad: Floats, suspected: np.ndarray = SUSPECTED) -> str:
    whole = estimate_share(*[(side.sum(axis=0) / STEP).tolist() for side in (good, bad)], error=0.005)
    return decide_step(whole, None, estimate_parts(good, bad, suspected, STEP, 0.003, 0.005), LEAST)


@pytest.mark.parametrize(
    ("shared", "moved", "verdict"),
    [
        (CALM, {4: STEP}, "confirmed"),
        (BUSY, {}, "refuted"),
        (BUSY, {3: STEP}, "refuted"),
        (BUSY, {4: STEP, 1: -STEP}, "moved"),
        (BUSY, {4: STEP, 2: -0.005, 3: -0.005}, "moved"),
    ],
)
def test_what_a_part_did_is_told_where_the_whole_is_too_noisy(
    shared: float, moved: dict[int, float], verdict: str
) -> None:
    found = [verdict_on_pairs(*draw_pairs(seed, moved, shared)) for seed in range(40)]
    assert found.count(verdict) >= 36
    wrong = {"confirmed"} if verdict != "confirmed" else {"refuted", "moved"}
    assert not wrong & set(found)


def test_what_the_most_took_back_is_still_open_or_moved() -> None:
    for shrunk in ({1: -0.7 * STEP}, {0: -0.005, 1: -0.005}):
        found = {verdict_on_pairs(*draw_pairs(seed, {4: STEP, **shrunk}, CALM)) for seed in range(20)}
        assert found <= {"open", "moved", "refuted"}


def test_where_most_parts_shrank_alike_the_whole_has_to_show_a_loss() -> None:
    """What they have in common passes for a slow machine: of work that came from them phases don't tell."""
    moved = {4: STEP, 0: -0.004, 1: -0.003, 2: -0.003}
    assert [verdict_on_pairs(*draw_pairs(seed, moved, CALM)) for seed in range(40)].count("confirmed") <= 4


@pytest.mark.parametrize("moved", [{0: 0.02}, {0: -0.02}, {1: -0.005, 2: -0.003, 3: -0.002, 5: -0.002}])
def test_what_other_parts_do_proves_nothing_of_the_suspected_one(moved: dict[int, float]) -> None:
    found = [verdict_on_pairs(*draw_pairs(seed, moved)) for seed in range(20)]
    assert "confirmed" not in found


def test_with_few_parts_the_noise_of_all_stays_in_them() -> None:
    levels = np.array([0.9, 0.1])
    suspected = np.array([False, True])
    found = {verdict_on_pairs(*draw_pairs(seed, {1: STEP}, BUSY, levels), suspected) for seed in range(20)}
    assert found == {"open"}


def test_the_wholes_own_verdict_comes_first() -> None:
    grown = ShareEstimate(9, 1.0, 0.8, 1.2)
    found = PartsEstimate(grown, (grown,), 0.0)
    assert decide_step(ShareEstimate(9, 0.1, -0.1, 0.3), None, found, LEAST) == "refuted"
    assert decide_step(ShareEstimate(9, 0.9, -0.1, 1.9), None, found, LEAST) == "confirmed"
    assert decide_step(ShareEstimate(9, 0.3, -1.0, 1.6), None, found, LEAST) == "open"
    assert decide_step(ShareEstimate(9, 0.9, -0.1, 1.9), None, None, LEAST) == "open"


def test_a_middle_by_weight() -> None:
    values = np.array([[1.0], [2.0], [9.0]])
    assert weighted_median(values, np.array([1.0, 1.0, 3.0])).tolist() == [9.0]
    assert weighted_median(values, np.array([1.0, 1.0, 1.0])).tolist() == [2.0]


def test_single_steps_say_that_nothing_is_lost() -> None:
    """Where most others shrank alike, the phases alone can't tell, and the mean of the pairs hardly."""
    grown, sums = ShareEstimate(9, 1.0, 0.8, 1.2), (ShareEstimate(9, 0.9, 0.6, 1.2),)
    found = PartsEstimate(parts=grown, sums=sums)
    whole = ShareEstimate(9, 0.8, -2.0, 3.6)
    assert decide_step(whole, None, found, LEAST) == "confirmed"
    assert decide_step(whole, ShareEstimate(9, 0.1, -0.6, 0.8), found, LEAST) == "open"
    # They say so by themselves, but for what only the mean has.
    nothing = ShareEstimate(9, 0.0, -0.3, 0.3)
    assert decide_step(whole, nothing, None, LEAST) == "open"
    # A mean that hardly tells leaves room for the step, however small its middle is.
    assert decide_step(ShareEstimate(9, 0.2, -2.6, 3.0), nothing, None, LEAST) == "open"
    assert decide_step(ShareEstimate(9, 0.2, -0.3, 0.7), nothing, None, LEAST) == "refuted"
