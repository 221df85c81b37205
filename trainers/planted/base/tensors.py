"""Transitions as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from replay import Transition


class Batch(NamedTuple):
    """What one update learns from, a row per transition."""

    views: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_views: torch.Tensor
    ended: torch.Tensor


def as_tensors(transitions: Sequence[Transition]) -> Batch:
    """Put transitions into tensors."""
    views, actions, rewards, next_views, ended = zip(*transitions, strict=True)
    rows = views + next_views
    cells = torch.from_numpy(np.array(rows))
    return Batch(
        cells[: len(views)],
        torch.tensor(actions),
        torch.tensor(rewards),
        cells[len(views) :],
        torch.tensor(ended, dtype=torch.float32),
    )
