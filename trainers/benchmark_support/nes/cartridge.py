"""A cartridge: assembled program, pictures of 8 x 8 pixels, and the header that an emulator wants."""

from __future__ import annotations

from collections.abc import Mapping

PROGRAM_BYTES = 16 * 1024
PICTURE_BYTES = 8 * 1024
TILE_BYTES = 16

SIDE_BY_SIDE = 1
"""Flag of the header: the two screens of background lie side by side, for a game that scrolls sideways."""

Pixels = list[list[int]]


def encode_tile(rows: list[int], shade: int) -> bytes:
    """Eight rows of eight pixels, each row a byte, in one of three shades."""
    return bytes(row if shade & 1 else 0 for row in rows) + bytes(row if shade & 2 else 0 for row in rows)


def draw_disc(across: int, down: int) -> Pixels:
    """A filled ellipse in 16 x 16 pixels."""
    return [
        [int(((x - 7.5) / across) ** 2 + ((y - 7.5) / down) ** 2 <= 1) for x in range(16)] for y in range(16)
    ]


def encode_figure(pixels: Pixels, shade: int) -> bytes:
    """16 x 16 pixels as two sprites of 8 x 16."""
    halves = [[int("".join(map(str, row[at : at + 8])), 2) for row in pixels] for at in (0, 8)]
    return b"".join(encode_tile(half[:8], shade) + encode_tile(half[8:], shade) for half in halves)


def build_cartridge(
    code: bytes, backgrounds: Mapping[int, bytes], sprites: bytes, *, side_by_side: bool = False
) -> bytes:
    """The whole file, as an emulator reads it: one bank of program, one of pictures, no mapper.

    `code` ends at the console's last address; `backgrounds` has the tile of each code, `sprites` follow them.
    """
    header = b"NES\x1a\x01\x01" + bytes([SIDE_BY_SIDE if side_by_side else 0]) + bytes(9)
    pictures = b"".join(backgrounds.get(at, bytes(TILE_BYTES)) for at in range(256)) + sprites
    return header + code.rjust(PROGRAM_BYTES, b"\0") + pictures.ljust(PICTURE_BYTES, b"\0")
