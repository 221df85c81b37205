"""Products on the device in two phases, of which Kineto tells the kernels' time once the loop is over.

`--how plain` runs them in the current stream, `graph` replays them from a captured graph, `streams` has a
stream for each phase. What Kineto saw is reported as a quality, in seconds per step.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

import paceline

parser = argparse.ArgumentParser()
parser.add_argument("--how", default="plain", choices=("plain", "graph", "streams"))
parser.add_argument("--size", type=int, default=2048)
how, size = parser.parse_args().how, parser.parse_args().size

PROFILED_STEPS = 20
PRODUCTS = {"short": 4, "long": 16}
matrix = torch.full((size, size), 1e-3, device="cuda")
ahead = torch.empty_like(matrix)
products = {name: torch.empty_like(matrix) for name in PRODUCTS}


def multiply_matrices(name: str) -> None:
    for _ in range(PRODUCTS[name]):
        torch.mm(matrix, matrix, out=products[name])


def capture_graph(name: str) -> Callable[[], None]:
    """A graph of the products, captured inside an open phase as training code does it."""
    multiply_matrices(name)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with paceline.phase("capture"), torch.cuda.graph(graph):
        multiply_matrices(name)
    return lambda: graph.replay()


def in_stream(name: str) -> Callable[[], None]:
    stream = torch.cuda.Stream()

    def run() -> None:
        with torch.cuda.stream(stream), paceline.phase(name):
            multiply_matrices(name)

    return run


def make_work(name: str) -> Callable[[], None]:
    if how == "graph":
        return capture_graph(name)
    return in_stream(name) if how == "streams" else lambda: multiply_matrices(name)


work = {name: make_work(name) for name in PRODUCTS}

for _ in paceline.steps(range(10**6)):
    # Something to do before the first phase: on an idle device a phase's device time begins with what the
    # host needs to launch its first kernel.
    torch.mm(matrix, matrix, out=ahead)
    for name, run in work.items():
        if how == "streams":
            run()
        else:
            with paceline.phase(name):
                run()
    # The queue stays short, so that nothing but kernels lies between a phase's two events.
    torch.cuda.synchronize()

for name, run in work.items():
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for _ in range(PROFILED_STEPS):
            run()
        torch.cuda.synchronize()
    # The rows of operators have the time of their kernels once more.
    kernels = [row for row in seen.key_averages() if row.device_type == DeviceType.CUDA]
    microseconds = sum(row.self_device_time_total for row in kernels if not row.is_user_annotation)
    paceline.quality(f"kineto_{name}", microseconds / 1e6 / PROFILED_STEPS)
