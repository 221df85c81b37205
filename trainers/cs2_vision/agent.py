"""The agent: facts from what was seen, rewards, a network of action values, its replay memory."""

from __future__ import annotations

import hashlib

import numpy as np
import paceline
import torch
from answers import ScreenState
from arguments import Args
from games import ACTIONS
from numpy.typing import NDArray
from palette import COLUMNS
from torch import nn

FACTS = 8
"""Numbers that the policy sees of a game."""

MIDDLE = COLUMNS / 2
"""The crosshair's column."""

SHOT = 0.1
"""What firing costs, in hits."""


def facts(before: ScreenState, seen: ScreenState) -> tuple[float, ...]:
    """Where the enemy is beside the crosshair, how that changed, its size, and what the display says."""
    if seen.target is None:
        aside = moved = outside = height = 0.0
    else:
        x, _, height = seen.target
        aside = x - MIDDLE
        moved = x - before.target[0] if before.target else 0.0
        outside = abs(aside) - height / 4
    return (
        float(seen.target is not None),
        aside / MIDDLE,
        moved / MIDDLE,
        outside / MIDDLE,
        height / 32,
        seen.health / 100,
        seen.ammo / 100,
        float(seen.killed),
    )


def reward(before: ScreenState, seen: ScreenState) -> float:
    """A hit, a wound, a shot, and the share of the view by which the crosshair came nearer to the enemy."""
    value = float(seen.killed and not before.killed)
    value -= max(0.0, before.health - seen.health) / 50
    if seen.ammo < before.ammo:
        value -= SHOT
    if before.target and seen.target:
        value += (abs(before.target[0] - MIDDLE) - abs(seen.target[0] - MIDDLE)) / 32
    return value


def tabulate(pairs: list[tuple[ScreenState, ScreenState]]) -> NDArray[np.float32]:
    """The facts of some games."""
    return np.array([facts(*pair) for pair in pairs], dtype=np.float32)


class Memory:
    """The replay memory: transitions in a ring."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.views = np.zeros((2, size, FACTS), dtype=np.float32)
        self.actions = np.zeros(size, dtype=np.int64)
        self.rewards = np.zeros(size, dtype=np.float32)
        self.number = 0
        self.chance = np.random.default_rng(seed)

    def push(
        self, view: NDArray[np.float32], action: int, reward: float, following: NDArray[np.float32]
    ) -> None:
        at = self.number % self.size
        self.views[0, at], self.views[1, at] = view, following
        self.actions[at], self.rewards[at] = action, reward
        self.number += 1

    def sample(self, count: int) -> tuple[torch.Tensor, ...]:
        """Views, actions, rewards and following views of transitions drawn at random."""
        at = self.chance.integers(0, min(self.number, self.size), count)
        parts = (self.views[0, at], self.actions[at], self.rewards[at], self.views[1, at])
        return tuple(torch.from_numpy(part) for part in parts)


class Agent:
    """The network that values actions, on the host: it is too small for a device to pay."""

    def __init__(self, args: Args) -> None:
        self.args = args
        size = args.hidden
        self.network = nn.Sequential(
            nn.Linear(FACTS, size), nn.ReLU(), nn.Linear(size, size), nn.ReLU(), nn.Linear(size, ACTIONS)
        )
        self.optimizer = torch.optim.Adam(self.network.parameters(), args.learning_rate, fused=True)
        self.memory = Memory(20_000, int(args.seed or 0))
        self.chance = np.random.default_rng(int(args.seed or 0) + 1)
        self.rewards = 0.0

    @torch.no_grad()
    def best(self, views: NDArray[np.float32]) -> list[int]:
        """The action of the highest value, for each view."""
        return self.network(torch.from_numpy(views)).argmax(1).tolist()

    def act(self, views: NDArray[np.float32], exploration: float) -> list[int]:
        """The same, or with this chance any action.

        Each game draws two numbers, one game after the other, so that groups of games draw the same as all.
        """
        drawn = self.chance.random((len(views), 2))
        return [
            int(other * ACTIONS) if chance < exploration else best
            for (chance, other), best in zip(drawn.tolist(), self.best(views), strict=True)
        ]

    def exploration(self, step: int) -> float:
        """The share of random moves."""
        return max(0.05, 1 - step / max(1, self.args.exploration_steps))

    def learn(self) -> None:
        """One update, once there are enough transitions."""
        if self.memory.number < self.args.batch_size:
            return
        views, actions, rewards, following = self.memory.sample(self.args.batch_size)
        with paceline.phase("forward"):
            with torch.no_grad():
                targets = rewards + self.args.discount * self.network(following).max(1).values
            values = self.network(views).gather(1, actions[:, None]).squeeze(1)
            loss = nn.functional.smooth_l1_loss(values, targets)
        with paceline.phase("backward"):
            self.optimizer.zero_grad()
            loss.backward()
        with paceline.phase("optimizer"):
            self.optimizer.step()

    def fingerprint(self) -> str:
        """A hash of all the parameters: equal for two runs that learned bit by bit the same."""
        digest = hashlib.sha256()
        for parameter in self.network.parameters():
            digest.update(parameter.detach().contiguous().numpy().tobytes())
        return digest.hexdigest()
