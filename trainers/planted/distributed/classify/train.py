"""Train a compiled classifier, and evaluate it now and then."""

from __future__ import annotations

import argparse
import os

import paceline
import torch
from examples import Examples
from model import Classifier
from torch.nn.functional import cross_entropy

EVALUATED_EVERY = 40


class Trainer:
    """One training run."""

    def __init__(self, seed: int) -> None:
        self.examples = Examples(seed)
        self.model = Classifier()
        self.compiled = torch.compile(self.model, backend="eager")
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.loss = torch.zeros(())

    def learn(self) -> None:
        """Learn from one batch."""
        inputs, labels = self.examples.draw()
        loss = cross_entropy(self.compiled(inputs), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.loss = 0.99 * self.loss + 0.01 * loss.detach()

    @torch.no_grad()
    def evaluate(self) -> torch.Tensor:
        """Return the share of the held-out examples that are classified right."""
        said = self.model(self.examples.held_out)
        return (said.argmax(dim=1) == self.examples.held_out_labels).float().mean()


def main() -> None:
    """Train as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=os.environ.get("PACELINE_SEED", "0"))
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    trainer = Trainer(args.seed)
    for number in range(args.steps):
        with paceline.phase("learn"):
            trainer.learn()
        if number % EVALUATED_EVERY == EVALUATED_EVERY - 1:
            with paceline.phase("evaluate"):
                accuracy = trainer.evaluate()
            paceline.quality("accuracy", float(accuracy))
    print(f"loss {float(trainer.loss):.4f}")


if __name__ == "__main__":
    main()
