"""Sequences whose tags follow from their neighbouring tokens."""

from __future__ import annotations

import torch

TAGS = 8
LENGTH = 32
ROWS = 16


class Batches:
    """Draws the part of a batch that belongs to one rank."""

    words = 200

    def __init__(self, seed: int, rank: int) -> None:
        self.random = torch.Generator().manual_seed(1000 * seed + rank)

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return tokens and their tags."""
        tokens = torch.randint(self.words, (ROWS, LENGTH), generator=self.random)
        return tokens, (tokens + tokens.roll(1, dims=1)) % TAGS
