"""Ranks that sum one tensor a step: over nccl where each has a device of its own, else over gloo."""

from __future__ import annotations

import os

import torch
from torch import distributed

import paceline

ranks, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
on_devices = torch.cuda.is_available() and torch.cuda.device_count() >= ranks
device = torch.device("cuda", rank) if on_devices else torch.device("cpu")
if on_devices:
    torch.cuda.set_device(device)
backend = "nccl" if on_devices else "gloo"
distributed.init_process_group(backend)
paceline.setting("backend", backend)
gradient = torch.ones(4096, device=device)

for _ in paceline.steps(range(10**6)):
    with paceline.phase("compute"):
        total = (gradient * 2.0).sum()
    distributed.all_reduce(gradient)
    gradient.clamp_(max=1.0)
    if on_devices:
        torch.cuda.synchronize()

distributed.destroy_process_group()
