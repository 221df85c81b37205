"""Examples whose labels a network without training gives."""

from __future__ import annotations

import torch
from model import INPUTS, KINDS

EXAMPLES, HELD_OUT = 8192, 8192
ROWS = 64


class Examples:
    """What is learned from, and what is held out for the evaluation."""

    def __init__(self, seed: int) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.inputs = torch.randn(EXAMPLES, INPUTS, generator=self.random)
        self.held_out = torch.randn(HELD_OUT, INPUTS, generator=self.random)
        weights = torch.randn(INPUTS, KINDS, generator=self.random)
        self.labels = (self.inputs @ weights).argmax(dim=1)
        self.held_out_labels = (self.held_out @ weights).argmax(dim=1)

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a batch and its labels."""
        rows = torch.randint(EXAMPLES, (ROWS,), generator=self.random)
        return self.inputs[rows], self.labels[rows]
