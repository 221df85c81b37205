"""Caches of the service's answers. Time is counted in steps of the training, so that hits repeat exactly."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from arguments import Args
from hashing import ExactLookup, PerceptualLookup
from numpy.typing import NDArray

Alike = Callable[[str, str], bool]
"""Whether two answers say the same, or nearly."""

SHARE = 2e-4
"""Of the machine's memory, what a cache may take where its size goes by that."""

ENTRY = 2048
"""Bytes of an entry, roughly: its key, its text, and what the cache knows about it."""

FEWEST, MOST = 256, 16_384
"""Entries of such a cache; more of them are slower to search than it pays."""


def machine_memory() -> int:
    """Bytes of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cache_entries(size: int, memory: int) -> int:
    """Entries of a cache: `size`, or for 0 by `memory` bytes, as a power of two."""
    if size:
        return size
    fitting = max(1, int(memory * SHARE / ENTRY))
    return min(MOST, max(FEWEST, 1 << (fitting.bit_length() - 1)))


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
    """Keeps answers, each for a fixed number of steps.

    Room is made by the entry that was used longest ago, or with `frequent` by the one that was used least.
    """

    def __init__(
        self, pictures: ExactLookup | PerceptualLookup, size: int, timeout: int, *, frequent: bool = False
    ) -> None:
        self.pictures = pictures
        self.size = size
        self.timeout = timeout
        self.frequent = frequent
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
                place = self._cheapest(step)
            else:
                entry.hits = self.entries[place].hits
            self.pictures.drop(self.entries[place].key)
            self.entries[place] = entry
        self.pictures.put(key, place)

    def lifetime(self, entry: Entry, text: str) -> int:  # noqa: ARG002 (for those that adapt)
        """Steps for which an answer that replaces an expired one counts."""
        return self.timeout

    def _cheapest(self, step: int) -> int:
        """The place of the entry to lose; with `frequent` those that have expired go first."""
        if not self.frequent:
            return min(range(self.size), key=lambda at: self.entries[at].used)

        def worth(at: int) -> tuple[bool, int, int]:
            entry = self.entries[at]
            return entry.until > step, entry.hits, entry.used

        return min(range(self.size), key=worth)


class TTLAdaptiveCache(LruCache):
    """Lifetimes adapt: an answer that was right when it expired lives twice as long, another half as long."""

    LONGEST = 16
    """Factor that a lifetime may reach."""

    def __init__(
        self,
        pictures: ExactLookup | PerceptualLookup,
        size: int,
        timeout: int,
        alike: Alike,
        *,
        frequent: bool = False,
    ) -> None:
        super().__init__(pictures, size, timeout, frequent=frequent)
        self.alike = alike

    def lifetime(self, entry: Entry, text: str) -> int:
        if self.alike(text, entry.text):
            return min(entry.lifetime * 2, self.timeout * self.LONGEST)
        return max(1, entry.lifetime // 2)


def make_cache(args: Args, alike: Alike) -> LruCache | None:
    """The cache that the arguments ask for."""
    if args.cache == "none":
        return None
    size = cache_entries(int(args.cache_size or 0), machine_memory())
    known = PerceptualLookup(size, args.threshold) if args.fingerprint else ExactLookup()
    frequent = args.evict == "frequent"
    if args.cache == "lru":
        return LruCache(known, size, args.timeout, frequent=frequent)
    return TTLAdaptiveCache(known, size, args.timeout, alike, frequent=frequent)
