"""Whether a head is worse by a floor: three answers, and what nobody wants to pay a faster step with."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.experiments.bounds import (
    BoundedDifference,
    MeasuredMetric,
    bound_metric,
    bound_others,
    waits_for_quality,
)

STEP_TIME = MeasuredMetric("step_time", "s", "lower", "time")
RETURN = MeasuredMetric("quality.return", "1", "higher", "quality")


def pairs_of(ratio: float, count: int = 12, noise: float = 0.005, seed: int = 1) -> list[tuple[float, float]]:
    draw = np.random.default_rng(seed)
    return [(float(draw.normal(1, noise)), float(ratio * draw.normal(1, noise))) for _ in range(count)]


def bound_pairs(ratio: float, metric: MeasuredMetric = STEP_TIME, count: int = 12) -> BoundedDifference:
    bounded = bound_metric(metric, pairs_of(ratio, count), 0.03, 0.001)
    assert bounded
    return bounded


@pytest.mark.parametrize(
    ("metric", "ratio", "verdict"),
    [
        (STEP_TIME, 1.3, "worse"),
        (STEP_TIME, 1.0, "not worse"),
        (STEP_TIME, 0.8, "not worse"),
        (STEP_TIME, 1.012, "not worse"),
        (STEP_TIME, 1.026, ""),
        (RETURN, 0.7, "worse"),
        (RETURN, 1.3, "not worse"),
    ],
)
def test_the_three_answers(metric: MeasuredMetric, ratio: float, verdict: str) -> None:
    assert bound_pairs(ratio, metric).verdict == verdict


def test_seeds_that_learn_nothing_are_not_left_out() -> None:
    draw, verdicts = np.random.default_rng(0), []
    for _ in range(50):
        base, head = draw.normal(100, 5, (2, 16))
        head[draw.random(16) < 0.2] *= 0.3
        bounded = bound_metric(RETURN, list(zip(base, head, strict=True)), 0.1, 0.002)
        verdicts.append(bounded and bounded.verdict)
    assert "not worse" not in verdicts


def test_few_pairs_tell_nothing() -> None:
    bounded = bound_pairs(1.3, count=3)
    assert (bounded.verdict, bounded.low, bounded.smallest_visible) == ("", None, None)


def test_what_is_better_is_said_to_be() -> None:
    assert [bound_pairs(ratio).is_better for ratio in (0.8, 1.0, 1.3)] == [True, False, False]


def test_values_without_a_ratio_are_told_by_differences() -> None:
    bounded = bound_metric(RETURN, [(-1.0, -9.0), (0.5, -9.5), (1.0, -8.0), (0.0, -9.1)] * 3, 0.1, 0.001)
    assert bounded
    assert (bounded.logarithmic, bounded.verdict) == (False, "worse")
    assert bounded.middle == pytest.approx(9, abs=0.2)


def test_what_is_nothing_on_both_sides_is_not_worse() -> None:
    bounded = bound_metric(RETURN, [(0.0, 0.0)] * 6, 0.1, 0.001)
    assert bounded
    assert bounded.verdict == "not worse"


def measure_other(base: float, head: float, kind: str = "quality") -> dict[str, dict[str, object]]:
    better = "higher" if kind == "quality" else "lower"
    return {f"{kind}.x": {"unit": "1", "better": better, "kind": kind, "base": base, "head": head}}


def test_other_metrics_have_the_floor_of_their_kind() -> None:
    memory = bound_others(
        [measure_other(1e9 + pair % 2, 1.01e9 + pair % 2, "memory") for pair in range(8)], 0.0, 0.01
    )
    learned = bound_others(
        [measure_other(1.0 + pair % 2, 0.96 * (1.0 + pair % 2)) for pair in range(8)], 0.0, 0.01
    )
    assert [bounded.verdict for bounded in (*memory, *learned)] == ["not worse", "not worse"]
    assert [round(bounded.floor, 3) for bounded in (*memory, *learned)] == [0.02, 0.095]


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [(300.0, 400.0, "not worse"), (0.0, 4096.0, "not worse"), (300.0, 3e6, "worse"), (0.0, 3e6, "worse")],
)
def test_memory_below_its_least_difference_is_not_worse(base: float, head: float, verdict: str) -> None:
    growth = MeasuredMetric("memory_growth", "B/1000 steps", "lower", "memory")
    measured = [(base * noise, head * noise) for noise, _ in pairs_of(1.0, count=16, noise=0.05)]
    bounded = bound_metric(growth, measured, 0.03, 0.002)
    assert bounded
    assert bounded.verdict == verdict


def test_only_what_all_pairs_have_is_told() -> None:
    assert bound_others([measure_other(1.0, 1.0), {}], 0.0, 0.01) == []


def test_quality_may_still_tell_until_eight_pairs() -> None:
    open_quality = bound_others([measure_other(1.0 + pair, 2.5 - pair) for pair in range(4)], 0.0, 0.001)
    assert waits_for_quality(open_quality, 4)
    assert not waits_for_quality(open_quality, 8)
    assert not waits_for_quality([bound_pairs(1.03)], 4)


def test_identical_sides_are_hardly_ever_called_worse() -> None:
    """With a floor of nothing, so that the interval alone keeps its promise, looked at after each pair.

    Its promise is one in twenty here: of a hundred times five.
    """
    false = 0
    for seed in range(100):
        measured = pairs_of(1.0, count=20, noise=0.01, seed=seed)
        looks = [bound_metric(STEP_TIME, measured[:count], 0.0, 0.05) for count in range(4, 21)]
        false += any(look is not None and look.verdict == "worse" for look in looks)
    assert false <= 5
