"""A training loop as strangers write it, without a mark; it takes a block of steps when it is asked to.

Arguments: batch size, a pipe to read numbers of steps from, a pipe to write each block's seconds to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import torch
from torch import nn

WIDTH = 128
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def build_training(batch_size: int) -> tuple[nn.Module, Callable[[], None]]:
    """Return the network, and what takes one step."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)]
    network = nn.Sequential(*layers).to(DEVICE)
    optimizer = torch.optim.Adam(network.parameters())
    batch, targets = (torch.randn(batch_size, width, device=DEVICE) for width in (WIDTH, 1))

    def take_step() -> None:
        loss = nn.functional.mse_loss(network(batch), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return network, take_step


def train_in_turns(take_step: Callable[[], None]) -> None:
    """Train until the pipe is closed."""
    with Path(sys.argv[2]).open() as turns, Path(sys.argv[3]).open("w") as done:
        while line := turns.readline():
            started = perf_counter()
            for _ in range(int(line)):
                take_step()
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            done.write(f"{perf_counter() - started}\n")
            done.flush()


if __name__ == "__main__":
    train_in_turns(build_training(int(sys.argv[1]))[1])
