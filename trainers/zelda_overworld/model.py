"""The state of the game after one decision, read from the console's memory: player, enemies, things."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntEnum
from functools import cached_property
from typing import Any

from emulator import EQUIPMENT, Memory, Reading, tiles_at
from world import COLUMNS, ROWS, CheckedLocation, Direction, Location, MapLocation, Position, Tiles

ENEMIES = 8
"""Places for enemies in the console's memory."""

TABLES = {"kind": 0x40, "x": 0x48, "y": 0x50, "health": 0x58, "way": 0x60, "timer": 0x68}
"""Addresses of the enemies' tables, one byte per enemy."""

TILES = tiles_at()

NEAR = 48
"""Pixels within which an enemy is a danger."""

FRAMES_AHEAD = 14
"""Frames, two decisions, over which an enemy's way is looked ahead."""


class Mode(IntEnum):
    """What the program is doing."""

    TITLE = 0
    MENU = 1
    PLAY = 2
    BUILD = 3
    OVER = 4


class Equipment(Enum):
    """Whether a piece of equipment was found."""

    NOT = 0
    FOUND = 1


class EnemyKind(Enum):
    """The four kinds of enemies; the strongest needs two blows."""

    WALKER = 1
    CRAWLER = 2
    JUMPER = 3
    GUARD = 4


class Enemy:
    """One enemy, as its tables say."""

    def __init__(self, game: Game, index: int) -> None:
        self.game = game
        self.index = index

    def _read(self, table: str) -> int:
        return self.game.byte(TABLES[table] + self.index)

    @cached_property
    def kind(self) -> EnemyKind | None:
        """None for an empty place."""
        code = self._read("kind")
        return EnemyKind(code) if code else None

    @property
    def is_alive(self) -> bool:
        return self.kind is not None

    @cached_property
    def health(self) -> int:
        return self._read("health")

    @cached_property
    def position(self) -> Position:
        return Position(self._read("x"), self._read("y"))

    @cached_property
    def way(self) -> Direction:
        """Where it is heading."""
        return Direction(self._read("way"))

    @cached_property
    def timer(self) -> int:
        """Frames until it may turn, at every second of which it moves."""
        return self._read("timer")

    @cached_property
    def distance(self) -> int:
        """Pixels that the player would walk to it."""
        return self.position.distance(self.game.player.position)

    @property
    def is_near(self) -> bool:
        return self.is_alive and self.distance < NEAR

    @cached_property
    def bearing(self) -> Direction:
        """In which direction the player sees it."""
        return self.game.player.position.direction(self.position)

    @property
    def is_coming(self) -> bool:
        """Whether it walks towards the player."""
        return self.way is self.bearing.opposite

    def after(self, frames: int) -> Position:
        """Where it will be if it walks on."""
        down, right = self.way.step
        pixels = min(frames, self.timer) // 2
        return Position(self.position.x + right * pixels, self.position.y + down * pixels)


class Player:
    """The player."""

    def __init__(self, game: Game) -> None:
        self.game = game

    @cached_property
    def position(self) -> Position:
        return Position(self.game.value("player_x"), self.game.value("player_y"))

    @cached_property
    def facing(self) -> Direction:
        return Direction(self.game.value("facing"))

    @cached_property
    def health(self) -> int:
        return self.game.value("health")

    @cached_property
    def full_health(self) -> int:
        return self.game.value("full_health")

    @property
    def is_hurt(self) -> bool:
        """Whether nothing can hurt it for the moment, since something just did."""
        return self.game.value("hurt") > 0

    @property
    def is_healthy(self) -> bool:
        return self.health == self.full_health

    @property
    def is_weak(self) -> bool:
        return self.health <= self.full_health // 4

    @property
    def has_sword_out(self) -> bool:
        return self.game.value("sword") > 0

    def __getattr__(self, name: str) -> Equipment | int:
        """Equipment by its name: a tool was found or not, and the last eight are counted."""
        if name not in EQUIPMENT:
            raise AttributeError(name)
        value = self.game.value(name)
        return value if name in COUNTED else Equipment(value)


COUNTED = frozenset(EQUIPMENT[12:])


class Game:
    """One state of the game. Nothing of it changes after it was read, so what was computed once is kept."""

    location_type: type[Location] = CheckedLocation
    player_type: type[Player] = Player
    enemy_type: type[Enemy] = Enemy

    def __init__(self, reading: Reading) -> None:
        self.__dict__["memory"] = reading.memory
        self.__dict__["info"] = reading.info
        self.__dict__["player"] = self.player_type(self)

    memory: Memory
    info: dict[str, int]
    player: Player

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a state of the game can't be changed: {name}")

    def value(self, name: str) -> int:
        """A value by its name."""
        return self.info[name]

    def byte(self, address: int) -> int:
        """A byte of the console's memory."""
        return self.memory.item(address)

    @cached_property
    def mode(self) -> Mode:
        return Mode(self.value("mode"))

    @property
    def is_playing(self) -> bool:
        return self.mode is Mode.PLAY

    @property
    def is_over(self) -> bool:
        return self.mode is Mode.OVER

    @property
    def level(self) -> int:
        return self.value("level")

    @property
    def location(self) -> int:
        return self.value("location")

    @property
    def in_cave(self) -> bool:
        return self.value("in_cave") > 0

    @property
    def full_location(self) -> Location:
        """The room: level, location, and whether it is the cave below."""
        return self.location_type(self.level, self.location, self.in_cave)

    @cached_property
    def enemies(self) -> list[Enemy]:
        """The enemies that are alive."""
        places = [self.enemy_type(self, index) for index in range(ENEMIES)]
        return [enemy for enemy in places if enemy.is_alive]

    @cached_property
    def enemies_by_distance(self) -> list[Enemy]:
        return sorted(self.enemies, key=lambda enemy: enemy.distance)

    @cached_property
    def enemies_near(self) -> list[Enemy]:
        return [enemy for enemy in self.enemies if enemy.is_near]

    @cached_property
    def danger(self) -> float:
        """How near the enemies come over the next frames: 0 far away, 1 at the player, summed over all."""
        total = 0.0
        for enemy in self.enemies:
            ahead = min(enemy.distance, enemy.after(FRAMES_AHEAD).distance(self.player.position))
            if ahead < NEAR:
                total += 1 - ahead / NEAR
        return total

    @property
    def thing(self) -> Position | None:
        """Where the thing lies that can be found in this room."""
        if not self.value("thing"):
            return None
        return Position(self.value("thing_x"), self.value("thing_y"))

    @property
    def tiles(self) -> Tiles:
        """The room's tiles, ROWS x COLUMNS, as far as they are built."""
        return self.memory[TILES : TILES + ROWS * COLUMNS].reshape(ROWS, COLUMNS)


class LazyAttribute:
    """An attribute that is computed when it is first asked for, and then a plain one; takes no lock."""

    def __init__(self, compute: Callable[[Any], Any], name: str) -> None:
        self.compute = compute
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


Kind = type[Any]


def game_type(full_location: bool, map_location: bool, lazy: bool) -> type[Game]:
    """The class of states that the toggles of the same names ask for."""
    parts = {"enemy_type": _kind(Enemy, lazy), "player_type": _kind(Player, lazy)}
    extra: dict[str, Any] = {"location_type": MapLocation if map_location else CheckedLocation, **parts}
    if full_location:
        extra["full_location"] = cached_property(Game.full_location.fget)  # type: ignore[attr-defined]
        extra["full_location"].__set_name__(Game, "full_location")
    kind: type[Game] = _kind(type("Game", (Game,), extra), lazy)
    return kind


def _kind(base: Kind, lazy: bool) -> Kind:
    """A class like another one, with all its cached properties made lazy ones if that is asked for."""
    found = {name: part for cls in reversed(base.__mro__) for name, part in vars(cls).items()}
    cached = {name: part for name, part in found.items() if isinstance(part, cached_property)}
    return type(
        base.__name__,
        (base,),
        {name: LazyAttribute(part.func, name) for name, part in cached.items() if lazy},
    )
