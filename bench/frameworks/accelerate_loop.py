"""A loop of Accelerate, with `accumulate` over four batches."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
network = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
rows = TensorDataset(torch.randn(64, 16), torch.randn(64, 1))
model, optimizer, loader = accelerator.prepare(
    network, torch.optim.AdamW(network.parameters()), DataLoader(rows, batch_size=4)
)
for _epoch in range(100_000):
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.mse_loss(model(inputs), targets))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
