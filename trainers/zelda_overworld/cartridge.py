"""The cartridge: the assembled program, its pictures, and the header that an emulator wants."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from assembler import Symbols, assemble

SOURCES = sorted((Path(__file__).parent / "program").glob("*.asm"))

PROGRAM_BYTES = 16 * 1024
PICTURE_BYTES = 8 * 1024
HEADER = b"NES\x1a\x01\x01\x00\x00" + bytes(8)
"""One bank of program, one of pictures, no mapper."""

GROUND = range(0x10, 0x40)
ROCK = range(0x80, 0x88)
STAIRS = 0x0E
HEART = 0x0F

LETTERS = {
    "A": "708888F8888888",
    "D": "F08888888888F0",
    "E": "F88080F08080F8",
    "L": "808080808080F8",
    "M": "88D8A8A8888888",
    "N": "88C8A898888888",
    "O": "70888888888870",
    "R": "F08888F0A09088",
    "S": "788080700808F0",
    "T": "F8202020202020",
    "U": "88888888888870",
    "V": "88888888885020",
    "W": "888888A8A8D888",
}
"""Seven rows of eight pixels each, in hexadecimal digits."""


@cache
def program() -> tuple[bytes, Symbols]:
    """The program's bytes and its symbols; the world's noise is drawn from a fixed seed."""
    chance = random.Random(2)
    noise = [chance.randrange(256) for _ in range(256)]
    rows = [".byte " + ",".join(map(str, noise[at : at + 16])) for at in range(0, 256, 16)]
    source = "\n".join(path.read_text() for path in SOURCES)
    return assemble(source.replace("\nNOISE\n", "\n" + "\n".join(rows) + "\n"))


def _tile(rows: list[int], shade: int) -> bytes:
    """Eight rows of eight pixels in one of three shades."""
    return bytes(row if shade & 1 else 0 for row in rows) + bytes(row if shade & 2 else 0 for row in rows)


def _backgrounds() -> dict[int, bytes]:
    chance = random.Random(1)
    tiles = {code: _tile([chance.randrange(256) & 0x22 for _ in range(8)], 1) for code in GROUND}
    for code in ROCK:
        tiles[code] = _tile([0xFF] * 8, 2)[:8] + bytes([chance.randrange(256) for _ in range(7)] + [0xFF])
    tiles[STAIRS] = _tile([0xFF, 0x01, 0xFF, 0x03, 0xFF, 0x07, 0xFF, 0x0F], 3)
    tiles[HEART] = _tile([0x6C, 0xFE, 0xFE, 0x7C, 0x38, 0x10, 0, 0], 3)
    for letter, rows in LETTERS.items():
        tiles[ord(letter)] = _tile([*bytes.fromhex(rows), 0], 3)
    return tiles


def _disc(across: int, down: int) -> list[list[int]]:
    """A filled ellipse in 16 x 16 pixels."""
    return [
        [int(((x - 7.5) / across) ** 2 + ((y - 7.5) / down) ** 2 <= 1) for x in range(16)] for y in range(16)
    ]


def _figure(pixels: list[list[int]], shade: int) -> bytes:
    """16 x 16 pixels as two sprites of 8 x 16."""
    halves = [[int("".join(map(str, row[at : at + 8])), 2) for row in pixels] for at in (0, 8)]
    return b"".join(_tile(half[:8], shade) + _tile(half[8:], shade) for half in halves)


def _sprites() -> bytes:
    """Player in four headings, four kinds of enemies, the sword, and the thing."""
    figures = []
    for heading in range(4):
        pixels = _disc(6, 7)
        row, column = ((2, 7), (12, 7), (7, 2), (7, 12))[heading]
        pixels[row][column] = pixels[row][column + 1] = 0
        figures.append(_figure(pixels, 1))
    figures += [_figure(_disc(3 + kind, 8 - kind), 1 + kind % 3) for kind in range(4)]
    blade = [[int(4 <= x < 7 and 2 <= y < 14) for x in range(16)] for y in range(16)]
    return b"".join([*figures, _figure(blade, 3), _figure(_disc(5, 5), 2)])


def cartridge() -> bytes:
    """The whole file, as an emulator reads it."""
    code, _ = program()
    tiles = _backgrounds()
    pictures = b"".join(tiles.get(code, bytes(16)) for code in range(256)) + _sprites()
    return HEADER + code.rjust(PROGRAM_BYTES, b"\0") + pictures.ljust(PICTURE_BYTES, b"\0")
