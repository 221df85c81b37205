"""What the vision service runs: a small convolutional network that finds what is on a picture.

It knows nothing but what train_detector.py taught it. A grid of cells says where an enemy's middle is, as in
"Objects as Points" (Zhou et al., 2019); a second branch reads the kind of screen and the display.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from palette import COLUMNS, ROWS
from scenes import KINDS
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

CELL = 8
"""Pixels of a cell of the grid, in each direction."""

GRID_ROWS, GRID_COLUMNS = ROWS // CELL, COLUMNS // CELL

TALL = 32.0
"""Pixels of an enemy's height that the network calls 1."""

SURE = 0.5
"""Confidence from which on there is an enemy."""


class RawOutputs(NamedTuple):
    """What the network makes of some pictures, a row for each: raw values, before any threshold."""

    cells: torch.Tensor
    """n x 4 x GRID_ROWS x GRID_COLUMNS: logit of the enemy's middle, its x and y in the cell, its height."""
    kinds: torch.Tensor
    """n x len(KINDS) logits."""
    display: torch.Tensor
    """n x 3: health, ammunition, logit of the notice of a hit."""


class View(NamedTuple):
    """A picture: kind of screen, the enemy's middle and height in pixels or None, how sure, the display."""

    kind: str
    target: tuple[int, int, int] | None
    confidence: float
    health: int
    ammo: int
    killed: bool


def layer(channels: int, features: int, size: int, stride: int, padding: int) -> list[nn.Module]:
    """A convolution, normalized and cut off below 0."""
    convolution = nn.Conv2d(channels, features, size, stride, padding, bias=False)
    return [convolution, nn.BatchNorm2d(features), nn.ReLU()]


class Detector(nn.Module):
    """Convolutions only: each picture is computed alone, in whatever batch it comes."""

    def __init__(self) -> None:
        super().__init__()
        trunk = [*layer(3, 24, 6, 4, 1), *layer(24, 40, 3, 2, 1), *layer(40, 40, 3, 1, 1)]
        self.trunk = nn.Sequential(*trunk)
        self.cells = nn.Sequential(*layer(40, 40, 3, 1, 1), nn.Conv2d(40, 4, 1))
        whole = (GRID_ROWS, GRID_COLUMNS)
        self.rest = nn.Sequential(
            nn.Conv2d(40, 16, 1),
            nn.ReLU(),
            nn.Conv2d(16, 64, whole),
            nn.ReLU(),
            nn.Conv2d(64, len(KINDS) + 3, 1),
        )

    def forward(self, pictures: torch.Tensor) -> RawOutputs:
        """From pictures, n x 3 x ROWS x COLUMNS, from 0 to 1."""
        features = self.trunk(pictures)
        rest = self.rest(features).flatten(1)
        return RawOutputs(self.cells(features), rest[:, : len(KINDS)], rest[:, len(KINDS) :])


def fold_normalization(detector: Detector) -> None:
    """Put what was learned about means and deviations into the convolutions before it: the same, faster."""
    for part in (detector.trunk, detector.cells):
        modules = list(part)
        for at, module in enumerate(modules):
            if isinstance(module, nn.BatchNorm2d):
                part[at - 1] = fuse_conv_bn_eval(modules[at - 1], module)
                part[at] = nn.Identity()


def as_input(pictures: torch.Tensor) -> torch.Tensor:
    """Bytes, n x ROWS x COLUMNS x 3, as the network takes them."""
    return pictures.permute(0, 3, 1, 2).float() / 255


def with_nothing(logits: torch.Tensor) -> torch.Tensor:
    """The cells' logits, n x cells + 1: the last one, always 0, says that there is no enemy."""
    return nn.functional.pad(logits.flatten(1), (0, 1))


class Vision:
    """A trained network on its device."""

    def __init__(self, weights: dict[str, torch.Tensor], device: torch.device) -> None:
        self.device = device
        self.detector = Detector().eval()
        self.detector.load_state_dict(weights)
        fold_normalization(self.detector)
        self.detector.to(device)

    @torch.inference_mode()
    def look(self, pictures: NDArray[np.uint8]) -> list[View]:
        """What is on these pictures, n x ROWS x COLUMNS x 3."""
        batch = torch.from_numpy(np.array(pictures))
        if self.device.type == "cuda":
            batch = batch.pin_memory().to(self.device, non_blocking=True)
        found = self.detector(as_input(batch))
        cells, kinds, display = (part.cpu().numpy() for part in found)
        return [read(*parts) for parts in zip(cells, kinds, display, strict=True)]


def read(cells: NDArray[np.float32], kinds: NDArray[np.float32], display: NDArray[np.float32]) -> View:
    """One picture's view. Places are whole pixels, the display's bars steps of 5 %."""
    kind = KINDS[int(kinds.argmax())]
    if kind != KINDS[0]:
        return View(kind, None, 0.0, 0, 0, False)
    row, column = divmod(int(cells[0].argmax()), GRID_COLUMNS)
    logit, aside, down, tall = cells[:, row, column]
    sure = 1 / float(np.exp(-logit) + np.exp(cells[0] - logit).sum())
    target = None
    if sure >= SURE:
        target = (
            round((column + float(aside)) * CELL),
            round((row + float(down)) * CELL),
            round(tall * TALL),
        )
    health, ammo = (int(5 * round(20 * min(1.0, max(0.0, float(bar))))) for bar in display[:2])
    return View(kind, target, round(sure, 2), health, ammo, bool(display[2] > 0))
