"""The classifier."""

from __future__ import annotations

import torch
from torch import nn

INPUTS, KINDS = 32, 4
WIDTH = 256
LAYERS = 6


class Classifier(nn.Module):
    """Linear layers with what they were given added to what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(INPUTS, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.last = nn.Linear(WIDTH, KINDS)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.first(inputs)
        for layer in self.layers:
            hidden = hidden + torch.relu(layer(hidden))
        return self.last(hidden)
