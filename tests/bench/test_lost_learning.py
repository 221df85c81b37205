"""A training that learns as ever is hardly ever said to have stopped, and one that stops is told."""

from __future__ import annotations

import numpy as np
import pytest

from bench.detection.lost_learning import COMMITS, LEVEL, Counts, Training, simulate_history


@pytest.mark.parametrize("training", [Training(0.15, 1, guard=8.0), Training(0.15, 3, unlucky=0.1)], ids=str)
def test_luck_raises_no_alarm(training: Training) -> None:
    """The budget is one per 100 commits, of all series together."""
    counts, rng = Counts(), np.random.default_rng(3)
    for _ in range(3):
        simulate_history(rng, training, [LEVEL] * COMMITS, counts)
    assert counts.commits == 300
    assert counts.alarms <= 1


def test_a_loss_is_told_at_once() -> None:
    levels = [LEVEL] * 20 + [0.1 * LEVEL] * 5
    told = [simulate_history(np.random.default_rng(n), Training(0.1, 3), levels, Counts()) for n in range(3)]
    assert told == [20, 20, 20]
