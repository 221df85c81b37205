"""Train a DQN on Snake."""

from __future__ import annotations

import argparse
import hashlib
import os
import random

import paceline
import torch
from environment import ACTIONS, Snake
from model import Agent
from replay import Replay, Transition
from tensors import as_tensors

EXPLORATION_STEPS = 200
EXPLORATION = 0.05


class Trainer:
    """One training run."""

    def __init__(self, batch_size: int, seed: int) -> None:
        torch.manual_seed(seed)
        self.batch_size = batch_size
        self.random = random.Random(seed)
        self.game = Snake(seed)
        self.agent = Agent()
        self.replay = Replay(seed)
        self.view = self.game.view()

    def step(self, number: int) -> None:
        """Decide once, and learn once when the memory holds a batch."""
        with paceline.phase("act"):
            action = self.act(number)
        with paceline.phase("env"):
            next_view, reward, ended = self.game.step(action)
        with paceline.phase("push"):
            self.replay.push(Transition(self.view, action, reward, next_view, ended))
        self.view = self.game.reset() if ended else next_view
        if len(self.replay) >= self.batch_size:
            self.update()

    def act(self, number: int) -> int:
        """Return a random action, or the best one."""
        exploration = max(EXPLORATION, 1 - number / EXPLORATION_STEPS)
        if self.random.random() < exploration:
            return self.random.randrange(ACTIONS)
        return self.agent.best_action(self.view)

    def update(self) -> None:
        """Learn from one batch."""
        with paceline.phase("sample"):
            transitions = self.replay.sample(self.batch_size)
        with paceline.phase("tensors"):
            batch = as_tensors(transitions)
        with paceline.phase("targets"):
            targets = self.agent.targets(batch)
        with paceline.phase("learn"):
            self.agent.learn(batch, targets)

    def fingerprint(self) -> str:
        """Return a hash of the parameters."""
        digest = hashlib.sha256()
        for parameter in self.agent.network.parameters():
            digest.update(parameter.detach().numpy().tobytes())
        return digest.hexdigest()


def main() -> None:
    """Train as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=32, help="transitions in an update")
    parser.add_argument("--seed", type=int, default=os.environ.get("PACELINE_SEED", "0"))
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    trainer = Trainer(args.batch_size, args.seed)
    for number in paceline.steps(range(args.steps)):
        trainer.step(number)
    print(trainer.replay.summary())
    print(trainer.fingerprint())


if __name__ == "__main__":
    main()
