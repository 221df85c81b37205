"""The games: Crazy Climber for the Atari 2600, which the package ale-py emulates, or our own side-scroller.

`SequentialGames` plays each game by itself and makes its pictures in Python, as the document's collectors
do; `VectorGames` has all of them in one AtariVectorEnv, whose threads know nothing of Python. With both a
decision lasts four frames; the brighter of the last two are one picture, and the last four pictures are seen
at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import paceline
from arguments import Args
from benchmark_support.nes.console import MissingEmulatorError
from numpy.typing import NDArray
from pictures import FRAMES, STACK, WAITS, Pictures, Result, size_of_picture
from side_scroller import PLAYER, ScrollerGame

GAME = "crazy_climber"

SCREEN = (210, 160)

MISSING = "mario_pipeline can't run here, since its emulator, the package ale-py, is missing"


def emulator() -> Any:
    """The package ale-py, quiet; raises MissingEmulatorError."""
    try:
        import ale_py
    except ImportError as error:
        raise MissingEmulatorError(f"{MISSING}: {error}") from error
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


class Game:
    """One game with a picture of its own making."""

    def __init__(self, ale_py: Any, args: Args, seed: int) -> None:
        self.rows, self.columns = size_of_picture(args)
        self.steps_limit = args.game_steps
        self.console = ale_py.ALEInterface()
        self.console.setInt("random_seed", seed)
        self.console.setFloat("repeat_action_probability", 0.0)
        self.console.loadROM(ale_py.roms.get_rom_path(GAME))
        self.actions = self.console.getMinimalActionSet()
        self.chance = np.random.default_rng(seed)
        self.steps = 0

    def reset(self) -> Pictures:
        """Begin a game; returns its first view."""
        self.console.reset_game()
        self.steps = 0
        for _ in range(self.chance.integers(WAITS + 1)):
            self.console.act(self.actions[0])
        self.view = np.repeat(self._picture(self.console.getScreenGrayscale())[None], STACK, axis=0)
        return self.view

    def step(self, action: int) -> tuple[Pictures, float, bool]:
        """Play one decision; a game that ends is begun anew at once."""
        reward, last = 0, self.console.getScreenGrayscale()
        for frame in range(FRAMES):
            reward += self.console.act(self.actions[action])
            if frame == FRAMES - 2:
                last = self.console.getScreenGrayscale()
        self.steps += 1
        if self.console.game_over() or self.steps >= self.steps_limit:
            return self.reset(), float(np.sign(reward)), True
        picture = self._picture(np.maximum(last, self.console.getScreenGrayscale()))
        self.view = np.concatenate([self.view[1:], picture[None]])
        return self.view, float(np.sign(reward)), False

    def _picture(self, screen: Pictures) -> Pictures:
        """The screen in small: each pixel the mean of a few."""
        down, across = SCREEN[0] // self.rows, SCREEN[1] // self.columns
        part = screen[: self.rows * down, : self.columns * across]
        return part.reshape(self.rows, down, self.columns, across).mean(axis=(1, 3)).astype(np.uint8)


class SequentialGames:
    """Games that are played one after the other."""

    def __init__(self, args: Args, count: int, seed: int) -> None:
        ale_py = emulator()
        self.games = [Game(ale_py, args, seed + at) for at in range(count)]

    def reset(self) -> Pictures:
        return np.stack([game.reset() for game in self.games])

    def step(self, actions: NDArray[np.int64]) -> Result:
        """Play one decision of every game."""
        views, rewards, ended = zip(
            *(game.step(int(action)) for game, action in zip(self.games, actions, strict=True)), strict=True
        )
        gained = np.array(rewards, dtype=np.float32)
        # A storey is one reward: how far a game has come is what it was rewarded with.
        return Result(np.stack(views), gained, np.array(ended), gained)

    def close(self) -> None:
        """Nothing is left open."""


class VectorGames:
    """The same games in one AtariVectorEnv, with as many threads as there are cores."""

    def __init__(self, args: Args, count: int, seed: int) -> None:
        rows, columns = size_of_picture(args)
        self.seed = seed
        self.games = emulator().AtariVectorEnv(
            GAME,
            count,
            num_threads=min(count, 2),
            max_num_frames_per_episode=args.game_steps * FRAMES,
            autoreset_mode="SameStep",
            img_height=rows,
            img_width=columns,
            stack_num=STACK,
            frameskip=FRAMES,
            noop_max=WAITS,
        )

    def reset(self) -> Pictures:
        views: Pictures = self.games.reset(seed=self.seed)[0].copy()
        return views

    def step(self, actions: NDArray[np.int64]) -> Result:
        """Play one decision of every game."""
        views, rewards, ended, cut, _ = self.games.step(actions)
        gained = rewards.astype(np.float32)
        return Result(views.copy(), gained, ended | cut, gained)

    def close(self) -> None:
        self.games.close()


class ScrollerGames:
    """Games of our side-scroller, which take turns on the one console of this process."""

    def __init__(self, args: Args, count: int, seed: int) -> None:
        PLAYER.borrow()
        self.games = [ScrollerGame(args, size_of_picture(args), seed + at) for at in range(count)]

    def reset(self) -> Pictures:
        return np.stack([game.reset() for game in self.games])

    def step(self, actions: NDArray[np.int64]) -> Result:
        """Play one decision of every game."""
        turns = [game.step(int(action)) for game, action in zip(self.games, actions, strict=True)]
        views, rewards, ended, advances = zip(*turns, strict=True)
        gained, there = np.array(rewards, dtype=np.float32), np.array(advances, dtype=np.float32)
        return Result(np.stack(views), gained, np.array(ended), there)

    def close(self) -> None:
        PLAYER.give_back()


Games = SequentialGames | VectorGames | ScrollerGames


def games(args: Args, count: int, seed: int) -> Games:
    """So many games, whose seeds follow each other."""
    if args.game == "side_scroller":
        return ScrollerGames(args, count, seed)
    return VectorGames(args, count, seed) if args.vectorized else SequentialGames(args, count, seed)


def play(some: Games, actions: NDArray[np.int64]) -> Result:
    """Play one decision of every game."""
    with paceline.phase("env"):
        return some.step(actions)
