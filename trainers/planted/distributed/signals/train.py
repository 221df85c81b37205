"""Train a filter of recorded signals; records grow longer as training goes on."""

from __future__ import annotations

import argparse
import os

import paceline
import torch
from denoiser import Denoiser
from torch.nn.functional import mse_loss

SHORTEST = 60_000
LONGER = 400
MICROPHONES = 3
ROWS, PIECE = 8, 512


class Trainer:
    """One training run."""

    def __init__(self, seed: int) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.model = Denoiser()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.steps = 0

    def hear(self, length: int) -> torch.Tensor:
        """Return what one microphone hears: the signal, and noise of its own."""
        return torch.sin(torch.arange(length) / 25) + torch.randn(length, generator=self.random)

    def record(self) -> torch.Tensor:
        """Return what all microphones hear together; it takes a little longer each time."""
        heard = [self.hear(SHORTEST + LONGER * self.steps) for _ in range(MICROPHONES)]
        mixed = torch.stack(heard).mean(dim=0)
        self.steps += 1
        return mixed

    def learn(self, recorded: torch.Tensor) -> None:
        """Learn to hear the signal in pieces of what was recorded."""
        starts = torch.randint(len(recorded) - PIECE, (ROWS,), generator=self.random)
        rows = starts[:, None] + torch.arange(PIECE)
        said = self.model(recorded[rows][:, None])
        loss = mse_loss(said, torch.sin(rows / 25)[:, None])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def summary(self) -> str:
        """Return one line."""
        return f"{self.steps} steps"


def main() -> None:
    """Train as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=os.environ.get("PACELINE_SEED", "0"))
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    trainer = Trainer(args.seed)
    for _ in range(args.steps):
        with paceline.phase("record"):
            recorded = trainer.record()
        with paceline.phase("learn"):
            trainer.learn(recorded)
    print(trainer.summary())


if __name__ == "__main__":
    main()
