"""Another program that computes on the device, until its input is closed. Not measured."""

from __future__ import annotations

import sys
import threading

import torch

matrix = torch.full((4096, 4096), 1e-3, device="cuda")
product = matrix @ matrix
torch.cuda.synchronize()
print("ready", flush=True)
waiting = threading.Thread(target=sys.stdin.read, daemon=True)
waiting.start()
while waiting.is_alive():
    for _ in range(20):
        torch.mm(matrix, matrix, out=product)
    torch.cuda.synchronize()
