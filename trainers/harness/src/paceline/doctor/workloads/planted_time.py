"""A step whose time is known: products, a wait for data, Python behind a read of a value, small kernels.

`data_loading` sleeps, `think` keeps the host busy once it has read a value of the device, and `small`
launches so many small kernels that the device waits for the host.
"""

from __future__ import annotations

import argparse
from time import sleep, thread_time

import torch

import paceline

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
device = torch.device(parser.parse_args().device)

PRODUCTS, SMALL = 4, 100
DATA_SECONDS, THINK_SECONDS = 0.003, 0.002
# Without a device in one thread: that an operation's other threads come late is no wait that was planted.
if device.type == "cpu":
    torch.set_num_threads(1)
# On a device so large that the host is sure to wait for it in the read.
size = 2048 if device.type == "cuda" else 128
matrix = torch.full((size, size), 1e-3, device=device)
vector = torch.ones(64, device=device)
product = torch.empty_like(matrix)


def keep_host_busy(seconds: float) -> None:
    # Of its own processor time: what other work takes of it meanwhile is no Python's.
    ends = thread_time() + seconds
    while thread_time() < ends:
        pass


for _ in paceline.steps(range(10**6)):
    with paceline.phase("data_loading"):
        sleep(DATA_SECONDS)
    with paceline.phase("products"):
        for _ in range(PRODUCTS):
            torch.mm(matrix, matrix, out=product)
    with paceline.phase("read"):
        product[0, 0].item()
    with paceline.phase("think"):
        keep_host_busy(THINK_SECONDS)
    with paceline.phase("small"):
        for _ in range(SMALL):
            vector.add_(1.0)
    # The next step's wait for data finds an empty queue.
    vector[0].item()
