"""Flood fill: how much room each of a snake's three actions leads to. Three ways, one answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from environment import SIDE, WIDTH, Booleans, Floats, Integers, Snakes
from numpy.typing import NDArray

AREA = SIDE * SIDE
CACHE_LIMIT = 50_000
"""States that the cache holds before it starts again, about 20 MB."""

BITS = (1 << np.arange(SIDE)).astype(np.float32)
"""The bit of each column in a row's mask."""

ROUNDS = 8
"""Rounds of growing between two looks for fills that are complete."""

Masks = NDArray[np.uint16]


class Search:
    """A breadth-first search for each action of each snake, cell by cell.

    `fills` and `cells` count the regions that the last call walked through, and the cells that they had.
    """

    def __init__(self) -> None:
        self.fills = self.cells = 0

    def spaces(self, games: Snakes) -> Floats:
        """Return the share of the board that can be reached after each action, count x 3."""
        self.fills = self.cells = 0
        blocked, starts = games.blocked(), games.ahead().tolist()
        rows = [self.rooms(row.tobytes(), starts[at]) for at, row in enumerate(blocked)]
        return np.array(rows, dtype=np.float32) / AREA

    def rooms(self, blocked: bytes, starts: list[int]) -> list[int]:
        """Return the number of cells that can be reached from each of the starts."""
        return [len(self.region(blocked, start)) for start in starts]

    def region(self, blocked: bytes, start: int) -> set[int]:
        """Return the free cells connected with `start`; none where it is blocked itself."""
        self.fills += 1
        if blocked[start]:
            return set()
        queue, seen = deque([start]), {start}
        while queue:
            cell = queue.popleft()
            for neighbour in (cell - WIDTH, cell + 1, cell + WIDTH, cell - 1):
                if not blocked[neighbour] and neighbour not in seen:
                    seen.add(neighbour)
                    queue.append(neighbour)
        self.cells += len(seen)
        return seen


class CachedSearch(Search):
    """The same search, but a region is walked once for a state, and a state that was seen before never."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[bytes, int, int, int], list[int]] = {}

    def rooms(self, blocked: bytes, starts: list[int]) -> list[int]:
        """Return the number of cells that can be reached from each of the starts."""
        key = (blocked, *starts)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= CACHE_LIMIT:
                self._known.clear()
            found = self._known[key] = self._walk(blocked, starts)
        return found

    def _walk(self, blocked: bytes, starts: list[int]) -> list[int]:
        regions: list[set[int]] = []
        for start in starts:
            # Most often all three actions lead into one region.
            region = next((known for known in regions if start in known), None)
            regions.append(self.region(blocked, start) if region is None else region)
        return [len(region) for region in regions]


class MaskFill:
    """The fills of all snakes at once: a board's rows are masks of bits, and grow in all directions."""

    def __init__(self) -> None:
        self.fills = self.cells = 0

    def spaces(self, games: Snakes) -> Floats:
        """Return the share of the board that can be reached after each action, count x 3."""
        self.fills = self.cells = 0
        free = _free_rows(games.blocked())
        starts = [_start_rows(cells) & free for cells in games.ahead().T]
        filled = [self._region(free, start) for start in starts[:1]]
        for start in starts[1:]:
            filled.append(self._region(free, start, filled))
        reached = [np.bitwise_count(masks).sum(axis=0, dtype=np.float32) for masks in filled]
        return np.stack(reached, axis=1) / AREA

    def _region(self, free: Masks, start: Masks, known: Sequence[Masks] = ()) -> Masks:
        """Return the masks that `start` grows to; where a known region holds it already, that one."""
        filled = start.copy()
        for region in known:
            filled |= np.where((start & region).any(axis=0), region, 0)
        fresh = np.flatnonzero((filled == start).all(axis=0) & start.any(axis=0))
        grown = _grown(start[:, fresh], free[:, fresh])
        filled[:, fresh] = grown
        self.fills += len(fresh)
        self.cells += int(np.bitwise_count(grown).sum())
        return filled


def _free_rows(blocked: Booleans) -> Masks:
    """Return the free cells as masks, rows x games."""
    inner = ~blocked.reshape(-1, WIDTH, WIDTH)[:, 1:-1, 1:-1]
    return np.ascontiguousarray((inner.astype(np.float32) @ BITS).astype(np.uint16).T)


def _start_rows(cells: Integers) -> Masks:
    """Return masks with the one bit of each game's cell, rows x games; none for a cell of the wall."""
    row, column = np.divmod(cells, WIDTH)
    masks = np.zeros((SIDE, len(cells)), dtype=np.uint16)
    inside = np.flatnonzero((row >= 1) & (row <= SIDE) & (column >= 1) & (column <= SIDE))
    masks[row[inside] - 1, inside] = 1 << (column[inside] - 1)
    return masks


def _grown(filled: Masks, room: Masks) -> Masks:
    """Grow within `room` until nothing changes."""
    growing = np.arange(filled.shape[1])
    now, within = filled.copy(), room
    while len(growing):
        before = now.copy()
        for _ in range(ROUNDS):
            _grow(now, within)
        filled[:, growing] = now
        open_ones = np.flatnonzero((now != before).any(axis=0))
        growing, now, within = growing[open_ones], now[:, open_ones], within[:, open_ones]
    return filled


def _grow(filled: Masks, room: Masks) -> None:
    """Grow by one cell along the rows and then along the columns, in place."""
    filled |= (filled << 1) | (filled >> 1)
    filled &= room
    filled[1:] |= filled[:-1] & room[1:]
    filled[:-1] |= filled[1:] & room[:-1]


FILLS = {"search": Search, "cached": CachedSearch, "masks": MaskFill}
