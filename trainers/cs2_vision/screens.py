"""What is drawn without rays: the display over the view in play, and the screens without play."""

from __future__ import annotations

import numpy as np
from palette import (
    BLUE,
    COLUMNS,
    CYAN,
    GREEN,
    GREY,
    NAVY,
    ORANGE,
    RED,
    ROWS,
    SLATE,
    STONE,
    YELLOW,
    Screen,
    shade,
)
from scenes import Scene
from textures import number

WHITE, BLACK = shade(GREY, 1), shade(GREY, 0)

BAR = 40
"""Columns of a full bar."""

SCALE = 2
"""Pixels of a block of a digit."""


def write(picture: Screen, value: int, places: int, row: int, column: int, code: int) -> None:
    """Write a number; its upper left corner is at (row, column)."""
    blocks = number(value, places).repeat(SCALE, 0).repeat(SCALE, 1)
    picture[row : row + blocks.shape[0], column : column + blocks.shape[1]][blocks] = code


def draw_display(scene: Scene, picture: Screen) -> None:
    """Weapon, crosshair, bars of health and ammunition, clock, and the notice of a hit."""
    bob = (0, 1, 1, 0)[scene.step % 4]
    picture[92 + bob :, 84:96] = shade(STONE, 0.35)
    picture[92 + bob : 96 + bob, 86:94] = shade(STONE, 0.6)
    if scene.fired:
        picture[84 + bob : 92 + bob, 84:96] = shade(YELLOW, 0.95)
    picture[60, 76:85], picture[56:65, 80] = shade(GREEN, 1), shade(GREEN, 1)
    for share, hue, left in ((scene.health, RED, 6), (scene.ammo, CYAN, 114)):
        picture[109:116, left - 2 : left + BAR + 2] = BLACK
        picture[110:115, left : left + round(share * BAR)] = shade(hue, 0.9)
    picture[2:14, 68:92] = BLACK
    write(picture, 999 - scene.step % 1000, 3, 3, 69, WHITE)
    if scene.killed:
        picture[4:14, 112:156] = shade(RED, 0.5)
        picture[7:11, 116:130], picture[7:11, 138:152] = WHITE, shade(YELLOW, 1)


def lines(picture: Screen, rows: range, left: int, right: int, seed: int, code: int) -> None:
    """Rows of text that nobody can read: words as bars."""
    for row in rows:
        words = np.sin(np.arange(left, right) * (0.7 + 0.13 * ((row + seed) % 5))) > -0.6
        picture[row : row + 3, left:right][:, words] = code


def draw_screen(scene: Scene) -> Screen:
    """A screen without play."""
    picture = np.empty((ROWS, COLUMNS), dtype=np.uint8)
    {"menu": _menu, "loading": _loading, "buy": _buy, "score": _score}[scene.kind](scene, picture)
    return picture


def _menu(scene: Scene, picture: Screen) -> None:
    picture[:] = (NAVY * 16 + 4 + np.arange(ROWS) // 20)[:, None]
    picture[14:30, 20:140] = shade(ORANGE, 0.8)
    for at in range(5):
        row = 40 + 14 * at
        chosen = scene.number == at
        picture[row : row + 10, 44:116] = shade(BLUE, 0.9) if chosen else shade(SLATE, 0.5)
        lines(picture, range(row + 3, row + 4), 50, 110, at, WHITE)


def _loading(scene: Scene, picture: Screen) -> None:
    picture[:] = shade(NAVY, 0.2)
    picture[20:80, 30:130] = shade((STONE, SLATE, ORANGE)[scene.number], 0.5)
    lines(picture, range(86, 98, 6), 30, 130, scene.number, shade(GREY, 0.6))
    picture[104:110, 20:140] = shade(GREY, 0.2)
    picture[104:110, 20 : 20 + 15 * (scene.step % 8 + 1)] = shade(GREEN, 0.9)


def _buy(scene: Scene, picture: Screen) -> None:
    picture[:] = shade(SLATE, 0.25)
    for at in range(12):
        row, column = 24 + 30 * (at // 4), 8 + 38 * (at % 4)
        picture[row : row + 26, column : column + 34] = shade(
            STONE, 0.4 + 0.02 * ((at * 7 + scene.number) % 9)
        )
        picture[row + 8 : row + 14, column + 4 : column + 10 + (at * 5) % 22] = shade(GREY, 0.15)
    write(picture, 800 + 250 * round(scene.health * 8), 4, 6, 8, shade(GREEN, 0.9))


def _score(scene: Scene, picture: Screen) -> None:
    picture[:] = shade(GREY, 0.12)
    picture[10:22, 20:140] = shade(RED, 0.6)
    for at in range(8):
        row, hue = 28 + 11 * at, BLUE if at < 4 else ORANGE
        picture[row : row + 9, 20:140] = shade(hue, 0.35)
        lines(picture, range(row + 3, row + 4), 26, 80 + 6 * ((at + scene.number) % 5), at, WHITE)
        picture[row + 3 : row + 6, 110 : 112 + 3 * ((at * 3 + scene.number) % 8)] = WHITE
