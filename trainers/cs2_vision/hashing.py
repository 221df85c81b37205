"""How a cache knows a picture again: by all of its bytes, or by a perceptual hash, which near pictures share.

The perceptual hash is dHash, of N. Krawetz, "Kind of Like That" (2013): brightness in a few blocks, and of
each whether the one to the right of it is brighter. It knows nothing of what the pictures show or of what the
service looks for.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from palette import COLUMNS, PALETTE, ROWS

SIDE = 16
"""Rows of blocks, and comparisons in each."""

WORDS = SIDE * SIDE // 64
"""Numbers of 64 bits in a hash."""

ROW_BORDERS = np.arange(SIDE) * ROWS // SIDE
COLUMN_BORDERS = np.arange(SIDE + 1) * COLUMNS // (SIDE + 1)
"""Where blocks begin, which are as equal as whole pixels allow."""

BLOCK_SHARES = (1 / np.diff(COLUMN_BORDERS, append=COLUMNS)).astype(np.float32)
BLOCK_SHARES /= ROWS / SIDE
"""What makes sums of blocks means, roughly: blocks differ by a row."""

MARGIN = 1.0
"""Steps of brightness, of 255, that noise may make: on a plain wall it must not decide."""

BRIGHTNESS = (PALETTE @ np.array([0.299, 0.587, 0.114])).astype(np.float32)
"""Of each of the palette's colours: luma, as in ITU-R BT.601."""


class ExactLookup:
    """Knows a picture only by all of its bytes."""

    def __init__(self) -> None:
        self.places: dict[bytes, int] = {}

    def keys(self, screens: NDArray[np.uint8]) -> list[bytes]:
        """One key for each picture."""
        return [hashlib.blake2b(screen.tobytes(), digest_size=16).digest() for screen in screens]

    def find(self, key: bytes) -> int | None:
        """The place of the entry for this key."""
        return self.places.get(key)

    def put(self, key: bytes, place: int) -> None:
        self.places[key] = place

    def drop(self, key: bytes) -> None:
        del self.places[key]


def perceptual_hashes(screens: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Hashes of pictures, n x WORDS, from numbers of the palette, n x ROWS x COLUMNS."""
    light = BRIGHTNESS.take(screens)
    blocks = np.add.reduceat(np.add.reduceat(light, ROW_BORDERS, axis=1), COLUMN_BORDERS, axis=2)
    means = blocks * BLOCK_SHARES
    brighter = means[:, :, 1:] > means[:, :, :-1] + MARGIN
    return np.packbits(brighter.reshape(len(screens), -1), axis=1).view(np.uint64)


class PerceptualLookup:
    """Knows a picture by its perceptual hash; finds the entry with the fewest other bits."""

    def __init__(self, size: int, threshold: int) -> None:
        self.threshold = threshold
        self.hashes = np.zeros((size, WORDS), dtype=np.uint64)
        self.used = 0

    def keys(self, screens: NDArray[np.uint8]) -> list[Any]:
        """One hash for each picture."""
        return list(perceptual_hashes(screens))

    def find(self, key: NDArray[np.uint64]) -> int | None:
        """The place of the entry with the nearest hash, if at most `threshold` bits are others."""
        if not self.used:
            return None
        distances = np.bitwise_count(self.hashes[: self.used] ^ key).sum(axis=1)
        place = int(distances.argmin())
        return place if distances[place] <= self.threshold else None

    def put(self, key: NDArray[np.uint64], place: int) -> None:
        self.hashes[place] = key
        self.used = max(self.used, place + 1)

    def drop(self, key: NDArray[np.uint64]) -> None:
        """Nothing to do: its place is written anew."""
