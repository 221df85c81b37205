"""Caches of the service's answers. Time is counted in steps of the training, so that hits repeat exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from answers import WHOLE
from arguments import Args
from games import COLUMNS
from numpy.typing import NDArray
from vision import DIGITS, FIELD

BLOCK = 8
"""Pixels between the middles of a fingerprint's blocks."""

Alike = Callable[[str, str], bool]
"""Whether two answers say the same, or nearly."""


class Exact:
    """Knows a picture, or some of its rows, only by all of their bytes."""

    def __init__(self, rows: slice = slice(None)) -> None:
        self.rows = rows
        self.places: dict[bytes, int] = {}

    def keys(self, screens: NDArray[np.uint8]) -> list[bytes]:
        """One key for each picture."""
        parts = screens[:, self.rows]
        return [hashlib.blake2b(part.tobytes(), digest_size=16).digest() for part in parts]

    def find(self, key: bytes) -> int | None:
        """The place of the entry for this key."""
        return self.places.get(key)

    def put(self, key: bytes, place: int) -> None:
        self.places[key] = place

    def drop(self, key: bytes) -> None:
        del self.places[key]


def hats(pixels: int) -> NDArray[np.float32]:
    """Weights of overlapping blocks: a pixel counts for the two blocks that it lies between."""
    middles = np.arange(BLOCK / 2 - 0.5, pixels, BLOCK)
    distances = np.abs(np.arange(pixels)[None] - middles[:, None])
    return np.maximum(0, 1 - distances / BLOCK).astype(np.float32)


class Nearest:
    """Knows a region by its fingerprint, how pixels of one colour are spread over blocks; finds the nearest.

    Two fingerprints of a thing of this many pixels are about as far from each other as it moved, in pixels.
    """

    def __init__(self, size: int, threshold: float, region: Region) -> None:
        self.threshold = threshold
        self.region = region
        self.rows, self.columns = hats(FIELD.stop - FIELD.start).T, hats(COLUMNS).T
        length = self.rows.shape[1] + (self.columns.shape[1] if region.is_wide else 0)
        # Nothing is near to what holds no entry.
        self.prints = np.full((size, length), 1e9, dtype=np.float32)
        self.used = 0

    def keys(self, screens: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
        """One fingerprint for each picture."""
        things = screens[:, FIELD, self.region.columns] == self.region.colour
        spread = things.sum(2, dtype=np.float32) @ self.rows
        if self.region.is_wide:
            spread = np.hstack([spread, things.sum(1, dtype=np.float32) @ self.columns])
        # What moves by a pixel takes an eighth of itself out of one block and puts it into another.
        return list(spread * np.float32(BLOCK / 2 / self.region.pixels))

    def find(self, key: NDArray[np.float32]) -> int | None:
        """The place of the entry with the nearest fingerprint, if that is near enough."""
        if not self.used:
            return None
        distances = np.abs(self.prints[: self.used] - key).sum(axis=1)
        place = int(distances.argmin())
        return place if distances[place] <= self.threshold else None

    def put(self, key: NDArray[np.float32], place: int) -> None:
        self.prints[place] = key
        self.used = max(self.used, place + 1)

    def drop(self, key: NDArray[np.float32]) -> None:
        """Nothing to do: its place is written anew."""


class Region(NamedTuple):
    """A part of the field with one thing in it: columns, the thing's number in the palette, its pixels."""

    columns: slice
    colour: int
    pixels: int
    is_wide: bool


REGIONS = {
    "opponent": Region(slice(16, 20), 56, 64, is_wide=False),
    "player": Region(slice(140, 144), 200, 64, is_wide=False),
    "ball": Region(slice(0, COLUMNS), 14, 8, is_wide=True),
}
"""What is looked for by a fingerprint of its own; the points are known by their exact digits."""


@dataclass
class Entry:
    """An answer and until when it counts; `hits` and `used` say how worthwhile it is."""

    key: Any
    text: str
    lifetime: int
    until: int
    used: int
    hits: int = 0


class LruCache:
    """Keeps the answers that were used last, each for a fixed number of steps."""

    def __init__(self, pictures: Exact | Nearest, size: int, timeout: int) -> None:
        self.pictures = pictures
        self.size = size
        self.timeout = timeout
        self.entries: list[Entry] = []
        self.clock = 0

    def keys(self, screens: NDArray[np.uint8]) -> list[Any]:
        """One key for each picture, for get() and put()."""
        return self.pictures.keys(screens)

    def get(self, key: Any, step: int) -> str | None:
        """The answer about such a picture, if there is one that has not expired."""
        place = self.pictures.find(key)
        if place is None or self.entries[place].until <= step:
            return None
        entry = self.entries[place]
        self.clock += 1
        entry.used = self.clock
        entry.hits += 1
        return entry.text

    def put(self, key: Any, text: str, step: int) -> None:
        """Keep an answer."""
        self.clock += 1
        place = self.pictures.find(key)
        lifetime = self.timeout if place is None else self.lifetime(self.entries[place], text)
        entry = Entry(key, text, lifetime, step + lifetime, self.clock)
        if place is None and len(self.entries) < self.size:
            place = len(self.entries)
            self.entries.append(entry)
        else:
            if place is None:
                place = min(range(self.size), key=lambda at: self.worth(self.entries[at]))
            else:
                entry.hits = self.entries[place].hits
            self.pictures.drop(self.entries[place].key)
            self.entries[place] = entry
        self.pictures.put(key, place)

    def lifetime(self, entry: Entry, text: str) -> int:  # noqa: ARG002 (for those that adapt)
        """Steps for which an answer that replaces an expired one counts."""
        return self.timeout

    def worth(self, entry: Entry) -> tuple[int, ...]:
        """What makes an entry worth keeping; the smallest makes room."""
        return (entry.used,)


class TTLAdaptiveCache(LruCache):
    """Lifetimes adapt: an answer that was right when it expired lives twice as long, another half as long.

    Room is made by the entries that were asked for least.
    """

    LONGEST = 16
    """Factor that a lifetime may reach."""

    def __init__(self, pictures: Exact | Nearest, size: int, timeout: int, alike: Alike) -> None:
        super().__init__(pictures, size, timeout)
        self.alike = alike

    def lifetime(self, entry: Entry, text: str) -> int:
        if self.alike(text, entry.text):
            return min(entry.lifetime * 2, self.timeout * self.LONGEST)
        return max(1, entry.lifetime // 2)

    def worth(self, entry: Entry) -> tuple[int, ...]:
        return entry.hits, entry.used


def caches(args: Args, alike: Callable[[tuple[str, ...]], Alike]) -> dict[tuple[str, ...], LruCache]:
    """The caches that the arguments ask for, by the parts of an answer that each of them keeps."""
    size, timeout = args.cache_size, args.timeout
    pictures: dict[tuple[str, ...], Exact | Nearest] = {WHOLE: Exact()}
    if args.fingerprint:
        pictures = {("points",): Exact(DIGITS)}
        pictures |= {(name,): Nearest(size, args.threshold, region) for name, region in REGIONS.items()}
    if args.cache == "none":
        return {}
    if args.cache == "lru":
        return {parts: LruCache(known, size, timeout) for parts, known in pictures.items()}
    return {parts: TTLAdaptiveCache(known, size, timeout, alike(parts)) for parts, known in pictures.items()}
