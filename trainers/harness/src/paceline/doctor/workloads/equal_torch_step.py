"""Training steps of a small network, for half a second.

Prints that it is ready, waits for a line, prints the mean seconds of a step.
"""

from time import perf_counter

import torch
from torch import nn

WARMUP, STEPS = 100, 500

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, targets = torch.randn(64, 128), torch.randn(64, 128)


def take_step() -> None:
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


print("ready", flush=True)
input()
for _ in range(WARMUP):
    take_step()
started = perf_counter()
for _ in range(STEPS):
    take_step()
print((perf_counter() - started) / STEPS)
