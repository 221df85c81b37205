"""What a picture shows: a place on a map, enemies, what the display says; and scenes drawn at random."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

KINDS = ("play", "loading", "buy", "menu", "score")
"""Kinds of screens; all but the first are without play."""

HEADINGS = 60
"""Directions in which a player can look."""

CLOSE = 8
"""Pixels by which an enemy's middle may be missed."""

MAPS = (
    (
        "1111111111111111",
        "1.....2........1",
        "1.....2..33....1",
        "1..4..2..33....1",
        "1..4...........1",
        "1.......66..4..1",
        "1..55...66..4..1",
        "1..55..........1",
        "1........2.....1",
        "1111111111111111",
    ),
    (
        "3333333333333333",
        "3....3.....3...3",
        "3....3.....3...3",
        "3..........3...3",
        "3...66.........3",
        "3...66....44...3",
        "3.........44...3",
        "3..5...........3",
        "3..5....1......3",
        "3333333333333333",
    ),
    (
        "5555555555555555",
        "5......1.......5",
        "5......1..2....5",
        "5..33.....2....5",
        "5..33..........5",
        "5.........66...5",
        "5....4....66...5",
        "5....4.........5",
        "5..........1...5",
        "5555555555555555",
    ),
)
"""Seen from above: a number is a wall with this texture."""

ROUTES = (
    ((11.5, 8.5), (10.5, 4.5), (14.5, 4.5), (14.5, 8.5), (13.5, 6.5), (14.5, 2.5), (12.5, 3.5), (11.5, 1.5)),
    ((8.5, 3.5), (9.5, 6.5), (5.5, 8.5), (7.5, 5.5), (10.5, 3.5), (8.5, 1.5), (6.5, 3.5), (7.5, 7.5)),
    ((1.5, 7.5), (5.5, 8.5), (9.5, 8.5), (8.5, 5.5), (4.5, 5.5), (3.5, 7.5), (1.5, 5.5), (1.5, 1.5)),
)
"""Where players stand on these maps, one place after the other; no wall is between two of them."""

GRIDS = tuple(np.array([[0 if cell == "." else int(cell) for cell in row] for row in rows]) for rows in MAPS)


class Enemy(NamedTuple):
    """Somebody to aim at: direction in radians and distance as seen by the player, and the outfit."""

    direction: float
    distance: float
    outfit: int


@dataclass(frozen=True, slots=True)
class Scene:
    """All that decides a picture. `health` and `ammo` are shares; `step` moves what never stands still."""

    kind: str
    number: int = 0
    place: tuple[float, float] = (1.5, 1.5)
    heading: int = 0
    enemies: tuple[Enemy, ...] = ()
    health: float = 1.0
    ammo: float = 1.0
    killed: bool = False
    fired: bool = False
    step: int = 0


class Truth(NamedTuple):
    """What there is to see: the nearest enemy's middle and height in pixels, or None."""

    kind: str
    target: tuple[float, float, float] | None
    health: float
    ammo: float
    killed: bool

    def is_met(self, kind: str, target: tuple[float, ...] | None) -> bool:
        """Whether an answer has the right kind of screen, and the enemy's middle within CLOSE pixels."""
        if kind != self.kind or (target is None) != (self.target is None):
            return False
        if target is None or self.target is None:
            return True
        return max(abs(target[0] - self.target[0]), abs(target[1] - self.target[1])) <= CLOSE


def angle(heading: int) -> float:
    """A heading in radians."""
    return 2 * math.pi * heading / HEADINGS


def free_distance(number: int, place: tuple[float, float], direction: float) -> float:
    """How far it is from a place to the next wall of a map."""
    grid, (x, y), far = GRIDS[number], place, 0.0
    while not grid[int(y + far * math.sin(direction)), int(x + far * math.cos(direction))]:
        far += 0.1
    return far


def draw_enemy(
    chance: np.random.Generator, number: int, place: tuple[float, float], heading: int
) -> Enemy | None:
    """An enemy in view and before the next wall; None where there is no room for one."""
    direction = angle(heading) + chance.uniform(-0.5, 0.5)
    room = free_distance(number, place, direction) - 0.4
    distance, outfit = chance.uniform(1.6, 8), int(chance.integers(6))
    if room < 1.6:
        return None
    return Enemy(direction, min(distance, room), outfit)


def random_scene(chance: np.random.Generator) -> Scene:
    """A scene as games have them, but of any moment: three in four of them are play."""
    number, heading = int(chance.integers(len(MAPS))), int(chance.integers(HEADINGS))
    route = np.array(ROUTES[number])
    at, along = int(chance.integers(len(route))), chance.random()
    along *= chance.random() < 0.3
    x, y = route[at] * (1 - along) + route[(at + 1) % len(route)] * along
    place = (float(x), float(y))
    scene = Scene(
        "play",
        number,
        place,
        heading,
        health=chance.integers(0, 21) / 20,
        ammo=chance.integers(0, 13) / 12,
        killed=bool(chance.random() < 0.2),
        fired=bool(chance.random() < 0.2),
        step=int(chance.integers(1000)),
    )
    if chance.random() < 0.25:
        return replace(scene, kind=KINDS[1 + int(chance.integers(len(KINDS) - 1))])
    enemy = draw_enemy(chance, number, place, heading) if chance.random() < 0.7 else None
    return replace(scene, enemies=() if enemy is None else (enemy,))
