"""Experiences in memory that processes share: rings of slots, with one lock for all or one writer for each.

Collectors, consolidation and learner may share one ring and ask one lock for it. A ring with one writer and
one reader needs none: the writer alone moves its head, behind the slot that it has filled, and the reader its
tail. That rests on stores seen in order, as on x86: elsewhere a reader might see a head before its slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from typing import Any

import numpy as np
from arguments import Args
from memory import Experience
from numpy.typing import NDArray
from pictures import STACK, size_of_picture

HEAD, TAIL = 0, 1
"""Places of the two counts of a ring: experiences that were written, and that were taken."""


@dataclass(frozen=True)
class RingMemory:
    """What processes hand to each other of a ring: raw shared memory, and how large it is."""

    slots: int
    shape: tuple[int, ...]
    views: Any
    rows: Any
    counts: Any


def allocate_ring(context: SpawnContext, args: Args, slots: int) -> RingMemory:
    shape = (STACK, *size_of_picture(args))
    return RingMemory(
        slots,
        shape,
        context.RawArray("B", slots * int(np.prod(shape))),
        context.RawArray("d", slots * len(Experience._fields)),
        context.RawArray("q", 2),
    )


class SharedRing:
    """A process's own look at a ring. What finds no free slot is not put in."""

    def __init__(self, memory: RingMemory) -> None:
        self.slots = memory.slots
        self.views: NDArray[np.uint8] = np.frombuffer(memory.views, dtype=np.uint8).reshape(
            memory.slots, *memory.shape
        )
        self.rows: NDArray[np.float64] = np.frombuffer(memory.rows, dtype=np.float64).reshape(
            memory.slots, -1
        )
        self.counts: NDArray[np.int64] = np.frombuffer(memory.counts, dtype=np.int64)

    def __len__(self) -> int:
        return int(self.counts[HEAD] - self.counts[TAIL])

    def put(self, experience: Experience) -> bool:
        """Copy an experience into the next slot; False where none is free."""
        head = int(self.counts[HEAD])
        if head - int(self.counts[TAIL]) >= self.slots:
            return False
        slot = head % self.slots
        self.views[slot] = experience.view
        self.rows[slot] = (
            experience.round,
            experience.game,
            0,
            experience.action,
            experience.reward,
            experience.ended,
        )
        self.counts[HEAD] = head + 1
        return True

    def take(self, most: int) -> list[Experience]:
        """Take the oldest experiences out, with pictures of their own."""
        tail = int(self.counts[TAIL])
        number = min(most, len(self))
        slots = [(tail + offset) % self.slots for offset in range(number)]
        views = self.views[slots]
        taken = [
            Experience(int(row[0]), int(row[1]), view, int(row[3]), float(row[4]), bool(row[5]))
            for row, view in zip(self.rows[slots], views, strict=True)
        ]
        self.counts[TAIL] = tail + number
        return taken
