"""The replay memory, as a list of experiences or as a ring of arrays: both hold the same in the same places.

An experience has its place by its round and its game, whenever it arrives. What follows it is found a row
further on, so that no picture is kept twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from arguments import Args
from numpy.typing import NDArray
from pictures import STACK, Pictures, size_of_picture


class Experience(NamedTuple):
    """What one decision of one game was and led to."""

    round: int
    game: int
    view: Pictures
    action: int
    reward: float
    ended: bool


class Batch(NamedTuple):
    """Experiences to learn from; `onward` is what the value of `following` counts, 0 behind an end."""

    views: NDArray[Any]
    actions: NDArray[np.int64]
    returns: NDArray[np.float32]
    following: NDArray[Any]
    onward: NDArray[np.float32]


class Buffers:
    """Arrays for the views of every batch of an epoch, made once; in pinned memory for CUDA."""

    def __init__(self, args: Args, shape: tuple[int, ...]) -> None:
        self.args = args
        self.shape = shape
        number = args.epoch * args.samples // (args.batch_size or 1)
        self.made = [(self._new(), self._new()) for _ in range(number)] if args.preallocate else []

    def _new(self) -> NDArray[Any]:
        kind = torch.uint8 if self.args.uint8 else torch.float32
        pinned = self.args.device == "cuda" and bool(self.args.preallocate)
        size = (self.args.batch_size, *self.shape)
        array: NDArray[Any] = torch.empty(size, dtype=kind, pin_memory=pinned).numpy()
        return array

    def of(self, batch: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The two arrays of one batch."""
        return self.made[batch] if self.made else (self._new(), self._new())


class Memory:
    """What list and ring share: where a place is, and which may be drawn."""

    def __init__(self, args: Args) -> None:
        self.args = args
        self.games = args.environments
        self.rows = int(args.capacity or 0) // self.games
        self.rounds = self.shown = 0
        self.shape = (STACK, *size_of_picture(args))
        self.buffers = Buffers(args, self.shape)
        self.powers = [args.discount**ahead for ahead in range(args.horizon + 1)]

    def kept(self, views: Any) -> Any:
        """Pictures as they are kept: bytes, or four times as much."""
        return views if self.args.uint8 else views.astype(np.float32) * np.float32(1 / 255)

    def write(self, experiences: Sequence[Experience]) -> None:
        raise NotImplementedError

    def gather(self, rounds: NDArray[np.int64], games: NDArray[np.int64], batch: int) -> Batch:
        raise NotImplementedError

    def megabytes(self) -> float:
        """What the pictures of all kept experiences take."""
        bytes_each = float(np.prod(self.shape)) * (1 if self.args.uint8 else 4)
        return min(self.rounds, self.rows) * self.games * bytes_each / 1e6

    def show(self) -> None:
        """Let all rounds be drawn from that were handed over and written."""
        self.shown = self.rounds

    def sample(self, chance: np.random.Generator, batch: int) -> Batch:
        """Draw a batch, the one of this number in its epoch, from places that this epoch doesn't write to."""
        size = int(self.args.batch_size or 0)
        overwritten = self.shown + self.args.epoch // self.games - self.rows
        oldest, newest = max(0, overwritten), self.shown - self.args.horizon
        return self.gather(
            chance.integers(oldest, newest, size=size), chance.integers(self.games, size=size), batch
        )


class Rows(Memory):
    """A list with a tuple for each experience."""

    def __init__(self, args: Args) -> None:
        super().__init__(args)
        # Where nothing was written, as where a queue dropped it, a game counts as ended.
        empty = Experience(0, 0, self.kept(np.zeros(self.shape, dtype=np.uint8)), 0, 0.0, True)
        self.experiences = [empty] * (self.rows * self.games)

    def write(self, experiences: Sequence[Experience]) -> None:
        """Put each experience into its place."""
        for experience in experiences:
            place = experience.round % self.rows * self.games + experience.game
            self.experiences[place] = experience._replace(view=self.kept(experience.view))

    def gather(self, rounds: NDArray[np.int64], games: NDArray[np.int64], batch: int) -> Batch:
        """The experiences of these rounds and games, one by one."""
        views, actions, returns, following, onward = [], [], [], [], []
        for begin, game in zip(rounds.tolist(), games.tolist(), strict=True):
            first = self._at(begin, game)
            total, alive = 0.0, 1.0
            for ahead in range(self.args.horizon):
                experience = self._at(begin + ahead, game)
                total += alive * self.powers[ahead] * experience.reward
                alive *= not experience.ended
            views.append(first.view)
            actions.append(first.action)
            returns.append(total)
            following.append(self._at(begin + self.args.horizon, game).view)
            onward.append(alive * self.powers[-1])
        here, there = self.buffers.of(batch) if self.args.preallocate else (None, None)
        return Batch(
            np.stack(views, out=here),
            np.array(actions, dtype=np.int64),
            np.array(returns, dtype=np.float32),
            np.stack(following, out=there),
            np.array(onward, dtype=np.float32),
        )

    def _at(self, begin: int, game: int) -> Experience:
        return self.experiences[begin % self.rows * self.games + game]


class Ring(Memory):
    """An array for each part of an experience."""

    def __init__(self, args: Args) -> None:
        super().__init__(args)
        places = self.rows * self.games
        # Pages that nothing is written to take no memory.
        self.views = np.zeros((places, *self.shape), dtype=np.uint8 if args.uint8 else np.float32)
        self.actions = np.zeros(places, dtype=np.int64)
        self.rewards = np.zeros(places, dtype=np.float64)
        self.ended = np.ones(places, dtype=np.bool_)

    def write(self, experiences: Sequence[Experience]) -> None:
        """Put all experiences into their places at once."""
        if not experiences:
            return
        rounds, games, views, actions, rewards, ended = zip(*experiences, strict=True)
        places = np.array(rounds) % self.rows * self.games + np.array(games)
        self.views[places] = self.kept(np.stack(views))
        self.actions[places] = actions
        self.rewards[places] = rewards
        self.ended[places] = ended

    def gather(self, rounds: NDArray[np.int64], games: NDArray[np.int64], batch: int) -> Batch:
        """The experiences of these rounds and games, all at once."""
        first, last = ((rounds + ahead) % self.rows * self.games + games for ahead in (0, self.args.horizon))
        total, alive = np.zeros(len(first)), np.ones(len(first))
        for ahead in range(self.args.horizon):
            places = (rounds + ahead) % self.rows * self.games + games
            total += alive * self.powers[ahead] * self.rewards[places]
            alive *= ~self.ended[places]
        here, there = self.buffers.of(batch)
        # With mode "raise" numpy would gather into an array of its own first.
        np.take(self.views, first, axis=0, out=here, mode="clip")
        np.take(self.views, last, axis=0, out=there, mode="clip")
        onward = (alive * self.powers[-1]).astype(np.float32)
        return Batch(here, self.actions[first], total.astype(np.float32), there, onward)


def memory(args: Args) -> Memory:
    """The memory that the arguments name."""
    return Ring(args) if args.memory == "ring" else Rows(args)
