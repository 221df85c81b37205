"""The memory of what the snake did, from which it learns."""

from __future__ import annotations

import random
from collections import deque
from typing import NamedTuple

from environment import View

CAPACITY = 10_000


class Transition(NamedTuple):
    """One step: what was seen, what was done, what came of it."""

    view: View
    action: int
    reward: float
    next_view: View
    ended: bool


class Replay:
    """The last CAPACITY transitions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.transitions: deque[Transition] = deque(maxlen=CAPACITY)

    def __len__(self):
        return len(self.transitions)

    def push(self, transition: Transition) -> None:
        """Remember one step."""
        self.transitions.append(transition)

    def sample(self, count: int) -> list[Transition]:
        """Draw transitions to learn from."""
        return self.random.sample(self.transitions, count)

    def summary(self) -> str:
        """Say what the memory holds."""
        parts = [f"{len(self)} transitions"]
        return ", ".join(parts)
