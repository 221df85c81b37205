"""A step with known copies, waits and reads: three uploads, a product, one download, two numbers read."""

from __future__ import annotations

import argparse

import torch

import paceline

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
device = torch.device(parser.parse_args().device)

MEBIBYTE = 2**20
hosts = [torch.ones(MEBIBYTE // 4) for _ in range(3)]
matrix = torch.ones(64, 64, device=device)

for _ in paceline.steps(range(10**6)):
    with paceline.phase("upload"):
        for host in hosts:
            host.to(device)
    with paceline.phase("work"):
        product = matrix @ matrix
    with paceline.phase("download"):
        product.cpu()
    with paceline.phase("read"):
        product[0, 0].item()
        float(product[1, 1])
