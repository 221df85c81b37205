"""The replay memory, as rows of Python objects or as arrays: the same transitions in the same order."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from benchmark_support.checkpoints import State, generator_state, restore_generator
from environment import Floats, Integers

Transition = tuple[Any, int, float, Any, bool]
"""View, action, reward, next view, whether the episode ended."""

Batch = tuple[Floats, Integers, Floats, Floats, Floats]
"""The same as arrays with a row for each transition; views are transitions x features."""


class PositionSampler:
    """Draws positions, 0 the oldest: distinct ones by random.sample, or any by numpy, which is faster."""

    def __init__(self, seed: int, by_numpy: bool) -> None:
        self._chance = random.Random(seed)
        self._random = np.random.default_rng(seed) if by_numpy else None

    def state(self) -> State:
        """Return where its random numbers are, for a checkpoint."""
        numbers = generator_state(self._random) if self._random is not None else ""
        return {"chance": generator_state(self._chance), "numpy": numbers}

    def restore(self, state: State) -> None:
        """Go on from there; by the other kind of draw than before, from its beginning."""
        restore_generator(self._chance, state["chance"])
        if self._random is not None and state["numpy"]:
            restore_generator(self._random, state["numpy"])

    def positions(self, entries: int, size: int) -> Sequence[int] | Integers:
        """Return `size` positions of `entries`."""
        if self._random is not None:
            return self._random.integers(entries, size=size)
        return self._chance.sample(range(entries), size)

    def rows(self, rows: Sequence[Transition], size: int) -> list[Transition]:
        """Return `size` of these rows."""
        if self._random is not None:
            return [rows[at] for at in self.positions(len(rows), size)]
        return self._chance.sample(rows, size)


class Rows:
    """Transitions one by one, the oldest forgotten first."""

    def __init__(self, capacity: int, position_sampler: PositionSampler) -> None:
        self._rows: deque[Transition] = deque(maxlen=capacity)
        self._position_sampler = position_sampler

    def __len__(self) -> int:
        return len(self._rows)

    def push(self, *transition: Any) -> None:
        """Keep one transition."""
        self._rows.append(transition)

    def push_batch(self, *arrays: Any) -> None:
        """Keep one transition for each row of the arrays."""
        self._rows.extend(zip(*arrays, strict=True))

    def entries(self) -> Batch | None:
        """Return all transitions, the oldest first; None where there are none."""
        return _stacked(self._rows) if self._rows else None

    def sample(self, size: int) -> Batch:
        """Return a random batch. A deque walks from its nearer end to each of the rows."""
        return _stacked(self._position_sampler.rows(self._rows, size))


class ListRows(Rows):
    """The same in a list, which finds each row at once: a full one is overwritten from its beginning."""

    def __init__(self, capacity: int, position_sampler: PositionSampler) -> None:
        super().__init__(capacity, position_sampler)
        self._list: list[Transition] = []
        self._capacity = capacity
        self._oldest = 0

    def __len__(self) -> int:
        return len(self._list)

    def push(self, *transition: Any) -> None:
        """Keep one transition."""
        if len(self._list) < self._capacity:
            self._list.append(transition)
            return
        self._list[self._oldest] = transition
        self._oldest = (self._oldest + 1) % self._capacity

    def push_batch(self, *arrays: Any) -> None:
        """Keep one transition for each row of the arrays."""
        for transition in zip(*arrays, strict=True):
            self.push(*transition)

    def entries(self) -> Batch | None:
        """Return all transitions, the oldest first; None where there are none."""
        rows = self._list[self._oldest :] + self._list[: self._oldest]
        return _stacked(rows) if rows else None

    def sample(self, size: int) -> Batch:
        """Return a random batch."""
        entries = len(self._list)
        positions = self._position_sampler.positions(entries, size)
        return _stacked([self._list[(self._oldest + at) % entries] for at in positions])


def _stacked(transitions: Iterable[Transition]) -> Batch:
    views, actions, rewards, following, ended = zip(*transitions, strict=True)
    return (
        np.array(views, dtype=np.float32),
        np.array(actions, dtype=np.int64),
        np.array(rewards, dtype=np.float32),
        np.array(following, dtype=np.float32),
        np.array(ended, dtype=np.float32),
    )


class Ring:
    """Transitions in arrays of a fixed size: a push is a copy of a block, a sample one gathering."""

    def __init__(self, capacity: int, position_sampler: PositionSampler, features: int) -> None:
        self._position_sampler = position_sampler
        self._capacity = capacity
        self._next = self._entries = 0
        self._arrays: Batch = (
            np.zeros((capacity, features), dtype=np.float32),
            np.zeros(capacity, dtype=np.int64),
            np.zeros(capacity, dtype=np.float32),
            np.zeros((capacity, features), dtype=np.float32),
            np.zeros(capacity, dtype=np.float32),
        )

    def __len__(self) -> int:
        return self._entries

    def push(self, *transition: Any) -> None:
        """Keep one transition."""
        for array, value in zip(self._arrays, transition, strict=True):
            array[self._next] = value
        self._advance(1)

    def push_batch(self, *arrays: Any) -> None:
        """Keep one transition for each row of the arrays."""
        size = len(arrays[0])
        room = self._capacity - self._next
        for array, rows in zip(self._arrays, arrays, strict=True):
            array[self._next : self._next + size] = rows[:room]
            if size > room:
                array[: size - room] = rows[room:]
        self._advance(size)

    def entries(self) -> Batch | None:
        """Return all transitions, the oldest first; None where there are none."""
        return self._at(np.arange(self._entries)) if self._entries else None

    def sample(self, size: int) -> Batch:
        """Return a random batch."""
        return self._at(np.asarray(self._position_sampler.positions(self._entries, size)))

    def _at(self, positions: Integers) -> Batch:
        """Return the transitions at these positions, 0 the oldest."""
        if self._entries == self._capacity:
            positions = (positions + self._next) % self._capacity
        views, actions, rewards, following, ended = (array.take(positions, axis=0) for array in self._arrays)
        return views, actions, rewards, following, ended

    def _advance(self, size: int) -> None:
        self._next = (self._next + size) % self._capacity
        self._entries = min(self._capacity, self._entries + size)


def memory(kind: str, capacity: int, position_sampler: PositionSampler, features: int) -> Rows | Ring:
    """Return the memory of this kind: deque, list or ring."""
    if kind == "ring":
        return Ring(capacity, position_sampler, features)
    return (ListRows if kind == "list" else Rows)(capacity, position_sampler)
