"""The thread that moves experiences from where processes hand them over into the replay memory, in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from threading import Event, Thread
from time import sleep
from typing import Protocol

import paceline
from arguments import Args
from memory import Experience, Memory
from queues import TimedLock

POLL_SECONDS = 0.001


class Handover(Protocol):
    """Where collectors put experiences and the consolidation takes them out: a ring, or a queue."""

    slots: int

    def __len__(self) -> int: ...

    def put(self, experience: Experience) -> bool: ...

    def take(self, most: int) -> list[Experience]: ...


class Consolidation:
    """Moves experiences while collectors play."""

    def __init__(self, args: Args, sources: Sequence[Handover], lock: TimedLock | None, some: Memory) -> None:
        self.sources = sources
        self.lock = lock
        self.memory = some
        self.chunk = int(args.chunk or 1)
        # At most half of the slots are waited for, or all that collectors play would be dropped.
        self.least = max(1, min(self.chunk, sum(source.slots for source in sources) // 2))
        self.written = [0] * args.environments
        self.experiences = self.chunks = 0
        self.over = Event()
        self.failure: BaseException | None = None
        self.thread = Thread(target=self._consolidate, name="processor", daemon=True)
        self.thread.start()

    def close(self) -> None:
        """End the thread."""
        self.over.set()
        self.thread.join()

    @property
    def waiting(self) -> int:
        """Experiences that no chunk has taken yet."""
        return sum(len(source) for source in self.sources)

    def _consolidate(self) -> None:
        try:
            while not self.over.is_set():
                if self.waiting < self.least:
                    sleep(POLL_SECONDS)
                    continue
                for source in self.sources:
                    with self.lock or nullcontext():
                        self._write(source.take(self.chunk))
        except BaseException as error:  # noqa: BLE001  # a thread's border: the loop raises it
            self.failure = error

    def _write(self, taken: list[Experience]) -> None:
        if not taken:
            return
        with paceline.phase("consolidate"):
            self.memory.write(taken)
        for experience in taken:
            self.written[experience.game] = experience.round + 1
        # What all games have handed over can be drawn.
        self.memory.rounds = min(self.written)
        self.experiences += len(taken)
        self.chunks += 1
