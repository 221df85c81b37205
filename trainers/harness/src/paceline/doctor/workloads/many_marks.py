"""A small update of a network, in turn with a phase around each of its parts and without any.

Both kinds of steps are taken in one process, in blocks: two processes differ in speed by where their memory
happens to lie, by more than a phase costs. Each kind's typical step is reported as a quality, in seconds: on
the CPU the median; on a device, where only some steps record events, the mean without the slowest hundredth.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from statistics import fmean, median
from time import perf_counter

import torch

import paceline

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
device = torch.device(parser.parse_args().device)

BLOCK = 10
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
network.to(device)
optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
inputs = torch.randn(32, 256, device=device)
times: dict[bool, list[float]] = {True: [], False: []}

for step in paceline.steps(range(10**6)):
    marked = bool(step // BLOCK % 2)
    mark_phase = paceline.phase if marked else nullcontext
    began = perf_counter()
    with mark_phase("learn"):
        with mark_phase("zero_grad"):
            optimizer.zero_grad()
        with mark_phase("forward"):
            loss = network(inputs).square().mean()
        with mark_phase("backward"):
            loss.backward()
        with mark_phase("optimizer"):
            optimizer.step()
    times[marked].append(perf_counter() - began)
    if device.type == "cuda":
        torch.cuda.synchronize()

for marked, name in ((True, "with_phases"), (False, "without_phases")):
    taken = sorted(times[marked][len(times[marked]) // 4 :])
    typical = median(taken) if device.type == "cpu" else fmean(taken[: len(taken) * 99 // 100])
    paceline.quality(name, typical)
