"""One environment: an emulator, the model of its game, the critics, and what the network sees of them."""

from __future__ import annotations

import random
import zlib
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import paceline
import torch
from arguments import Args
from benchmark_support.checkpoints import generator_state, restore_generator
from critics import Change, Critics, Objective
from emulator import Picture, Reading, Source
from model import Game, game_type
from observation import (
    STACK,
    Information,
    Rolling,
    SingleTensorInformation,
    image_in_three,
    image_in_two,
    stack_arrays,
    stack_tensors,
)
from world import Direction, LoadedRoom, Location, Room, located, numbers


class Observation(NamedTuple):
    """Pictures, STACK x rows x columns, and facts, FACTS values."""

    image: torch.Tensor
    facts: torch.Tensor


class Outcome(NamedTuple):
    """What a decision led to: the next observation, its reward, and whether the game ended."""

    observation: Observation
    reward: float
    ended: bool


class Environment:
    """Plays games, one after the other. `states` is a checksum of all memories that were read."""

    def __init__(self, source: Source, args: Args, seed: int) -> None:
        self.source = source
        self.args = args
        self.random = random.Random(seed)
        self.game_type = game_type(bool(args.full_location), bool(args.map_location), bool(args.lazy))
        self.information = SingleTensorInformation() if args.information else Information()
        self.rolling = Rolling() if args.rolling else None
        self.frames: deque[Picture] = deque(maxlen=STACK)
        # The world is the same in every game, so its rooms are kept.
        self.rooms: dict[Location, Room] = {}
        self.room_type = LoadedRoom if args.is_loaded else Room
        self.states = 0
        self.rewards: dict[str, float] = {}

    def reset(self) -> Observation:
        """Start a game; return its first observation."""
        reading = self.source.reset(self.random.randrange(60))
        self.critics = Critics(bool(self.args.equipment))
        self.steps = 0
        self.room: Room | None = None
        self.objective: Objective | None = None
        self.arrival: Direction | None = None
        self.game = self._state(reading)
        self._enter(self.game)
        return self._observe(self.game, reading.picture, first=True)

    def begin(self, action: int) -> None:
        """Start a decision; an emulator in a process of its own runs on meanwhile."""
        self.action = action
        self.source.begin(action)

    def finish(self) -> Outcome:
        """Wait for the end of the decision and judge it."""
        with paceline.phase("emulator"):
            reading = self.source.finish()
        with paceline.phase("state"):
            game = self._state(reading)
            change = Change(self.game, game, self.action, self.objective)
        with paceline.phase("room"):
            self._enter(game)
        with paceline.phase("critics"):
            rewards = self.critics.critique(change)
        with paceline.phase("equipment"):
            self.critics.critique_equipment(change, rewards)
        self.rewards = rewards
        self.game = game
        self.steps += 1
        ended = game.is_over or self.steps >= self.args.game_steps
        observation = self._observe(game, reading.picture, first=False)
        return Outcome(observation, sum(rewards.values()), ended)

    def state(self) -> dict[str, Any]:
        """The game that is being played, and the rooms that are known, as tensors and numbers."""
        frames = (
            [torch.from_numpy(frame) for frame in self.frames] if self.rolling is None else self.rolling.grays
        )
        return {
            "console": torch.frombuffer(bytearray(self.source.save_state()), dtype=torch.uint8),
            "memory": torch.from_numpy(self.game.memory.copy()),
            "info": dict(self.game.info),
            "random": generator_state(self.random),
            "steps": self.steps,
            "states": self.states,
            "arrival": None if self.arrival is None else self.arrival.value,
            "frames": [frame.clone() for frame in frames],
            "rooms": [(numbers(room.location), room.tiles.clone()) for room in self.rooms.values()],
            "critics": self.critics.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with the game that `state` returned."""
        self.source.load_state(state["console"].numpy().tobytes())
        restore_generator(self.random, state["random"])
        self.steps, self.states = state["steps"], state["states"]
        location_type = self.game_type.location_type
        self.rooms = {}
        for place, tiles in state["rooms"]:
            here = located(location_type, place)
            self.rooms[here] = self.room_type(here, tiles.numpy())
        self.critics = Critics(bool(self.args.equipment))
        self.critics.restore(state["critics"], location_type)
        # Its picture is one of the frames already.
        self.game = self.game_type(Reading(state["memory"].numpy(), np.empty(0, np.uint8), state["info"]))
        self.room = None
        self._enter(self.game)
        self.arrival = None if state["arrival"] is None else Direction(state["arrival"])
        if self.rolling is not None:
            self.rolling.grays.extend(state["frames"])
        else:
            self.frames.extend(frame.numpy() for frame in state["frames"])

    @property
    def found(self) -> int:
        """Things found in this game."""
        return self.game.value("keys")

    def _state(self, reading: Reading) -> Game:
        self.states = zlib.crc32(reading.memory.data, self.states)
        return self.game_type(reading)

    def _enter(self, game: Game) -> None:
        """Find the room that the player is in, once it is built, and what to do there."""
        here = game.full_location
        room = self.rooms.get(here)
        if room is None:
            room = self.room_type(here, game.tiles)
            if game.is_playing:
                self.rooms[here] = room
        if self.room is not None and self.room.location != here:
            self.arrival = game.player.facing
        self.room = room
        self.objective = Objective(game, room) if room.is_loaded and game.is_playing else None

    def _observe(self, game: Game, picture: Picture, first: bool) -> Observation:
        if self.args.small:
            picture = picture[::2, ::2]
        with paceline.phase("observation"):
            with paceline.phase("stack"):
                stacked = self._stack(picture, first)
            with paceline.phase("image"):
                image = self._image(stacked)
            with paceline.phase("information"):
                facts = self.information.vector(game, self.objective, self.arrival)
        return Observation(image, facts)

    def _stack(self, picture: Picture, first: bool) -> torch.Tensor | None:
        if self.rolling is not None:
            (self.rolling.fill if first else self.rolling.push)(picture)
            return None
        self.frames.extend([picture] * (STACK if first else 1))
        return stack_arrays(self.frames) if self.args.stack else stack_tensors(self.frames)

    def _image(self, stacked: torch.Tensor | None) -> torch.Tensor:
        if stacked is None:
            assert self.rolling is not None  # noqa: S101 (nothing else leaves out the stack)
            return self.rolling.image()
        return image_in_two(stacked) if self.args.image else image_in_three(stacked)
