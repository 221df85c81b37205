"""What is reported of a training."""

from __future__ import annotations

import torch


class Report:
    """Counts how many tags are right."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.right = torch.zeros(())
        self.steps = 0

    def update(self, said: torch.Tensor, tags: torch.Tensor) -> None:
        """Take one batch into account."""
        self.right += (said.argmax(dim=-1) == tags).float().mean()
        self.steps += 1

    def summary(self) -> str:
        """Return one line."""
        return f"{self.right / max(1, self.steps):.3f} of the tags were right"
