"""Draws scenes: a ray caster of textured walls in numpy, enemies as sprites, and what screens.py adds.

Each column of the picture is one ray through the map's grid, as in "Ray-Casting Tutorial" (F. Permadi, 1996).
All rays are followed at once: crossings with vertical and with horizontal lines of the grid are two tables.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from palette import COLUMNS, ROWS, SHADES, Screen
from scenes import GRIDS, HEADINGS, Scene, Truth, angle
from screens import draw_display, draw_screen
from textures import LEVELS, SIDE, SPRITE_COLUMNS, SPRITE_ROWS, darken, sprites, wall_textures

VIEW = math.tan(math.radians(33))
"""Half of the picture's width, one unit away: the view is 66 degrees wide."""

WALL = 100.0
"""Rows of a wall that is one unit away."""

FIGURE = 0.72
"""An enemy's height, in heights of a wall."""

TALLEST = 4 * ROWS

HIDDEN = 0.6
"""Share of an enemy that a wall may hide, for it to be seen."""

LINES = np.arange(16)

GROUND = ((9, 14), (6, 2), (2, 15))
"""Hues of the ceiling and of the floor, for each map."""


def rays() -> NDArray[np.float64]:
    """For each heading and column the ray's direction, one unit ahead: headings x columns x 2."""
    aside = np.linspace(-VIEW, VIEW, COLUMNS)
    directions = np.array([angle(heading) for heading in range(HEADINGS)])[:, None]
    ahead, across = np.cos(directions), np.sin(directions)
    found = np.stack([ahead - across * aside, across + ahead * aside], axis=-1)
    # Along a line of the grid a ray would never cross it.
    return np.where(abs(found) < 1e-9, 1e-9, found)


def row_tables() -> NDArray[np.int32]:
    """For walls of each height in rows: what a column of the atlas holds for each row of the picture.

    The first SIDE entries are the wall's, the others the ceiling's and the floor's, one for each row.
    """
    row, height = np.arange(ROWS) + 0.5, np.arange(1, TALLEST + 1)[:, None]
    along = (row - (ROWS - height) / 2) / height
    on_wall = (along >= 0) & (along < 1)
    return np.where(on_wall, (along * SIDE).astype(np.int32), SIDE + np.arange(ROWS)).astype(np.int32)


def atlas() -> NDArray[np.uint8]:
    """Columns of walls: maps x levels of darkness x textures x SIDE columns x (SIDE + ROWS)."""
    walls, height = wall_textures(), abs(np.arange(ROWS) - ROWS / 2) / (ROWS / 2)
    found = np.empty((len(GRIDS), LEVELS, len(walls), SIDE, SIDE + ROWS), dtype=np.uint8)
    for number, (ceiling, floor) in enumerate(GROUND):
        ground = np.where(np.arange(ROWS) < ROWS / 2, ceiling, floor) * SHADES + 2 + (height * 6).astype(int)
        found[number, ..., SIDE:] = ground
    for level in range(LEVELS):
        found[:, level, :, :, :SIDE] = darken(walls, level)
    return found


def grain() -> NDArray[np.uint8]:
    """Noise as of a camera: one pixel in four is a shade darker, which as a byte is 255."""
    drawn = np.random.default_rng(6).random(ROWS * COLUMNS + GRAINS * 251) < 0.25
    return np.where(drawn, 255, 0).astype(np.uint8)


GRAINS = 64
"""Patterns of the noise."""

RAYS, TABLES, ATLAS = rays(), row_tables(), atlas().reshape(-1)
TEXTURES, GRAIN = 6, grain()
FIGURES, SHAPE = sprites()
DARKER = np.stack([darken(FIGURES, level) for level in range(LEVELS)])


def cast(
    grid: NDArray[np.int64], place: tuple[float, float], heading: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Of each column: the distance to its wall, the texture, where on the wall, and which way that faces."""
    x, y = place
    ahead, across = RAYS[heading].T[:, :, None]
    column, row = int(x), int(y)
    # How far each crossing is, and the cell behind it.
    columns = np.where(ahead > 0, column + 1 + LINES, column - 1 - LINES)
    rows = np.where(across > 0, row + 1 + LINES, row - 1 - LINES)
    far_x = (columns + (ahead < 0) - x) / ahead
    far_y = (rows + (across < 0) - y) / across
    cells_x = grid.take(
        (y + far_x * across).astype(np.int64).clip(0, len(grid) - 1) * grid.shape[1]
        + columns.clip(0, grid.shape[1] - 1)
    )
    cells_y = grid.take(
        rows.clip(0, len(grid) - 1) * grid.shape[1]
        + (x + far_y * ahead).astype(np.int64).clip(0, grid.shape[1] - 1)
    )
    every = np.arange(COLUMNS)
    first_x, first_y = (cells_x > 0).argmax(1), (cells_y > 0).argmax(1)
    reach_x, reach_y = far_x[every, first_x], far_y[every, first_y]
    is_x = reach_x < reach_y
    reach = np.where(is_x, reach_x, reach_y)
    texture = np.where(is_x, cells_x[every, first_x], cells_y[every, first_y]) - 1
    along = np.where(is_x, y + reach * across[:, 0], x + reach * ahead[:, 0])
    return reach, texture, along % 1, is_x


def draw_walls(scene: Scene) -> tuple[Screen, NDArray[np.float64]]:
    """The picture without enemies, and each column's distance."""
    reach, texture, along, is_x = cast(GRIDS[scene.number], scene.place, scene.heading)
    level = np.minimum((reach * 0.7).astype(np.int64) + is_x, LEVELS - 1)
    part = (along * SIDE).astype(np.int64)
    start = (((scene.number * LEVELS + level) * TEXTURES + texture) * SIDE + part) * (SIDE + ROWS)
    heights = np.minimum((WALL / reach).astype(np.int64), TALLEST).clip(1) - 1
    picture = ATLAS.take(start[:, None] + TABLES.take(heights, axis=0))
    return np.ascontiguousarray(picture.T), reach


def draw_enemies(scene: Scene, picture: Screen, reach: NDArray[np.float64]) -> tuple[float, ...] | None:
    """Draw the enemies, the farthest first; return middle and height of the nearest one that can be seen."""
    target = None
    for enemy in sorted(scene.enemies, key=lambda enemy: -enemy.distance):
        aside = enemy.direction - angle(scene.heading)
        ahead = enemy.distance * math.cos(aside)
        if ahead < 0.5:
            continue
        middle = COLUMNS / 2 * (1 + math.tan(aside) / VIEW)
        wall = WALL / ahead
        height, width = int(wall * FIGURE), max(2, int(wall * FIGURE * SPRITE_COLUMNS / SPRITE_ROWS))
        top, left = int(ROWS / 2 + wall / 2 - height), int(middle - width / 2)
        rows = slice(max(0, top), min(ROWS, top + height))
        columns = slice(max(0, left), min(COLUMNS, left + width))
        if columns.stop <= columns.start:
            continue
        free = reach[columns] > ahead
        if free.sum() < (1 - HIDDEN) * width:
            continue
        down = ((np.arange(rows.start, rows.stop) - top) * SPRITE_ROWS // height)[:, None]
        over = ((np.arange(columns.start, columns.stop) - left) * SPRITE_COLUMNS // width)[None]
        level = min(int(ahead * 0.7), LEVELS - 1)
        patch = picture[rows, columns]
        np.copyto(patch, DARKER[level, enemy.outfit][down, over], where=SHAPE[down, over] & free)
        target = (middle, top + height / 2, float(height))
    return target


def draw(scene: Scene) -> tuple[Screen, Truth]:
    """A scene's picture, and what there is to see on it."""
    if scene.kind != "play":
        return draw_screen(scene), Truth(scene.kind, None, 0.0, 0.0, False)
    picture, reach = draw_walls(scene)
    target = draw_enemies(scene, picture, reach)
    # No shade that is drawn until here is its hue's darkest.
    start = scene.step * 37 % GRAINS * 251
    picture += GRAIN[start : start + picture.size].reshape(picture.shape)
    draw_display(scene, picture)
    return picture, Truth("play", target, scene.health, scene.ammo, scene.killed)
