"""The replay memory: transitions in a deque, or the same ones in arrays."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from benchmark_support.checkpoints import State, generator_state, restore_generator
from numpy.typing import NDArray

Transition = tuple[Any, int, float, Any, bool]
"""View, action, reward, next view, whether the episode ended. Views are arrays, or lists without `memory`."""

KINDS = (np.float32, np.int64, np.float32, np.float32, np.float32)
"""The kinds of a transition's numbers in arrays."""


class PositionSampler:
    """Draws positions in the memory: distinct ones by random.sample, or any by numpy, which is faster."""

    def __init__(self, chance: random.Random, by_numpy: bool) -> None:
        self._chance = chance
        self._random = np.random.default_rng(chance.getrandbits(32)) if by_numpy else None

    def positions(self, entries: int, size: int) -> Sequence[int] | NDArray[np.int64]:
        """Return `size` positions of `entries`."""
        if self._random is not None:
            return self._random.integers(entries, size=size)
        return self._chance.sample(range(entries), size)

    def state(self) -> State:
        """Return where numpy's random numbers are, for a checkpoint; the others belong to the training."""
        return {"numpy": generator_state(self._random) if self._random is not None else ""}

    def restore(self, state: State) -> None:
        """Go on from there; by the other kind of draw than before, from its beginning."""
        if self._random is not None and state["numpy"]:
            restore_generator(self._random, state["numpy"])


class Rows(deque[Transition]):
    """Transitions as they are, the oldest forgotten first."""

    def push(self, *transition: Any) -> None:
        """Keep one transition."""
        self.append(transition)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return all transitions, the oldest first, as arrays with a row for each."""
        columns = zip(*self, strict=True) if self else ((),) * len(KINDS)
        return tuple(np.array(column, dtype=kind) for column, kind in zip(columns, KINDS, strict=True))

    def at(self, positions: Sequence[int] | NDArray[np.int64]) -> list[Transition]:
        """Return the transitions at these positions, 0 the oldest."""
        return [self[position] for position in positions]


class Ring:
    """Transitions in arrays of a fixed size; the newest overwrites the oldest."""

    def __init__(self, capacity: int, cells: int) -> None:
        self._capacity = capacity
        self._next = self._entries = 0
        self._arrays = (
            np.zeros((capacity, cells), dtype=np.float32),
            np.zeros(capacity, dtype=np.int64),
            np.zeros(capacity, dtype=np.float32),
            np.zeros((capacity, cells), dtype=np.float32),
            np.zeros(capacity, dtype=np.float32),
        )

    def __len__(self) -> int:
        return self._entries

    def push(self, view: Any, action: int, reward: float, next_view: Any, ended: bool) -> None:
        """Keep one transition."""
        at, (views, actions, rewards, next_views, ends) = self._next, self._arrays
        views[at], actions[at], rewards[at], next_views[at], ends[at] = view, action, reward, next_view, ended
        self._next = (at + 1) % self._capacity
        self._entries = min(self._capacity, self._entries + 1)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return all transitions, the oldest first, as arrays with a row for each."""
        return self.at(np.arange(self._entries))

    def at(self, positions: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Return the transitions at these positions, 0 the oldest, as arrays with a row for each."""
        found = np.asarray(positions)
        if self._entries == self._capacity:
            found = (found + self._next) % self._capacity
        return tuple(array.take(found, axis=0) for array in self._arrays)
