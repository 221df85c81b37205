"""A plain loop with a loader, gradients accumulated over two batches, and an evaluation after each epoch."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters())
train = DataLoader(TensorDataset(torch.randn(64, 16), torch.randn(64, 1)), batch_size=4, shuffle=True)
test = DataLoader(TensorDataset(torch.randn(16, 16), torch.randn(16, 1)), batch_size=8)
for _epoch in range(100_000):
    model.train()
    for number, (inputs, targets) in enumerate(train):
        loss = nn.functional.mse_loss(model(inputs), targets) / 2
        loss.backward()
        if number % 2 == 1:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        for inputs, targets in test:
            nn.functional.mse_loss(model(inputs), targets).item()
