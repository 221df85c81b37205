"""Single steps of pairs that take turns: what is found beside a machine that disturbs most windows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dashboard.detection.paired_steps import (
    FEWEST_PAIRS,
    FEWEST_STEPS,
    ComparedSteps,
    agreed_estimate,
    comparable_pairs,
    compare_steps,
    estimate_by_steps,
    estimate_of_step,
    narrower_estimate,
    steps_verdict,
    without_order,
)
from dashboard.detection.pairs import ShareEstimate, estimate_share, interval_half_width, step_verdict
from dashboard.detection.segmentation import Floats

STEP, ERROR, LEAST_NOISE = 0.01, 0.01, 0.003
# Each twentieth step takes three times as long: so much more in these alone is one per cent of all.
ONE_PER_CENT_OF_SOME = 0.0733


def draw_steps(
    pairs: int,
    moved: float = 0.0,
    *,
    some: float = 0.0,
    disturbed: float = 0.2,
    order: float = 0.0,
    seed: int = 1,
) -> tuple[Floats, Floats, list[bool]]:
    """Times (200, pairs) of both sides, and which began; of each pair a part of the steps is disturbed."""
    drawn = np.random.default_rng(seed)
    base = np.where(np.arange(200) % 20 == 0, 3.0, 1.0)[:, np.newaxis]
    head = base * np.where(base > 1, 1 + some, 1.0)
    share = drawn.uniform(0, disturbed, pairs)
    first = np.arange(pairs) % 2 == 0
    sides = []
    for work in (base, head):
        slower = np.where(drawn.random((200, pairs)) < share, 1 + drawn.uniform(0, 3, (200, pairs)), 1.0)
        sides.append(work * slower * np.exp(drawn.normal(0, 0.02, (200, pairs))))
    pair = drawn.normal(moved, 0.003, pairs) + order * np.where(first, 1, -1)
    return sides[0], sides[1] * np.exp(pair), first.tolist()


def estimate_drawn(pairs: int, moved: float = 0.0, **drawn: float) -> ShareEstimate:
    base, head, first = draw_steps(pairs, moved, **drawn)  # type: ignore[arg-type]
    return estimate_times(base, head, first, math.log1p(STEP))


def estimate_times(base: Floats, head: Floats, first: list[bool], step: float) -> ShareEstimate:
    compared = compare_steps(base, head)
    assert compared is not None
    estimate = estimate_by_steps(compared, first, step, LEAST_NOISE, ERROR)
    assert estimate is not None
    return estimate


@pytest.mark.parametrize(
    ("moved", "some", "verdict"),
    [
        (STEP, 0.0, "confirmed"),
        (0.0, 0.0, "refuted"),
        (0.0, ONE_PER_CENT_OF_SOME, "confirmed"),
        # All steps took over what some had: nothing is lost.
        (STEP, -ONE_PER_CENT_OF_SOME, "refuted"),
    ],
)
def test_one_per_cent_is_told_beside_other_work(moved: float, some: float, verdict: str) -> None:
    estimate = estimate_drawn(60, moved, some=some)
    assert step_verdict(estimate, 0.5) == verdict
    base, head, _ = draw_steps(60, moved, some=some)
    means = np.log(head.mean(axis=0) / base.mean(axis=0))
    typical = np.median(np.log(head / base), axis=0)
    assert typical.std() < means.std() / 4


def test_the_interval_leaves_the_truth_out_seldom() -> None:
    """After any of the pairs, beside quiet and busy machines, of each of sixty experiments."""
    missed = 0
    for seed in range(60):
        base, head, first = draw_steps(40, 0.0, disturbed=(0.1, 0.6)[seed % 2], order=0.004, seed=seed)
        looks = [
            estimate_times(base[:, :count], head[:, :count], first[:count], STEP)
            for count in range(FEWEST_PAIRS, 41)
        ]
        missed += any(
            look.low > 0 or look.high < 0 for look in looks if look.low is not None and look.high is not None
        )
    assert missed <= 2


@pytest.mark.parametrize("part", [0.1, 1.0, 3.0])
def test_kinds_widen_the_interval_by_their_variance(part: float) -> None:
    typical = np.random.default_rng(3).normal(0, 0.01, 40)
    first = [True, False] * 20
    error = part * comparable_pairs(typical, first)[1] / math.sqrt(len(typical))
    alone, both = (
        estimate_by_steps(ComparedSteps(typical, 0.0, kinds), first, STEP, LEAST_NOISE, ERROR)
        for kinds in (0.0, error)
    )
    assert alone is not None
    assert both is not None
    assert both.share == alone.share
    assert both.width == pytest.approx(alone.width * math.hypot(1, part))


def test_who_begins_makes_no_difference() -> None:
    with_order, without = (estimate_drawn(40, STEP, order=order) for order in (0.01, 0.0))
    assert with_order.share == pytest.approx(without.share, abs=0.05)
    assert with_order.width == pytest.approx(without.width, rel=0.05)


def test_an_order_of_one_pair_is_not_known() -> None:
    values = np.array([1.0, 2.0, 3.0])
    kept, spent = without_order(values, np.array([True, True, False]))
    assert (kept.tolist(), spent) == ([1.0, 2.0, 3.0], 0)


def test_few_steps_or_pairs_tell_nothing() -> None:
    base, head, first = draw_steps(FEWEST_PAIRS - 1)
    assert compare_steps(base[: FEWEST_STEPS - 1], head[: FEWEST_STEPS - 1]) is None
    compared = compare_steps(base, head)
    assert compared is not None
    assert estimate_by_steps(compared, first, STEP, LEAST_NOISE) is None


def test_a_rate_is_read_as_the_time_it_is() -> None:
    base, head, first = draw_steps(40, STEP)
    assert step_verdict(estimate_times(head, base, first, -math.log1p(STEP)), 0.5) == "confirmed"


@pytest.mark.parametrize(("mean", "verdict"), [(0.3, "confirmed"), (-0.1, "open")])
def test_the_mean_of_the_pairs_has_to_agree(mean: float, verdict: str) -> None:
    """What comes at any time, in few steps and in other ones each time, only the mean has."""
    whole, steps = ShareEstimate(9, mean, mean - 3, mean + 3), ShareEstimate(9, 1.0, 0.2, 1.8)
    assert steps_verdict(whole, steps, 0.5) == verdict
    assert steps_verdict(ShareEstimate(9, 0.9, -2, 4), NO_STEP, 0.5) == "open"
    assert steps_verdict(ShareEstimate(9, 0.2, 0.0, 0.4), NO_STEP, 0.5) == "refuted"


# Steps that see nothing, and are sure of it.
NO_STEP = ShareEstimate(9, 0.0, -0.3, 0.3)


def means_of(pairs: int, share: float, error_of_mean: float) -> ShareEstimate:
    """The mean of so many pairs, which is known with this standard error."""
    reach = error_of_mean * math.sqrt(pairs) * interval_half_width(pairs, 1.0, ERROR)
    return ShareEstimate(pairs, share, share - reach, share + reach)


@pytest.mark.parametrize(
    ("pairs", "share", "error_of_mean", "verdict"),
    [
        (100, 0.0, 0.37, "open"),
        (100, 0.0, 0.34, "refuted"),
        # As likely with the step as without.
        (100, 0.5, 0.05, "open"),
        # Few pairs hardly know the noise.
        (9, 0.0, 0.24, "open"),
        (9, 0.0, 0.2, "refuted"),
    ],
)
def test_a_mean_that_leaves_room_for_the_step_refutes_nothing(
    pairs: int, share: float, error_of_mean: float, verdict: str
) -> None:
    assert steps_verdict(means_of(pairs, share, error_of_mean), NO_STEP, 0.5, ERROR) == verdict


def test_a_mean_without_an_interval_refutes_nothing() -> None:
    assert steps_verdict(ShareEstimate(3, 0.0, None, None), NO_STEP, 0.5) == "open"


def draw_means(experiments: int, pairs: int, noise: float, seed: int, every: int = 0) -> Floats:
    """Means of base and head (experiments, 2, pairs), in suspected steps; a pair deviates by `noise`.

    `every`: one in so many of the head's 200 steps is held up, by one suspected step of all; 0 of none.
    """
    drawn = np.random.default_rng(seed)
    means = drawn.normal(0, noise / math.sqrt(2), (experiments, 2, pairs))
    if every:
        means[:, 1] += drawn.binomial(200, 1 / every, (experiments, pairs)) * every / 200
    return means


def count_until_refuted(base: Floats, head: Floats) -> float:
    """After how many of these pairs (n,) steps that see nothing refute the step; infinite if never."""
    looks = range(FEWEST_PAIRS, len(base) + 1, 2)
    for count in looks:
        whole = estimate_share(base[:count], head[:count], LEAST_NOISE / STEP, ERROR / 3)
        if steps_verdict(whole, NO_STEP, 0.5, ERROR / 3) == "refuted":
            return count
    return math.inf


@pytest.mark.parametrize(("every", "noise"), [(20, 3.0), (50, 2.0), (200, 1.5)])
def test_a_step_by_pauses_is_hardly_ever_refuted(every: int, noise: float) -> None:
    """Single steps never see it. One in a hundred experiments is what a test may err."""
    experiments = draw_means(200, 60, noise, seed=every, every=every)
    refuted = sum(math.isfinite(count_until_refuted(*means)) for means in experiments)
    assert refuted <= 2


@pytest.mark.parametrize(("noise", "most"), [(1.0, 20), (2.0, 50)])
def test_nothing_is_refuted_after_few_pairs(noise: float, most: int) -> None:
    counts = [count_until_refuted(*means) for means in draw_means(40, 100, noise, seed=1)]
    assert np.median(counts) <= most


def test_what_tells_more_is_told() -> None:
    wide, narrow = ShareEstimate(9, 0.4, -1, 2), ShareEstimate(9, 1.0, 0.8, 1.2)
    unknown = ShareEstimate(4, 1.0, None, None)
    assert narrower_estimate(wide, narrow) is narrow
    assert narrower_estimate(wide, unknown) is wide
    assert narrower_estimate(unknown, None) is unknown


def test_the_mean_tells_what_it_decides_alone() -> None:
    """Single steps are narrower, but what the mean has they miss."""
    confirmed, undecided = ShareEstimate(9, 1.0, 0.2, 1.8), ShareEstimate(9, 1.0, -0.2, 2.2)
    agreeing = ShareEstimate(9, 0.9, 0.7, 1.1)
    assert estimate_of_step(confirmed, NO_STEP, 0.5) is confirmed
    assert estimate_of_step(confirmed, agreeing, 0.5) is agreeing
    assert estimate_of_step(undecided, NO_STEP, 0.5) is NO_STEP
    assert estimate_of_step(confirmed, None, 0.5) is confirmed


# Half of the interval of nine pairs whose mean has a standard error of 1.
OF_MEAN = 3 * interval_half_width(9, 1.0, ERROR)


@pytest.mark.parametrize(
    ("mean", "reach", "ends"),
    [
        # The middle of the mean and three standard errors lie within.
        (1.5, OF_MEAN, (-2.0, 5.0)),
        # The mean has more than steps do, or less.
        (3.0, OF_MEAN, (-2.0, 6.0)),
        (-1.0, OF_MEAN, (-4.0, 5.0)),
        # It is another difference.
        (8.5, OF_MEAN, None),
        (-5.5, OF_MEAN, None),
        # Its own interval is the narrower one.
        (1.5, 3.0, None),
    ],
)
def test_the_mean_lies_in_what_steps_tell(
    mean: float, reach: float, ends: tuple[float, float] | None
) -> None:
    whole, steps = ShareEstimate(9, mean, mean - reach, mean + reach), ShareEstimate(9, 1.5, -2.0, 5.0)
    told = agreed_estimate(whole, steps, ERROR, 2.0)
    if ends is None:
        assert told is whole
    else:
        assert (told.share, told.low, told.high) == (1.5, pytest.approx(ends[0]), pytest.approx(ends[1]))
    assert agreed_estimate(whole, steps, ERROR, 0.5) is whole


def test_what_steps_do_not_know_the_mean_tells() -> None:
    whole, unknown = ShareEstimate(9, 1.0, -9.0, 11.0), ShareEstimate(4, 1.0, None, None)
    assert agreed_estimate(whole, None, ERROR, 2.0) is agreed_estimate(whole, unknown, ERROR, 2.0) is whole
    assert agreed_estimate(unknown, whole, ERROR, 2.0) is unknown
