"""The network and how it learns."""

from __future__ import annotations

import torch
from environment import ACTIONS, VIEW, View
from tensors import Batch
from torch import nn

HIDDEN = 64
LEARNING_RATE = 3e-4
DISCOUNT = 0.9


class Agent:
    """The network with its optimizer: acts, and learns from batches."""

    def __init__(self) -> None:
        self.network = nn.Sequential(
            nn.Linear(VIEW * VIEW, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, ACTIONS),
        )
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE, fused=True)

    def best_action(self, view: View) -> int:
        """Return the action of the highest value."""
        with torch.inference_mode():
            return int(self.network(torch.from_numpy(view)).argmax())

    def targets(self, batch: Batch) -> torch.Tensor:
        """Return what the values should be: the reward, and what the next view is worth."""
        with torch.no_grad():
            ahead = self.network(batch.next_views)
        wanted = []
        for row in range(len(ahead)):
            best = ahead[row].max()
            wanted.append(batch.rewards[row] + DISCOUNT * (1 - batch.ended[row]) * best)
        return torch.stack(wanted)

    def learn(self, batch: Batch, targets: torch.Tensor) -> None:
        """Move the values of the batch towards the targets."""
        values = self.network(batch.views).gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        loss = nn.functional.mse_loss(values, targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
