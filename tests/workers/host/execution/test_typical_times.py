"""What phases take in typical steps of two sides that took turns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workers.host.execution.typical_times import typical_times, typical_times_by_phase

STEPS = 300


def draw_times(factor: float, seed: int, disturbed: float = 0.3) -> list[float]:
    """A phase of a second; other work makes a part of its steps up to four times as long."""
    drawn = np.random.default_rng(seed)
    longer = np.where(drawn.random(STEPS) < disturbed, drawn.uniform(1, 4, STEPS), 1.0)
    return list((factor * longer * drawn.normal(1, 0.01, STEPS)).tolist())


def test_what_disturbs_some_steps_hardly_counts() -> None:
    times = typical_times(draw_times(1.0, 1, 0.3), draw_times(1.02, 2, 0.2))
    assert times is not None
    assert times == pytest.approx((1.0, 1.02), abs=0.015)


def test_steps_of_another_kind_count_by_how_many_they_are() -> None:
    """Each twentieth step takes ten times as long, and of the head a tenth more than that."""
    base = [10.0 if index % 20 == 0 else 1.0 for index in range(STEPS)]
    head = [11.0 if took > 1 else took for took in base]
    assert typical_times(base, head) == pytest.approx((1.45, 1.5))


def test_what_only_one_side_does_in_some_steps_counts() -> None:
    rare = [1.0 if index % 20 == 0 else 0.0 for index in range(STEPS)]
    assert typical_times([0.0] * STEPS, rare) == pytest.approx((0.0, 0.05))
    assert typical_times(rare, rare) == pytest.approx((0.05, 0.05))


@pytest.mark.parametrize("base", [[0.0] * STEPS, [5.0] * 3 + [0.0] * (STEPS - 3)])
def test_what_few_steps_have_is_not_typical(base: list[float]) -> None:
    assert typical_times(base, base) is None


def make_document(**phases: list[float]) -> Any:
    times = {"every": 1, "phases": phases} if phases else None
    return SimpleNamespace(repetitions=(SimpleNamespace(phase_times=times),))


def test_phases_without_typical_steps_keep_their_means() -> None:
    means = {"learn": (9.0, 9.0), "save": (0.5, 0.6), "small": (0.1, 0.1), "new": (0.0, 0.3)}
    few = [50.0] * 3 + [0.0] * (STEPS - 3)
    base = make_document(learn=[1.0] * STEPS, save=few, small=[0.1] * STEPS)
    head = make_document(learn=[2.0] * STEPS, save=few, new=[0.3] * STEPS)
    typical = {**means, "learn": (1.0, 2.0), "new": (0.0, 0.3)}
    assert typical_times_by_phase(base, head, means) == typical


def test_unlike_windows_have_no_typical_steps() -> None:
    base = make_document(learn=[1.0] * STEPS)
    for head in (make_document(), make_document(learn=[1.0] * (STEPS - 1))):
        assert typical_times_by_phase(base, head, {"learn": (1.0, 1.0)}) == {}
