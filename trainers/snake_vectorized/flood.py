"""Flood fill: how much room each of a snake's three actions leads to. Three ways, one answer."""

from __future__ import annotations

from collections import deque

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
        free, ahead = _free_rows(games.blocked()), games.ahead()
        straight = self._fill(free, _start_rows(ahead[:, 0]))
        turns = _start_rows(ahead[:, 1:].ravel())
        # Most often a turn leads into the region that lies straight on; only the others are filled anew.
        around, known = np.repeat(free, 2, axis=1), np.repeat(straight, 2, axis=1)
        filled = np.where((turns & known).any(axis=0), known, 0)
        fresh = np.flatnonzero((turns & around & ~known).any(axis=0))
        filled[:, fresh] = self._fill(around[:, fresh], turns[:, fresh])
        reached = np.stack([_cells(straight), *_cells(filled).reshape(-1, 2).T], axis=1)
        return reached / AREA

    def _fill(self, free: Masks, starts: Masks) -> Masks:
        """Return the masks that the starts grow to."""
        filled = _grown(starts & free, free)
        self.fills += filled.shape[1]
        self.cells += int(_cells(filled).sum())
        return filled


def _cells(masks: Masks) -> Floats:
    """Return the number of cells in each game's masks."""
    return np.bitwise_count(masks).sum(axis=0, dtype=np.float32)


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


def _grown(filled: Masks, free: Masks) -> Masks:
    """Grow within the free cells until nothing changes, in place."""
    growing, now, room = np.arange(filled.shape[1]), filled, free
    while len(growing):
        before = now.copy()
        _grow(now, room)
        if now is not filled:
            filled[:, growing] = now
        changed = np.flatnonzero((now != before).any(axis=0))
        growing, now, room = growing[changed], now[:, changed], room[:, changed]
    return filled


def _grow(filled: Masks, room: Masks) -> None:
    """Grow some rounds in place: each by one cell along the rows, and then along the columns."""
    sides, others, work = np.empty_like(filled), np.empty_like(filled), np.empty_like(filled[1:])
    upper, lower, upper_room, lower_room = filled[:-1], filled[1:], room[:-1], room[1:]
    for _ in range(ROUNDS):
        np.left_shift(filled, 1, out=sides)
        np.right_shift(filled, 1, out=others)
        np.bitwise_or(sides, others, out=sides)
        np.bitwise_and(sides, room, out=sides)
        np.bitwise_or(filled, sides, out=filled)
        np.bitwise_and(upper, lower_room, out=work)
        np.bitwise_or(lower, work, out=lower)
        np.bitwise_and(lower, upper_room, out=work)
        np.bitwise_or(upper, work, out=upper)


FILLS = {"search": Search, "cached": CachedSearch, "masks": MaskFill}
