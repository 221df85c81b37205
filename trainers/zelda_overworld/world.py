"""Places and rooms: where something is, what a room's tiles are, and how far everything is from a goal."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

ROWS, COLUMNS = 22, 32
"""Tiles of a room: 8 x 8 pixels each, below the 64 lines of the display."""

CELL = 16
"""Pixels along one side of a cell, the 2 x 2 tiles that a player fills."""

CELL_ROWS, CELL_COLUMNS = 11, 16

TOP = 64

WALKABLE = frozenset({0x0E, *range(0x10, 0x40)})
"""Codes of the tiles that one may walk on: the stairs and 48 kinds of ground."""

WALKABLE_TILES = torch.tensor(sorted(WALKABLE), dtype=torch.uint8)

Cell = tuple[int, int]
"""Row and column."""

Tiles = NDArray[np.uint8]


class Direction(Enum):
    """The four ways, in the program's order."""

    NORTH = 0
    SOUTH = 1
    WEST = 2
    EAST = 3

    @property
    def step(self) -> Cell:
        """Rows and columns that one step goes."""
        return STEPS[self.value]

    @property
    def opposite(self) -> Direction:
        return OPPOSITES[self.value]


STEPS: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))
OPPOSITES = (Direction.SOUTH, Direction.NORTH, Direction.EAST, Direction.WEST)


class Position(NamedTuple):
    """A point of the screen, in pixels."""

    x: int
    y: int

    @property
    def cell(self) -> Cell:
        """The cell of the room that the middle of a figure at this point is in."""
        row, column = (self.y + 8 - TOP) // CELL, (self.x + 8) // CELL
        return min(max(row, 0), CELL_ROWS - 1), min(max(column, 0), CELL_COLUMNS - 1)

    def distance(self, other: Position) -> int:
        """Pixels walked between two points."""
        return abs(self.x - other.x) + abs(self.y - other.y)

    def direction(self, other: Position) -> Direction:
        """The way that leads most towards another point."""
        across, down = other.x - self.x, other.y - self.y
        if abs(across) > abs(down):
            return Direction.EAST if across > 0 else Direction.WEST
        return Direction.SOUTH if down > 0 else Direction.NORTH


class CheckedLocation:
    """A room of the world, checked when it is made, and hashed whenever it is looked up."""

    def __init__(self, level: int, location: int, in_cave: bool) -> None:
        assert 0 <= level <= 9  # noqa: S101 (what the toggle `map_location` takes away)
        self.level = level
        self.location = location
        self.in_cave = in_cave

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CheckedLocation):
            return NotImplemented
        return self.level == other.level and self.location == other.location and self.in_cave == other.in_cave

    def __hash__(self) -> int:
        return hash((self.level, self.location, self.in_cave))


class MapLocation:
    """A room of the world, hashed once, when it is made."""

    __slots__ = ("_hash", "in_cave", "level", "location")

    def __init__(self, level: int, location: int, in_cave: bool) -> None:
        self.level = level
        self.location = location
        self.in_cave = in_cave
        self._hash = hash((level, location, in_cave))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MapLocation):
            return NotImplemented
        return self.level == other.level and self.location == other.location and self.in_cave == other.in_cave

    def __hash__(self) -> int:
        return self._hash


Location = CheckedLocation | MapLocation


def numbers(location: Location) -> tuple[int, int, int]:
    """Level, location and whether it is a cave, as `located` takes them."""
    return location.level, location.location, int(location.in_cave)


def located(kind: type[Location], place: Sequence[int]) -> Location:
    """The location of these numbers."""
    level, location, in_cave = place
    return kind(level, location, in_cave > 0)


class Room:
    """The tiles of one room. It is loaded if any of them can be walked on: rooms are built row by row."""

    def __init__(self, location: Location, tiles: Tiles) -> None:
        self.location = location
        self.tiles = torch.from_numpy(tiles.copy())
        self.codes = tiles[::2, ::2].tolist()
        self.waves: dict[Cell, Wavefront] = {}

    @property
    def is_loaded(self) -> bool:
        return bool(torch.isin(self.tiles, WALKABLE_TILES).any())

    def is_open(self, cell: Cell) -> bool:
        """Whether a cell can be walked on."""
        return self.codes[cell[0]][cell[1]] in WALKABLE

    def exit(self, way: Direction) -> Cell | None:
        """The cell through which the room is left in a direction, if there is one."""
        cell = EXITS[way.value]
        return cell if self.is_open(cell) else None

    def wavefront(self, goal: Cell) -> Wavefront:
        """Steps to a goal from every cell, computed once."""
        wave = self.waves.get(goal)
        if wave is None:
            wave = self.waves[goal] = Wavefront(self, goal)
        return wave


class LoadedRoom(Room):
    """A room that looks at its tiles once: they don't change after it was made."""

    def __init__(self, location: Location, tiles: Tiles) -> None:
        super().__init__(location, tiles)
        self._is_loaded = not WALKABLE.isdisjoint(tiles.ravel().tolist())

    @property
    def is_loaded(self) -> bool:
        return self._is_loaded


EXITS: tuple[Cell, ...] = ((0, 7), (10, 7), (5, 0), (5, 15))


class Wavefront:
    """Steps from every cell of a room to a goal, by breadth-first search. What can't be reached is FAR."""

    FAR = 99

    def __init__(self, room: Room, goal: Cell) -> None:
        self.goal = goal
        self.steps: dict[Cell, int] = {goal: 0}
        queue = deque([goal])
        while queue:
            cell = queue.popleft()
            for near in neighbours(cell):
                if near not in self.steps and room.is_open(near):
                    self.steps[near] = self.steps[cell] + 1
                    queue.append(near)

    def distance(self, position: Position) -> int:
        """Steps to the goal from a point."""
        return self.steps.get(position.cell, self.FAR)

    def ways(self, position: Position) -> list[Direction]:
        """The directions of the cells that are nearer to the goal."""
        row, column = position.cell
        here = self.steps.get((row, column), self.FAR)
        found = []
        for way in Direction:
            down, right = way.step
            if self.steps.get((row + down, column + right), self.FAR) < here:
                found.append(way)
        return found


def neighbours(cell: Cell) -> list[Cell]:
    """The cells above, below, left and right that lie in the room."""
    row, column = cell
    near = [(row + down, column + right) for down, right in STEPS]
    return [(r, c) for r, c in near if 0 <= r < CELL_ROWS and 0 <= c < CELL_COLUMNS]
