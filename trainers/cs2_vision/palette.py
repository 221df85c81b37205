"""Pictures of the games: their size, and the 256 colours that they are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROWS, COLUMNS = 120, 160

SHADES = 16
"""Steps of light in each hue."""

Screen = NDArray[np.uint8]
"""A picture, ROWS x COLUMNS, each pixel a number of the palette: hue x SHADES + shade, the brightest last."""

HUES = (
    (255, 255, 255),
    (214, 176, 122),
    (168, 108, 70),
    (196, 84, 62),
    (120, 146, 92),
    (88, 122, 150),
    (142, 132, 120),
    (232, 206, 96),
    (226, 58, 48),
    (64, 196, 92),
    (72, 132, 232),
    (232, 140, 48),
    (150, 92, 190),
    (92, 206, 204),
    (110, 110, 70),
    (70, 78, 104),
)
"""The brightest colour of each hue."""

(GREY, SAND, BRICK, RUST, MOSS, SLATE, STONE, YELLOW, RED, GREEN, BLUE, ORANGE, VIOLET, CYAN, OLIVE, NAVY) = (
    range(16)
)


def colours() -> NDArray[np.uint8]:
    """The palette as a table, 256 x 3; no two colours are equal."""
    light = np.linspace(0.06, 1, SHADES)[None, :, None]
    return np.rint(np.array(HUES)[:, None] * light).astype(np.uint8).reshape(-1, 3)


PALETTE = colours()


def shade(hue: int, light: float) -> int:
    """The palette's number of a hue in a light from 0 to 1."""
    return hue * SHADES + int(np.clip(round(light * (SHADES - 1)), 0, SHADES - 1))
