"""A model behind torch.compile that breaks its graph once a step, and compiles anew for each new scale."""

from __future__ import annotations

import torch
from torch import nn

torch.manual_seed(0)
torch._dynamo.config.recompile_limit = 1_000_000
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile(backend="eager", dynamic=False)
def compute_loss(inputs: torch.Tensor, scale: str) -> torch.Tensor:
    """Return the loss; a branch that depends on what was computed can't be part of a graph."""
    hidden = model(inputs)
    if hidden.sum() > 1e9:
        hidden = hidden * 2
    return hidden.square().mean() * len(scale)


for number in range(1_000_000):
    loss = compute_loss(torch.randn(4, 16), f"{number // 10}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
