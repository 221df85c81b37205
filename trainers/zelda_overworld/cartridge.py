"""The cartridge: the assembled program and its pictures."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from benchmark_support.nes.assembler import Symbols, assemble
from benchmark_support.nes.cartridge import build_cartridge, draw_disc, encode_figure, encode_tile

SOURCES = sorted((Path(__file__).parent / "program").glob("*.asm"))

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


def _backgrounds() -> dict[int, bytes]:
    chance = random.Random(1)
    tiles = {code: encode_tile([chance.randrange(256) & 0x22 for _ in range(8)], 1) for code in GROUND}
    for code in ROCK:
        tiles[code] = encode_tile([0xFF] * 8, 2)[:8] + bytes(
            [chance.randrange(256) for _ in range(7)] + [0xFF]
        )
    tiles[STAIRS] = encode_tile([0xFF, 0x01, 0xFF, 0x03, 0xFF, 0x07, 0xFF, 0x0F], 3)
    tiles[HEART] = encode_tile([0x6C, 0xFE, 0xFE, 0x7C, 0x38, 0x10, 0, 0], 3)
    for letter, rows in LETTERS.items():
        tiles[ord(letter)] = encode_tile([*bytes.fromhex(rows), 0], 3)
    return tiles


def _sprites() -> bytes:
    """Player in four headings, four kinds of enemies, the sword, and the thing."""
    figures = []
    for heading in range(4):
        pixels = draw_disc(6, 7)
        row, column = ((2, 7), (12, 7), (7, 2), (7, 12))[heading]
        pixels[row][column] = pixels[row][column + 1] = 0
        figures.append(encode_figure(pixels, 1))
    figures += [encode_figure(draw_disc(3 + kind, 8 - kind), 1 + kind % 3) for kind in range(4)]
    blade = [[int(4 <= x < 7 and 2 <= y < 14) for x in range(16)] for y in range(16)]
    return b"".join([*figures, encode_figure(blade, 3), encode_figure(draw_disc(5, 5), 2)])


def cartridge() -> bytes:
    """The whole file, as an emulator reads it."""
    return build_cartridge(program()[0], _backgrounds(), _sprites())
