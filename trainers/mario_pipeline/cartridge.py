"""Our side-scroller's cartridge: the level, drawn from a fixed seed, the program, and its pictures."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from benchmark_support.nes.assembler import Symbols, assemble
from benchmark_support.nes.cartridge import build_cartridge, draw_disc, encode_figure, encode_tile

PROGRAM = Path(__file__).parent / "program" / "side_scroller.asm"

COLUMNS = 256
"""Columns of the level, 16 pixels each; it begins anew behind the last one."""

STRETCH = 32
"""Columns from one possible start to the next."""

NOTHING = 255
BOTTOM = 240
"""The row of pixels below the picture."""

GROUND = range(0x10, 0x14)
GRASS, SHELF = 0x20, 0x21


class Level:
    """Of each column: the row of pixels where ground and shelf begin, and whether a walker stands there."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.tops: list[int] = []
        self.shelves: list[int] = []
        self.walkers: list[int] = []
        while len(self.tops) < COLUMNS:
            self._add_stretch()

    def _add(self, blocks: int, number: int = 1, shelf: int = 0) -> None:
        """Columns of ground so many blocks high; none is a pit."""
        self.tops += [BOTTOM - 16 * blocks if blocks else NOTHING] * number
        self.shelves += [BOTTOM - 16 * shelf if shelf else NOTHING] * number
        self.walkers += [0] * number

    def _add_stretch(self) -> None:
        """Level ground to begin on, then pits, steps, shelves and walkers in turn by chance."""
        end = len(self.tops) + STRETCH
        self._add(3, 6)
        blocks = 3
        while len(self.tops) < end - 4:
            kind = self.chance.choice(("pit", "step", "shelf", "walker", "walker"))
            if kind == "pit":
                self._add(0, self.chance.choice((2, 3)))
            elif kind == "step":
                blocks = self.chance.choice([other for other in range(2, 6) if 0 < abs(other - blocks) <= 2])
            elif kind == "shelf":
                self._add(blocks, 3, shelf=blocks + 3)
            else:
                self._add(blocks, 3)
                self.walkers[-1] = 1
            self._add(blocks, 2)
        self._add(3, max(0, end - len(self.tops)))
        del self.tops[end:], self.shelves[end:], self.walkers[end:]

    def source(self) -> str:
        """The level as tables of the program."""
        tables = {"tops": self.tops, "shelves": self.shelves, "walkers": self.walkers}
        lines = []
        for name, values in tables.items():
            lines.append(f"{name}:")
            rows = (values[at : at + 16] for at in range(0, COLUMNS, 16))
            lines += [".byte " + ",".join(map(str, row)) for row in rows]
        return "\n".join(lines)


@cache
def program() -> tuple[bytes, Symbols]:
    """The program's bytes and its symbols."""
    return assemble(PROGRAM.read_text().replace("\nLEVEL\n", f"\n{Level(1).source()}\n"))


def cartridge() -> bytes:
    """The whole file, as an emulator reads it."""
    chance = random.Random(1)
    tiles = {code: encode_tile([chance.randrange(256) | 0x11 for _ in range(8)], 1) for code in GROUND}
    tiles[GRASS] = encode_tile([0xFF] * 8, 2)
    tiles[SHELF] = encode_tile([0xFF, 0x81, 0x81, 0xFF] * 2, 3)
    sprites = encode_figure(draw_disc(6, 7), 2) + encode_figure(draw_disc(7, 5), 1)
    # 8 x 16 sprites with odd numbers begin at the second tile of the second half.
    return build_cartridge(program()[0], tiles, sprites, side_by_side=True)
