"""What walls, enemies and digits look like: all of it formulas, no files of pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from palette import BRICK, GREY, MOSS, NAVY, OLIVE, ORANGE, RUST, SAND, SHADES, SLATE, STONE, VIOLET

SIDE = 32
"""Rows and columns of a wall's texture."""

SPRITE_ROWS, SPRITE_COLUMNS = 32, 16

LEVELS = 8
"""Steps by which distance darkens."""

Codes = NDArray[np.uint8]
"""Numbers of the palette."""

# One hue for clothes and one for the rest: two teams in three outfits each.
OUTFITS = ((RUST, SAND), (OLIVE, SAND), (ORANGE, STONE), (NAVY, GREY), (SLATE, SAND), (VIOLET, GREY))

GLYPHS = (
    "### #.# #.# #.# ###",
    ".#. .#. .#. .#. .#.",
    "### ..# ### #.. ###",
    "### ..# .## ..# ###",
    "#.# #.# ### ..# ..#",
    "### #.. ### ..# ###",
    "#.. #.. ### #.# ###",
    "### ..# ..# ..# ..#",
    "### #.# ### #.# ###",
    "### #.# ### ..# ..#",
)
DIGITS = np.array([[[block == "#" for block in row] for row in glyph.split()] for glyph in GLYPHS])


def darken(codes: Codes, level: int) -> Codes:
    """The same hues with `level` of LEVELS steps less light, though none of them black."""
    hue, light = codes // SHADES, codes % SHADES
    return (hue * SHADES + np.maximum(1, light * (LEVELS + 2 - level) // (LEVELS + 2))).astype(np.uint8)


def wall_textures() -> NDArray[np.uint8]:
    """Six walls, 6 x SIDE columns x SIDE rows: bricks, planks, plaster, crates, stones, metal."""
    column, row = np.mgrid[:SIDE, :SIDE]
    grain = np.random.default_rng(5).integers(0, 3, (6, SIDE, SIDE))
    shifted = column + 8 * (row // 8 % 2)
    bricks = np.where((row % 8 == 0) | (shifted % 16 == 0), 5, 12)
    planks = np.where(column % 8 == 0, 4, 10 + column // 8 % 3)
    plaster = np.where(row > 24, 7, 13)
    edge = np.minimum(np.minimum(row, SIDE - 1 - row), np.minimum(column, SIDE - 1 - column))
    crates = np.where((edge < 4) | (abs(column - row) < 3), 8, 13)
    stones = np.where((row % 16 < 2) | ((column + 11 * (row // 16)) % 16 < 2), 4, 10)
    metal = 8 + 4 * (np.sin(column * np.pi / 4) > 0)
    looks = (
        (BRICK, bricks),
        (MOSS, planks),
        (SAND, plaster),
        (ORANGE, crates),
        (STONE, stones),
        (SLATE, metal),
    )
    lights = [np.clip(light + grain[at], 0, SHADES - 1) for at, (_, light) in enumerate(looks)]
    return np.stack([hue * SHADES + light for (hue, _), light in zip(looks, lights, strict=True)]).astype(
        np.uint8
    )


def sprites() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Enemies from the front, outfits x rows x columns, and which pixels belong to the figure."""
    row, column = np.mgrid[:SPRITE_ROWS, :SPRITE_COLUMNS]
    aside = abs(column - (SPRITE_COLUMNS - 1) / 2)
    head = (row - 3.5) ** 2 / 12 + aside**2 / 9 <= 1
    body = (row >= 7) & (row < 19) & (aside <= 6.5 - (row - 7) * 0.15)
    legs = (row >= 19) & (aside <= 5.5) & (aside >= 0.8)
    gun = (row >= 11) & (row < 14) & (column >= 2) & (column < 13)
    shape = head | body | legs
    light = 14 - (aside / 2).astype(int) - (row > 18) * 2
    looks = []
    for clothes, rest in OUTFITS:
        look = np.where(head, rest, clothes) * SHADES + light
        looks.append(np.where(gun, GREY * SHADES + 3, look))
    return np.stack(looks).astype(np.uint8), shape


def number(value: int, places: int) -> NDArray[np.bool_]:
    """A number as blocks, 5 rows, 4 columns for each place."""
    picture = np.zeros((5, 4 * places), dtype=bool)
    for place in range(places):
        picture[:, 4 * (places - 1 - place) : 4 * (places - 1 - place) + 3] = DIGITS[value // 10**place % 10]
    return picture
