"""Device memory of which every second block was given back: nobody else can be given what lies between."""

from __future__ import annotations

import torch

import paceline

BLOCKS, BLOCK = 64, 3 * 2**19
blocks = [torch.zeros(BLOCK, dtype=torch.uint8, device="cuda") for _ in range(BLOCKS)]
del blocks[::2]

for _ in paceline.steps(range(10**6)):
    with paceline.phase("touch"):
        blocks[0].add_(1)
    torch.cuda.synchronize()
