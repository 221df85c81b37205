"""Critics: what changed between two states of the game, where to go, and what that is worth."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import Enum
from functools import cached_property

from emulator import EQUIPMENT
from model import FRAMES_AHEAD, Equipment, Game
from world import Cell, Direction, Location, Room, Wavefront, located, numbers

Rewards = dict[str, float]
"""What each critic gave, by the reason."""


class Goal(Enum):
    """What the player should do in this room."""

    THING = 0
    LEAVE = 1
    FIGHT = 2


class Objective:
    """Where to go in this room: the thing in it, or the exit towards the nearest thing that wasn't found."""

    def __init__(self, game: Game, room: Room) -> None:
        self.room = room
        self.exit: Direction | None = None
        self.goal, self.cell = self._choose(game)

    def _choose(self, game: Game) -> tuple[Goal, Cell]:
        thing = game.thing
        if thing is not None:
            return Goal.THING, thing.cell
        if game.in_cave:
            self.exit = Direction.SOUTH
        else:
            self.exit = towards(game)
        cell = None if self.exit is None else self.room.exit(self.exit)
        if cell is not None:
            return Goal.LEAVE, cell
        nearest = game.enemies_by_distance
        return Goal.FIGHT, nearest[0].position.cell if nearest else (5, 7)

    @property
    def wave(self) -> Wavefront:
        """Steps to the goal from everywhere in the room."""
        return self.room.wavefront(self.cell)

    def ways(self, game: Game) -> list[Direction]:
        """The directions that lead nearer to the goal; at an exit, out of the room."""
        position = game.player.position
        if self.goal is Goal.LEAVE and self.exit is not None and position.cell == self.cell:
            return [self.exit]
        return self.wave.ways(position)


def towards(game: Game) -> Direction | None:
    """The first way from this room to the nearest one whose thing wasn't found."""
    start = (game.location >> 4, game.location & 3)
    queue: deque[tuple[Cell, Direction | None]] = deque([(start, None)])
    seen = {start}
    while queue:
        (row, column), first = queue.popleft()
        if (row, column) != start and not game.value(EQUIPMENT[row * 4 + column]):
            return first
        for way in Direction:
            down, right = way.step
            near = (row + down, column + right)
            if near not in seen and 0 <= near[0] < 4 and 0 <= near[1] < 4:
                seen.add(near)
                queue.append((near, first or way))
    return None


class Change:
    """Two states of the game and the decision between them."""

    def __init__(self, before: Game, after: Game, action: int, objective: Objective | None) -> None:
        self.before = before
        self.after = after
        self.action = action
        self.objective = objective

    @cached_property
    def health(self) -> int:
        """Health that was gained; below 0, that was lost."""
        return self.after.player.health - self.before.player.health

    @cached_property
    def same_room(self) -> bool:
        return self.before.full_location == self.after.full_location

    @cached_property
    def kills(self) -> int:
        return self.after.value("kills") - self.before.value("kills")

    @cached_property
    def gems(self) -> int:
        return self.after.value("gems") - self.before.value("gems")

    @property
    def is_attack(self) -> bool:
        return self.action >= 4

    @property
    def way(self) -> Direction:
        """The direction of the decision."""
        return Direction(self.action % 4)

    @cached_property
    def moved(self) -> int:
        """Pixels that the player walked."""
        return self.after.player.position.distance(self.before.player.position)

    @property
    def hits(self) -> int:
        """Enemies that were struck: they have less health than before, or are gone."""
        left = {enemy.index: enemy for enemy in self.after.enemies}
        struck = 0
        for enemy in self.before.enemies:
            now = left.get(enemy.index)
            if now is None or now.health < enemy.health:
                struck += 1
        return struck


class Critics:
    """All critics. Each looks at one change and may give a reward for one reason."""

    def __init__(self, equipment_loop: bool) -> None:
        self.visits: Counter[Location] = Counter()
        self.lingering: Counter[tuple[Location, Cell]] = Counter()
        self.critics: tuple[Callable[[Change, Rewards], None], ...] = (
            self.critique_health_lost,
            self.critique_health_gained,
            self.critique_kills,
            self.critique_gems,
            self.critique_attack,
            self.critique_aim,
            self.critique_danger,
            self.critique_block,
            self.critique_walk,
            self.critique_standstill,
            self.critique_discovery,
            self.critique_exit,
            self.critique_cave,
            self.critique_crowd,
            self.critique_pursuit,
            self.critique_collision,
            self.critique_retreat,
            self.critique_cleared,
            self.critique_return,
            self.critique_lingering,
            self.critique_end,
        )
        self.critique_equipment = self.check_in_a_loop if equipment_loop else self.check_one_by_one

    def state(self) -> dict[str, list[list[int]]]:
        """What they remember of this game, as numbers, for a checkpoint."""
        return {
            "visits": [[*numbers(location), often] for location, often in self.visits.items()],
            "lingering": [
                [*numbers(location), *cell, often] for (location, cell), often in self.lingering.items()
            ],
        }

    def restore(self, state: dict[str, list[list[int]]], location_type: type[Location]) -> None:
        """Remember what `state` returned."""
        for *place, often in state["visits"]:
            self.visits[located(location_type, place)] = often
        for level, location, in_cave, row, column, often in state["lingering"]:
            self.lingering[located(location_type, (level, location, in_cave)), (row, column)] = often

    def critique(self, change: Change) -> Rewards:
        """The rewards of all critics but the one for equipment."""
        rewards: Rewards = {}
        for critic in self.critics:
            critic(change, rewards)
        return rewards

    def critique_health_lost(self, change: Change, rewards: Rewards) -> None:
        if change.health < 0:
            rewards["health lost"] = 0.2 * change.health

    def critique_health_gained(self, change: Change, rewards: Rewards) -> None:
        if change.health > 0 and change.same_room:
            rewards["health gained"] = 0.1 * change.health

    def critique_kills(self, change: Change, rewards: Rewards) -> None:
        if change.kills > 0:
            rewards["kill"] = 0.3 * change.kills

    def critique_gems(self, change: Change, rewards: Rewards) -> None:
        if change.gems > 0:
            rewards["gem"] = 0.05 * change.gems

    def critique_attack(self, change: Change, rewards: Rewards) -> None:
        """A blow that strikes nobody costs a little."""
        if change.before.full_location != change.after.full_location:
            return
        if change.hits:
            rewards["hit"] = 0.1 * change.hits
        elif change.is_attack:
            rewards["blow into the air"] = -0.1

    def critique_aim(self, change: Change, rewards: Rewards) -> None:
        """A blow towards an enemy that is near is no mistake, even if it fails."""
        if not change.is_attack or change.before.full_location != change.after.full_location:
            return
        if any(enemy.bearing is change.way for enemy in change.before.enemies_near):
            rewards["aim"] = 0.05

    def critique_danger(self, change: Change, rewards: Rewards) -> None:
        """Walking into danger costs, walking out of it doesn't pay: else one could do both for ever."""
        if change.before.full_location != change.after.full_location or change.after.player.is_hurt:
            return
        rise = change.after.danger - change.before.danger
        if rise > 0.25:
            rewards["danger"] = -0.03

    def critique_block(self, change: Change, rewards: Rewards) -> None:
        """An enemy that comes straight at the player is faced."""
        if change.before.full_location != change.after.full_location:
            return
        coming = [enemy for enemy in change.after.enemies_near if enemy.is_coming]
        if coming and change.after.player.facing is coming[0].bearing:
            rewards["face"] = 0.01

    def critique_walk(self, change: Change, rewards: Rewards) -> None:
        """Nearer to the goal, or farther from it."""
        if change.objective is None or change.before.full_location != change.after.full_location:
            return
        if change.is_attack or not change.moved:
            return
        wave = change.objective.wave
        steps = wave.distance(change.before.player.position) - wave.distance(change.after.player.position)
        if steps:
            rewards["nearer" if steps > 0 else "farther"] = 0.1 if steps > 0 else -0.1
        elif change.way in change.objective.ways(change.before):
            rewards["on the way"] = 0.03

    def critique_standstill(self, change: Change, rewards: Rewards) -> None:
        if change.before.full_location != change.after.full_location or change.is_attack:
            return
        if not change.moved and change.before.is_playing and change.after.is_playing:
            rewards["wall"] = -0.1

    def critique_discovery(self, change: Change, rewards: Rewards) -> None:
        if change.after.full_location in self.visits:
            return
        self.visits[change.after.full_location] += 1
        rewards["discovery"] = 0.3

    def critique_exit(self, change: Change, rewards: Rewards) -> None:
        """Leaving by the exit that was the goal, or by another."""
        if change.before.full_location == change.after.full_location or change.objective is None:
            return
        wanted = change.objective.goal is Goal.LEAVE and change.way in change.objective.ways(change.before)
        rewards["exit" if wanted else "wrong exit"] = 0.5 if wanted else -0.5

    def critique_cave(self, change: Change, rewards: Rewards) -> None:
        """A cave whose thing was found is no place to be."""
        location = change.after.full_location
        if location.in_cave and change.after.thing is None and location == change.before.full_location:
            rewards["empty cave"] = -0.01

    def critique_crowd(self, change: Change, rewards: Rewards) -> None:
        """Standing between two enemies that are near, on opposite sides."""
        if change.before.full_location != change.after.full_location:
            return
        # A list: a set's order, and so the number of calls, would differ from process to process.
        sides = [enemy.bearing for enemy in change.after.enemies_near]
        if any(side.opposite in sides for side in sides):
            rewards["crowd"] = -0.02

    def critique_pursuit(self, change: Change, rewards: Rewards) -> None:
        """Being followed: an enemy that was near comes nearer though the player walks."""
        if change.before.full_location != change.after.full_location or not change.moved:
            return
        before = {enemy.index: enemy.distance for enemy in change.before.enemies_near}
        followed = sum(enemy.distance < before.get(enemy.index, 0) for enemy in change.after.enemies)
        if followed:
            rewards["pursuit"] = -0.005 * followed

    def critique_collision(self, change: Change, rewards: Rewards) -> None:
        """An enemy that will be in the player's cell if it walks on, while the sword is away."""
        if change.before.full_location != change.after.full_location or change.after.player.has_sword_out:
            return
        here = change.after.player.position.cell
        if any(enemy.after(FRAMES_AHEAD).cell == here for enemy in change.after.enemies):
            rewards["collision ahead"] = -0.02

    def critique_retreat(self, change: Change, rewards: Rewards) -> None:
        """With little health left, coming nearer to the nearest enemy is a mistake, unless to strike it."""
        nearest, before = change.after.enemies_by_distance[:1], change.before.enemies_by_distance[:1]
        if not nearest or not before or change.is_attack or not change.after.player.is_weak:
            return
        if nearest[0].index == before[0].index and nearest[0].distance < before[0].distance:
            rewards["no retreat"] = -0.02

    def critique_cleared(self, change: Change, rewards: Rewards) -> None:
        """The last enemy of a room is gone."""
        if change.before.full_location != change.after.full_location:
            return
        if change.before.enemies and not change.after.enemies and change.after.is_playing:
            rewards["cleared"] = 0.3

    def critique_return(self, change: Change, rewards: Rewards) -> None:
        """Each further visit of a room costs more, up to a bound."""
        if change.before.full_location == change.after.full_location:
            return
        self.visits[change.after.full_location] += 1
        often = self.visits[change.after.full_location]
        if often > 3:
            rewards["return"] = -0.02 * min(often, 10)

    def critique_lingering(self, change: Change, rewards: Rewards) -> None:
        """Staying in one cell for long."""
        place = (change.after.full_location, change.after.player.position.cell)
        self.lingering[place] += 1
        if self.lingering[place] > 20:
            rewards["lingering"] = -0.01

    def critique_end(self, change: Change, rewards: Rewards) -> None:
        if change.after.is_over:
            rewards["end"] = -1.0

    def check_one_by_one(self, change: Change, rewards: Rewards) -> None:
        """Twenty calls, one per piece of equipment."""
        for name in EQUIPMENT:
            self._check_one(change, rewards, name)

    def _check_one(self, change: Change, rewards: Rewards, name: str) -> None:
        found = self._difference(change, name)
        if found > 0:
            rewards[name] = 1.0

    def _difference(self, change: Change, name: str) -> int:
        before = getattr(change.before.player, name)
        after = getattr(change.after.player, name)
        if isinstance(before, Equipment):
            before = before.value
        if isinstance(after, Equipment):
            after = after.value
        return int(after - before)

    def check_in_a_loop(self, change: Change, rewards: Rewards) -> None:
        """The same in one loop, without a call of our own per piece."""
        before, after = change.before.player, change.after.player
        for name in EQUIPMENT:
            had, has = getattr(before, name), getattr(after, name)
            if had is not has and had != has:
                rewards[name] = 1.0
