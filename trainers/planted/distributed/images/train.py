"""Train a classifier of pictures that two workers read."""

from __future__ import annotations

import argparse
import os

import torch
from pictures import KINDS, Pictures
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

WORKERS = 2
ROWS = 32


class Classifier(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.LazyLinear(KINDS),
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.layers(pictures)


class Trainer:
    """One training run."""

    def __init__(self, seed: int) -> None:
        self.loader = DataLoader(Pictures(seed), batch_size=ROWS, num_workers=WORKERS)
        self.model = Classifier()
        self.model(torch.zeros(1, 3, 48, 48))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.seen = 0

    def learn(self, pictures: torch.Tensor, kinds: torch.Tensor) -> None:
        """Learn from one batch."""
        loss = cross_entropy(self.model(pictures), kinds)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.seen += len(pictures)


def main() -> None:
    """Train as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=os.environ.get("PACELINE_SEED", "0"))
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    trainer = Trainer(args.seed)
    for number, (pictures, kinds) in enumerate(trainer.loader):
        if number >= args.steps:
            break
        trainer.learn(pictures, kinds)
    print(f"{trainer.seen} pictures seen")


if __name__ == "__main__":
    main()
