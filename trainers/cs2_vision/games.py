"""The games: a shooter on rails, in place of CS2. The agent takes pictures of them, and nothing else.

A player is led from place to place and decides where to look and when to fire. Enemies come one at a time;
one that is not hit in time hits the player. Before every round there are screens without play.
"""

from __future__ import annotations

import numpy as np
from palette import COLUMNS, Screen
from renderer import draw
from scenes import HEADINGS, KINDS, MAPS, ROUTES, Enemy, Scene, Truth, draw_enemy, free_distance

ACTIONS = 4
"""Hold, look left, look right, fire."""

HOLD, LEFT, RIGHT, FIRE = range(ACTIONS)

BETWEEN = (("loading", 8), ("menu", 3), ("buy", 7))
"""Screens before a round, and their decisions."""

ROUND = 90
"""Decisions of play in a round, unless the player falls."""

STAY = 24
"""Decisions at one place."""

WALK = 4
"""Decisions from one place to the next."""

PATIENCE = 14
"""Decisions until an enemy hits."""

MAGAZINE = 12
"""Shots until the weapon is loaded again, which takes RELOAD decisions."""

RELOAD = 3

WIDTH = 5.0
"""Pixels by which a shot may miss an enemy's middle, beside half of its width."""

MIDDLE = COLUMNS / 2
"""Where the crosshair is."""


class Game:
    """Plays one round after the other. `came` and `hits` count the enemies that came and that were hit."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.number = int(self.chance.integers(len(MAPS)))
        self.steps = 0
        self.came = self.hits = 0
        self._end_round()

    def _end_round(self) -> None:
        """Show the screens before the next round, on another map."""
        self.number = (self.number + 1) % len(MAPS)
        self.screens = [kind for kind, steps in BETWEEN for _ in range(steps)][::-1]
        self.left, self.at, self.moved = ROUND, int(self.chance.integers(len(ROUTES[0]))), 0
        self.heading = int(self.chance.integers(HEADINGS))
        self.health, self.ammo, self.loading = 1.0, MAGAZINE, 0
        self.enemy: Enemy | None = None
        self.waited, self.pause, self.drift = 0, 3, 0.0
        self.notice, self.fired = 0, False
        self._draw()

    @property
    def kind(self) -> str:
        """What is on the screen."""
        return self.screens[-1] if self.screens else KINDS[0]

    def step(self, action: int) -> None:
        """Play a decision."""
        self.steps += 1
        if self.screens:
            kind = self.screens.pop()
            if kind == "score" and not self.screens:
                return self._end_round()
        else:
            self._play(action)
        return self._draw()

    def _play(self, action: int) -> None:
        self.left -= 1
        self.notice, self.fired = max(0, self.notice - 1), False
        if action in (LEFT, RIGHT):
            self.heading = (self.heading + (1 if action == RIGHT else -1)) % HEADINGS
        elif action == FIRE:
            self._fire()
        if self.loading:
            self.loading -= 1
            self.ammo = self.ammo if self.loading else MAGAZINE
        self._move()
        self._move_enemy()
        if self.left <= 0 or self.health <= 0:
            self.screens = ["score"] * 5

    def _fire(self) -> None:
        if self.loading:
            return
        self.ammo, self.fired = self.ammo - 1, True
        if not self.ammo:
            self.loading = RELOAD
        target = self.truth.target
        # A figure is half as wide as it is high.
        if target is not None and abs(target[0] - MIDDLE) <= target[2] / 4 + WIDTH:
            self.hits += 1
            self.notice, self.enemy = 2, None
            self.pause = int(self.chance.integers(2, 6))

    def _move(self) -> None:
        """Stay for a while, then walk on; nobody comes in the meantime."""
        self.moved += 1
        if self.moved >= STAY + WALK:
            self.at, self.moved = (self.at + 1) % len(ROUTES[self.number]), 0
        elif self.moved >= STAY:
            self.enemy, self.pause = None, 2

    @property
    def place(self) -> tuple[float, float]:
        """Where the player is: at a place of the route, or between two of them."""
        route = ROUTES[self.number]
        here, following = route[self.at], route[(self.at + 1) % len(route)]
        along = max(0, self.moved - STAY) / WALK
        return here[0] + along * (following[0] - here[0]), here[1] + along * (following[1] - here[1])

    def _move_enemy(self) -> None:
        """Let one come, go aside, or hit."""
        if self.enemy is None:
            self.pause -= 1
            if self.pause <= 0 and self.moved < STAY - PATIENCE // 2:
                self.enemy = draw_enemy(self.chance, self.number, self.place, self.heading)
                self.came += self.enemy is not None
                self.waited, self.drift = 0, float(self.chance.choice((-0.012, 0.0, 0.012)))
            return
        self.waited += 1
        direction = self.enemy.direction + self.drift
        if free_distance(self.number, self.place, direction) > self.enemy.distance + 0.3:
            self.enemy = self.enemy._replace(direction=direction)
        if self.waited >= PATIENCE:
            self.health = max(0.0, self.health - 0.25)
            self.enemy, self.pause = None, int(self.chance.integers(2, 6))

    def _draw(self) -> None:
        enemies = () if self.enemy is None else (self.enemy,)
        self.picture, self.truth = draw(
            Scene(
                self.kind,
                self.number,
                self.place,
                self.heading,
                enemies,
                self.health,
                self.ammo / MAGAZINE,
                self.notice > 0,
                self.fired,
                self.steps,
            )
        )

    def screen(self) -> Screen:
        """What is on the screen; nobody writes into it."""
        return self.picture

    def seen(self) -> Truth:
        """What there is to see on it."""
        return self.truth
