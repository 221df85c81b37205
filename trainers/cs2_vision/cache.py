"""Caches of the service's answers. Time is counted in steps of the training, so that hits repeat exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from arguments import Args
from games import COLUMNS, Screen
from numpy.typing import NDArray
from vision import FIELD

BLOCK = 8
"""Pixels between the middles of a fingerprint's blocks."""

GROUND = 34
"""The ground's number in the palette."""

FULL = 4.0
"""Differing pixels with which a block counts as full, so that a paddle says no more than the ball."""


Alike = Callable[[str, str], bool]
"""Whether two answers say the same, or nearly."""


class Exact:
    """Knows a picture only by all of its bytes."""

    def __init__(self) -> None:
        self.places: dict[bytes, int] = {}

    def keys(self, screens: Sequence[Screen]) -> list[bytes]:
        """One key for each picture."""
        return [hashlib.blake2b(screen.tobytes(), digest_size=16).digest() for screen in screens]

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
    """Knows a picture by its fingerprint: what differs from the ground, in blocks. Finds the nearest one."""

    def __init__(self, size: int, threshold: float) -> None:
        self.threshold = threshold
        self.rows, self.columns = hats(FIELD.stop - FIELD.start), hats(COLUMNS)
        length = len(self.rows) * len(self.columns)
        # Nothing is near to what holds no entry.
        self.prints = np.full((size, length), 1e9, dtype=np.float32)
        self.used = 0

    def keys(self, screens: Sequence[Screen]) -> list[NDArray[np.float32]]:
        """One fingerprint for each picture."""
        things = (np.stack(screens)[:, FIELD] != GROUND).astype(np.float32)
        blocks = self.rows @ things @ self.columns.T
        return list(np.minimum(blocks / FULL, 1).reshape(len(screens), -1))

    def find(self, key: NDArray[np.float32]) -> int | None:
        """The place of the entry with the nearest fingerprint, if that is near enough."""
        if not self.used:
            return None
        distances = np.abs(self.prints[: self.used] - key).max(axis=1)
        place = int(distances.argmin())
        return place if distances[place] <= self.threshold else None

    def put(self, key: NDArray[np.float32], place: int) -> None:
        self.prints[place] = key
        self.used = max(self.used, place + 1)

    def drop(self, key: NDArray[np.float32]) -> None:
        """Nothing to do: its place is written anew."""


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

    def keys(self, screens: Sequence[Screen]) -> list[Any]:
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


def cache(args: Args, alike: Alike) -> LruCache | None:
    """The cache that the arguments ask for."""
    if args.cache == "none":
        return None
    size, timeout = args.cache_size, args.timeout
    pictures = Nearest(size, args.threshold) if args.fingerprint else Exact()
    if args.cache == "lru":
        return LruCache(pictures, size, timeout)
    return TTLAdaptiveCache(pictures, size, timeout, alike)
