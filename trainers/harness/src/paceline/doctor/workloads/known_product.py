"""Products whose floating-point operations are known, in a type that the device has units for."""

from __future__ import annotations

import argparse

import torch

import paceline

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--size", type=int, default=256)
parser.add_argument("--type", default="float32")
arguments = parser.parse_args()

PRODUCTS = 4
dtype = getattr(torch, arguments.type)
matrix = torch.full((arguments.size, arguments.size), 1e-3, device=arguments.device, dtype=dtype)
product = torch.empty_like(matrix)

for _ in paceline.steps(range(10**6)):
    with paceline.phase("multiply"):
        for _ in range(PRODUCTS):
            torch.mm(matrix, matrix, out=product)
    if arguments.device == "cuda":
        # The queue stays short: the window's end is then no wait for all that was launched.
        torch.cuda.synchronize()
