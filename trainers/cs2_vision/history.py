"""The observation history: pictures and what the service said of them."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from answers import NOTHING, ScreenState
from palette import COLUMNS, PALETTE, ROWS, Screen


class Observation(NamedTuple):
    """A game's picture, as it is kept, and what was seen on it."""

    game: int
    picture: Any
    seen: ScreenState
    before: ScreenState


def as_codes(colours: Any) -> Any:
    """Colours, ... x 3, as one number each."""
    return colours.astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])


CODES = as_codes(PALETTE)
ORDER = np.argsort(CODES)


class RgbStorage:
    """Keeps a picture as red, green and blue."""

    def hold(self, screen: Screen) -> Any:
        return PALETTE[screen]

    def release(self, picture: Any) -> None:
        """Forget a picture; nothing to do, since nobody else holds it."""

    def screen(self, picture: Any) -> Screen:
        """The picture as it was on the screen."""
        return ORDER[np.searchsorted(CODES[ORDER], as_codes(picture))].astype(np.uint8)

    def size(self, held: Sequence[Any]) -> int:
        """Bytes of these pictures."""
        return sum(picture.nbytes for picture in held)


class PaletteStorage(RgbStorage):
    """Keeps a picture's numbers in the palette: a third of the bytes."""

    def hold(self, screen: Screen) -> Any:
        return screen.copy()

    def screen(self, picture: Any) -> Screen:
        return picture


class DeduplicatedStorage(RgbStorage):
    """Keeps equal pictures once."""

    def __init__(self) -> None:
        self.pictures: dict[bytes, Screen] = {}
        self.holders: Counter[bytes] = Counter()

    def hold(self, screen: Screen) -> Any:
        key = hashlib.blake2b(screen.tobytes(), digest_size=16).digest()
        self.holders[key] += 1
        if key not in self.pictures:
            self.pictures[key] = screen.copy()
        return key

    def release(self, picture: Any) -> None:
        self.holders[picture] -= 1
        if not self.holders[picture]:
            del self.holders[picture], self.pictures[picture]

    def screen(self, picture: Any) -> Screen:
        return self.pictures[picture]

    def size(self, held: Sequence[Any]) -> int:
        return len(self.pictures) * ROWS * COLUMNS + sum(len(key) for key in held)


STORAGES = {"rgb": RgbStorage, "palette": PaletteStorage, "shared": DeduplicatedStorage}


class History:
    """The last observations of all games, and of each game the two that decide its next move."""

    def __init__(self, games: int, limit: int, storage: str) -> None:
        self.limit = limit
        self.storage = STORAGES[storage]()
        self.observations: deque[Observation] = deque()
        self.last = [NOTHING] * games
        self.before = [NOTHING] * games

    def add(self, game: int, screen: Screen, seen: ScreenState) -> None:
        """Keep an observation; the oldest one beyond the limit goes."""
        self.before[game], self.last[game] = self.last[game], seen
        if len(self.observations) == self.limit:
            self.storage.release(self.observations.popleft().picture)
        picture = self.storage.hold(screen)
        self.observations.append(Observation(game, picture, seen, self.before[game]))

    def bytes(self) -> int:
        """What its pictures take."""
        return self.storage.size([observation.picture for observation in self.observations])
