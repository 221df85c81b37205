"""What the loop keeps to tell how the training goes, and the line that it prints."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np
from benchmark_support.checkpoints import State
from environment import Snakes
from tensor_environment import TensorSnakes

RECENT = 100
"""Losses and episodes in a mean of the latest ones."""


PARTS = ("Select", "Step", "Push", "Train")
"""The parts of a step whose times can be printed."""


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

    def add_episodes(self, games: Snakes | TensorSnakes) -> int:
        """Keep the episodes that the last step ended; return their number."""
        ended = len(games.ended_scores)
        if ended:
            self.episodes += ended
            self._scores.extend(games.ended_scores.tolist())
        return ended

    def state(self) -> State:
        """Return all of it, for a checkpoint."""
        return {
            "episodes": self.episodes,
            "mean_loss": self.mean_loss,
            "losses": list(self._losses),
            "recent": list(self._recent),
            "scores": list(self._scores),
        }

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.episodes, self.mean_loss = state["episodes"], state["mean_loss"]
        self._losses = list(state["losses"])
        self._recent.extend(state["recent"])
        self._scores.extend(state["scores"])

    def line(self, step: int, exploration: float) -> str:
        """Return one line about the latest episodes and updates."""
        score = sum(self._scores) / max(1, len(self._scores))
        loss = self.mean_loss if self._whole_mean else sum(self._recent) / max(1, len(self._recent))
        return (
            f"step {step}: {self.episodes} episodes, score {score:.2f}, "
            f"loss {loss:.4f}, random moves {exploration:.2f}"
        )


class StepTimes:
    """How long the parts of a step take, as means over the steps since the last printed line."""

    def __init__(self) -> None:
        self._sums = [0.0] * len(PARTS)
        self._steps = 0

    def add(self, *moments: float) -> None:
        """Keep one step, by the clock at its beginning and at the end of each part."""
        for at, (begin, end) in enumerate(pairwise(moments)):
            self._sums[at] += end - begin
        self._steps += 1

    def line(self) -> str:
        """Return one line of the parts' seconds, and begin anew."""
        means = [total / max(1, self._steps) for total in self._sums]
        self._sums, self._steps = [0.0] * len(PARTS), 0
        return ", ".join(f"{part}: {seconds:.4f}s" for part, seconds in zip(PARTS, means, strict=True))
