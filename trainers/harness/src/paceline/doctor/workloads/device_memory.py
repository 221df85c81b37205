"""One gibibyte of device memory that is kept, and a quarter that comes and goes in each step."""

from __future__ import annotations

import torch

import paceline

KEPT, BRIEF = 2**30, 2**28
kept = torch.zeros(KEPT, dtype=torch.uint8, device="cuda")

for _ in paceline.steps(range(10**6)):
    with paceline.phase("brief"):
        brief = torch.ones(BRIEF, dtype=torch.uint8, device="cuda")
        # One number is read: a sum of all would first copy them into eight bytes each.
        brief[-1].item()
        del brief
