"""How pictures travel from the agent to the vision service, and back into arrays there.

`png`: each as a file in base64 inside of JSON; `rgb`: red, green and blue as they are; `palette`: one byte a
pixel; `packed`: the same, compressed as fast as zlib can.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from palette import COLUMNS, PALETTE, ROWS, Screen

SIGNATURE = b"\x89PNG\r\n\x1a\n"

HEADER = struct.pack(">IIBBBBB", COLUMNS, ROWS, 8, 2, 0, 0, 0)
"""Of a PNG: width, height, eight bits for each of three colours, nothing unusual."""


def chunk(kind: bytes, content: bytes) -> bytes:
    """A part of a PNG, with its checksum."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def as_png(picture: NDArray[np.uint8]) -> bytes:
    """A picture of ROWS x COLUMNS x 3 as a file."""
    # Each row opens with the number of its filter: none.
    rows = np.zeros((ROWS, 1 + COLUMNS * 3), dtype=np.uint8)
    rows[:, 1:] = picture.reshape(ROWS, -1)
    packed = zlib.compress(rows.tobytes())
    return SIGNATURE + chunk(b"IHDR", HEADER) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def from_png(content: bytes) -> NDArray[np.uint8]:
    """The picture of a file that as_png made."""
    at, packed = len(SIGNATURE), b""
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        if content[at + 4 : at + 8] == b"IDAT":
            packed += content[at + 8 : at + 8 + length]
        at += length + 12
    rows = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(ROWS, 1 + COLUMNS * 3)
    return rows[:, 1:].reshape(ROWS, COLUMNS, 3)


def encode(screens: Sequence[Screen], transfer: str) -> bytes:
    """The body of a request about these screens."""
    if transfer in ("palette", "packed"):
        content = b"".join(screen.tobytes() for screen in screens)
        return zlib.compress(content, 1) if transfer == "packed" else content
    if transfer == "rgb":
        return b"".join(PALETTE[screen].tobytes() for screen in screens)
    files = [base64.b64encode(as_png(PALETTE[screen])).decode() for screen in screens]
    return json.dumps({"pictures": [{"format": "png", "content": file} for file in files]}).encode()


def decode(body: bytes, transfer: str) -> NDArray[np.uint8]:
    """The pictures of a request, n x ROWS x COLUMNS x 3; raises ValueError for any other body."""
    if transfer == "packed":
        try:
            body = zlib.decompress(body)
        except zlib.error as error:
            raise ValueError(f"a body that is not packed: {error}") from error
    if transfer in ("palette", "packed"):
        return PALETTE[np.frombuffer(body, dtype=np.uint8).reshape(-1, ROWS, COLUMNS)]
    if transfer == "rgb":
        return np.frombuffer(body, dtype=np.uint8).reshape(-1, ROWS, COLUMNS, 3)
    files = [base64.b64decode(picture["content"]) for picture in json.loads(body)["pictures"]]
    return np.stack([from_png(file) for file in files])
