"""Ranks that train one model by DistributedDataParallel on gloo, a block of steps when rank 0 is asked to.

Arguments: batch size, a pipe to read numbers of steps from, a pipe to write each block's seconds and all
ranks' seconds of processor to.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, process_time
from typing import TextIO

import torch
import torch.distributed as dist
from torch import nn

WIDTH = 256


def main() -> None:
    """Train until the pipe is closed."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)]
    network = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.Adam(network.parameters())
    batch, targets = torch.randn(int(sys.argv[1]), WIDTH), torch.randn(int(sys.argv[1]), 1)
    with ExitStack() as opened:
        turns = done = None
        if dist.get_rank() == 0:
            turns = opened.enter_context(Path(sys.argv[2]).open())
            done = opened.enter_context(Path(sys.argv[3]).open("w"))
        train_blocks(network, optimizer, batch, targets, turns, done)
    # Who ended first would close the connections of the others.
    dist.barrier()
    dist.destroy_process_group()


def train_blocks(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: torch.Tensor,
    targets: torch.Tensor,
    turns: TextIO | None,
    done: TextIO | None,
) -> None:
    """Take blocks of steps until there are no more turns, which rank 0 reads."""
    steps = torch.zeros(1, dtype=torch.int64)
    while True:
        if turns is not None:
            steps[0] = int(turns.readline() or 0)
        dist.broadcast(steps, 0)
        if not steps:
            return
        started, used = perf_counter(), process_time()
        for _ in range(int(steps)):
            loss = nn.functional.mse_loss(network(batch), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = loss.detach().clone()
            dist.all_reduce(total)
        spent = torch.tensor([process_time() - used], dtype=torch.float64)
        dist.all_reduce(spent)
        if done is not None:
            print(perf_counter() - started, spent.item(), file=done, flush=True)


if __name__ == "__main__":
    main()
