"""Trains the vision service's network on scenes that it draws, and writes its weights.

    python train_detector.py --seed 0                 # into the cache folder, where train.py looks for them
    python train_detector.py --seed 0 --weights PATH  # into this file

The same seed ends in the same weights on the same machine. train.py runs this where its weights are missing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from detector import (
    CELL,
    GRID_COLUMNS,
    GRID_ROWS,
    KINDS,
    TALL,
    Detector,
    RawOutputs,
    as_input,
    read,
    with_nothing,
)
from numpy.typing import NDArray
from palette import PALETTE
from renderer import draw
from scenes import Truth, random_scene
from torch import nn
from weights import DEFAULT_STEPS, store, weights_path

SCENES = 4096
"""Pictures that it learns from, where it has time to see so many."""

BATCH = 32

RATE = 4e-3
"""Learning rate of Adam at its highest."""

CHECKED = 500
"""Pictures that it never saw, on which it is judged."""


def draw_pictures(count: int, seed: int) -> tuple[NDArray[np.uint8], list[Truth]]:
    """Pictures of random scenes, as numbers of the palette, and what there is to see on them."""
    chance = np.random.default_rng(seed)
    drawn = [draw(random_scene(chance)) for _ in range(count)]
    return np.stack([picture for picture, _ in drawn]), [truth for _, truth in drawn]


def targets(truths: list[Truth]) -> RawOutputs:
    """What the network should say."""
    cells = torch.zeros(len(truths), 4, GRID_ROWS, GRID_COLUMNS)
    for at, truth in enumerate(truths):
        if truth.target is not None:
            x, y, height = truth.target
            column = min(max(int(x / CELL), 0), GRID_COLUMNS - 1)
            row = min(max(int(y / CELL), 0), GRID_ROWS - 1)
            cells[at, :, row, column] = torch.tensor([1, x / CELL - column, y / CELL - row, height / TALL])
    kinds = torch.tensor([KINDS.index(truth.kind) for truth in truths])
    display = torch.tensor([[truth.health, truth.ammo, truth.killed] for truth in truths])
    return RawOutputs(cells, kinds, display)


def loss(found: RawOutputs, truth: RawOutputs) -> torch.Tensor:
    """The sum of all branches' losses; places and the display count only where there are any."""
    here = truth.cells[:, 0]
    play = (truth.kinds == 0).float()
    logits = with_nothing(found.cells[:, 0])
    # Where there is no enemy, the place after the last cell is the right one.
    right = torch.where(here.any(2).any(1), here.flatten(1).argmax(1), logits.shape[1] - 1)
    middle = nn.functional.cross_entropy(logits, right)
    place = (abs(found.cells[:, 1:] - truth.cells[:, 1:]) * here[:, None]).sum() / here.sum().clamp(min=1)
    bars = (abs(found.display[:, :2] - truth.display[:, :2]).mean(1) * play).mean()
    notice = nn.functional.binary_cross_entropy_with_logits(
        found.display[:, 2], truth.display[:, 2], weight=play
    )
    kind = nn.functional.cross_entropy(found.kinds, truth.kinds)
    return middle + place + 4 * bars + notice + kind


def train(steps: int, seed: int) -> Detector:
    """A trained network."""
    torch.manual_seed(seed)
    scenes = min(SCENES, steps * BATCH)
    pictures, truths = draw_pictures(scenes, seed)
    wanted, colours = targets(truths), (PALETTE.T / 255).astype(np.float32)
    network = Detector()
    optimizer = torch.optim.Adam(network.parameters(), RATE, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps + 1)
    chance = np.random.default_rng(seed)
    for _ in range(steps):
        drawn = chance.integers(0, scenes, BATCH)
        batch = torch.from_numpy(np.stack([colour.take(pictures[drawn]) for colour in colours], axis=1))
        optimizer.zero_grad()
        loss(network(batch), RawOutputs(*(part[drawn] for part in wanted))).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


@torch.inference_mode()
def judge(network: Detector, seed: int) -> float:
    """The share of pictures that it never saw on which it is right."""
    pictures, truths = draw_pictures(CHECKED, seed + 10**6)
    found = network(as_input(torch.from_numpy(PALETTE[pictures])))
    views = [read(*(part.numpy() for part in parts)) for parts in zip(*found, strict=True)]
    met = [truth.is_met(view.kind, view.target) for view, truth in zip(views, truths, strict=True)]
    return sum(met) / CHECKED


def main() -> None:
    """Train, judge, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of scenes, of weights and of their order")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="updates of the network")
    parser.add_argument("--weights", type=Path, help="the file to write; else one in the cache folder")
    args = parser.parse_args()
    if args.seed < 0 or args.steps < 1:
        parser.error("--seed must be at least 0 and --steps at least 1")
    # Bits must not depend on how many processors there are.
    torch.set_num_threads(1)
    began = time.perf_counter()
    network = train(args.steps, args.seed)
    path = args.weights or weights_path(args.steps, args.seed)
    store(network.state_dict(), path)
    print(
        f"detector: {args.steps} updates in {time.perf_counter() - began:.0f} s, right about "
        f"{judge(network, args.seed):.1%} of {CHECKED} new pictures; {path}"
    )


if __name__ == "__main__":
    main()
