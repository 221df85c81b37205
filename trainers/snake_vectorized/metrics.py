"""What the loop keeps to tell how the training goes, and the line that it prints."""

from __future__ import annotations

from collections import deque

import numpy as np
from environment import Snakes

RECENT = 100
"""Losses and episodes in a mean of the latest ones."""


class Metrics:
    """Losses and episodes so far. `whole_mean` takes the mean over every loss anew with each one."""

    def __init__(self, whole_mean: bool) -> None:
        self.episodes = 0
        self.mean_loss = 0.0
        self._whole_mean = whole_mean
        self._losses: list[float] = []
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._scores: deque[int] = deque(maxlen=RECENT)

    def add_loss(self, loss: float) -> None:
        """Keep the loss of one update."""
        if self._whole_mean:
            self._losses.append(loss)
            self.mean_loss = float(np.mean(self._losses))
        else:
            self._recent.append(loss)

    def add_episodes(self, games: Snakes) -> int:
        """Keep the episodes that the last step ended; return their number."""
        ended = len(games.ended_scores)
        if ended:
            self.episodes += ended
            self._scores.extend(games.ended_scores.tolist())
        return ended

    def line(self, step: int, exploration: float) -> str:
        """Return one line about the latest episodes and updates."""
        score = sum(self._scores) / max(1, len(self._scores))
        loss = self.mean_loss if self._whole_mean else sum(self._recent) / max(1, len(self._recent))
        return (
            f"step {step}: {self.episodes} episodes, score {score:.2f}, "
            f"loss {loss:.4f}, random moves {exploration:.2f}"
        )
