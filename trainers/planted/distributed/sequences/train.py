"""Train a tagger of sequences; every rank learns from its own part of each batch."""

from __future__ import annotations

import argparse
import os

import paceline
import torch
import torch.distributed as dist
from batches import TAGS, Batches
from report import Report
from torch import nn
from torch.nn.functional import cross_entropy

WIDTH = 64


class Tagger(nn.Module):
    """Reads a sequence in both directions and says a tag for each of its tokens."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, WIDTH)
        self.reader = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * WIDTH, TAGS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        read, _ = self.reader(self.words(tokens))
        return self.tags(read)


def main() -> None:
    """Train as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=os.environ.get("PACELINE_SEED", "0"))
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    dist.init_process_group("gloo")
    batches = Batches(args.seed, dist.get_rank())
    model = nn.parallel.DistributedDataParallel(Tagger(batches.words))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    report = Report(dist.get_rank())
    for _ in range(args.steps):
        tokens, tags = batches.draw()
        said = model(tokens)
        with paceline.phase("report"):
            report.update(said, tags)
        loss = cross_entropy(said.flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(report.summary())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
