import math
import random

import pytest
from paceline.run_warnings import warmup
from paceline.run_warnings.stability import WARMUP_EXCESS

VALUES = 300


def make_noisy_steps(draw: random.Random, *, burst: bool) -> list[float]:
    """Return the step times of a busy machine: 10 % noise, slow single steps, and a stretch at half speed."""
    values = [
        0.001 * math.exp(draw.gauss(0, 0.1)) * (8 if draw.random() < 0.01 else 1) for _ in range(VALUES)
    ]
    if burst:
        start = draw.randrange(VALUES)
        length = draw.randrange(VALUES // 20, VALUES // 4)
        values[start : start + length] = [2 * value for value in values[start : start + length]]
    return values


def is_warning_given(repetitions: list[list[float]]) -> bool:
    """Judge as the harness does: every repetition must have begun slower, or every one faster."""
    found = [warmup.warmup_excess(values) or 0.0 for values in repetitions]
    return min(found) > WARMUP_EXCESS or max(found) < -WARMUP_EXCESS


def test_a_busy_machine_is_rarely_taken_for_a_warmup() -> None:
    draw = random.Random(1)  # noqa: S311  # a fixed seed is the point
    runs = [[make_noisy_steps(draw, burst=True) for _ in range(3)] for _ in range(300)]
    assert sum(map(is_warning_given, runs)) / 300 <= 0.02


@pytest.mark.parametrize("decay", [0.05, 0.1, 0.2])
def test_a_warmup_is_seen_through_the_noise(decay: float) -> None:
    draw = random.Random(2)  # noqa: S311
    ramp = [1 + 1.5 * math.exp(-step / VALUES / decay) for step in range(VALUES)]
    runs = [
        [
            [value * factor for value, factor in zip(make_noisy_steps(draw, burst=False), ramp, strict=True)]
            for _ in range(3)
        ]
        for _ in range(100)
    ]
    assert sum(map(is_warning_given, runs)) >= 95


def test_what_the_noise_explains_is_nothing() -> None:
    restless = [0.001 * (1.5 if step // 30 % 2 else 1.0) for step in range(VALUES)]
    assert warmup.warmup_excess(restless) == 0.0


def test_a_trend_is_no_warmup() -> None:
    growing = [0.001 * (1 + step / VALUES) for step in range(VALUES)]
    assert warmup.warmup_excess(growing) == pytest.approx(0.0, abs=0.01)


def test_few_values_say_nothing() -> None:
    assert warmup.warmup_excess([0.001] * 19) is None
