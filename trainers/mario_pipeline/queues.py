"""The way from the collectors into the memory: one queue behind one lock, or a queue for each collector.

Either has a thread that consolidates: it takes experiences from the queues and writes them into the memory.
What it does and how often is the same in every run; only the waiting differs.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from time import perf_counter
from types import TracebackType
from typing import Any

import paceline
from arguments import Args
from memory import Experience, Memory
from threads import Worker
from wait_times import WaitTimes

REST = -1
"""The order to consolidate what is left, which is waited for."""


class TimedLock:
    """A lock that knows how long this process waited for it; one of threads, unless another is given."""

    def __init__(self, lock: Any = None, times: WaitTimes | None = None) -> None:
        self.lock = Lock() if lock is None else lock
        self.times = times
        self.waited = 0.0
        self.taken = 0

    def __enter__(self) -> None:
        begin = perf_counter()
        with paceline.phase("lock_wait"):
            self.lock.acquire()
        # Whoever holds the lock may add to its numbers.
        waited = perf_counter() - begin
        self.waited += waited
        self.taken += 1
        if self.times is not None:
            self.times.add(waited)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.release()


class Queues:
    """What both ways share: the thread that consolidates, and the orders that it gets."""

    def __init__(self, args: Args, memory: Memory) -> None:
        self.args = args
        self.memory = memory
        self.limit = args.queue_limit
        self.lock: TimedLock | None = None
        self.processor = Worker("processor", self._obey)

    def put(self, collector: int, experience: Experience) -> None:
        """Hand over one experience, in a collector's thread."""
        raise NotImplementedError

    def end_round(self) -> None:
        """Note that all collectors have handed over a round's experiences."""
        self.memory.rounds += 1

    def flush(self) -> None:
        """Return when all that was handed over is in the memory; raises what failed there."""
        self._order_rest()
        with paceline.phase("wait"):
            self.processor.wait()

    @property
    def drops(self) -> int:
        """Experiences that found no place in a queue so far."""
        raise NotImplementedError

    def close(self) -> None:
        """End the thread."""
        self.processor.close()

    def _order_rest(self) -> None:
        raise NotImplementedError

    def _obey(self, order: int) -> bool:
        """Do what is ordered, in the thread; return whether that is waited for."""
        raise NotImplementedError


class Shared(Queues):
    """One list behind one lock, which collectors, the processor and the learner ask for."""

    def __init__(self, args: Args, memory: Memory) -> None:
        super().__init__(args, memory)
        self.lock = self.guard = TimedLock()
        self.pending: list[Experience] = []
        self.dropped = 0
        self.waiting = 0

    def put(self, collector: int, experience: Experience) -> None:  # noqa: ARG002  # all share one list
        """Append to the one list, if it has room."""
        with self.guard, paceline.phase("enqueue"):
            if len(self.pending) < self.limit:
                self.pending.append(experience)
            else:
                self.dropped += 1
        self.processor.order(1)

    @property
    def drops(self) -> int:
        return self.dropped

    def _order_rest(self) -> None:
        self.processor.order(REST)

    def _obey(self, order: int) -> bool:
        self.waiting += max(order, 0)
        if self.waiting == self.args.chunk or order == REST:
            self._consolidate(self.waiting)
            self.waiting = 0
        return order == REST

    def _consolidate(self, number: int) -> None:
        """Move so many experiences, while nobody else may touch list or memory."""
        with self.guard, paceline.phase("consolidate"):
            taken, self.pending = self.pending[:number], self.pending[number:]
            self.memory.write(taken)


class Local(Queues):
    """A queue for each collector, which only that one fills and only the consolidation empties.

    Appending to a deque and popping from it are atomic in Python: there is no lock to wait for.
    """

    def __init__(self, args: Args, memory: Memory) -> None:
        super().__init__(args, memory)
        self.queues: list[deque[Experience]] = [deque() for _ in range(args.collectors or 1)]
        self.dropped = [0] * len(self.queues)
        self.waiting = 0

    def put(self, collector: int, experience: Experience) -> None:
        """Append to the collector's own queue, if it has room."""
        with paceline.phase("enqueue"):
            queue = self.queues[collector]
            if len(queue) < self.limit:
                queue.append(experience)
            else:
                self.dropped[collector] += 1

    def end_round(self) -> None:
        """Have large chunks consolidated while the collectors go on."""
        super().end_round()
        self.waiting += self.args.environments // len(self.queues)
        if self.waiting * len(self.queues) >= int(self.args.chunk or 1):
            self.processor.order(self.waiting)
            self.waiting = 0

    @property
    def drops(self) -> int:
        return sum(self.dropped)

    def _order_rest(self) -> None:
        # What was ordered so far was not answered.
        self.processor.order(self.waiting)
        self.processor.order(REST)
        self.waiting = 0

    def _obey(self, order: int) -> bool:
        if order > 0:
            with paceline.phase("consolidate"):
                self.memory.write(self._take(order))
        return order == REST

    def _take(self, number: int) -> list[Experience]:
        """So many experiences of every queue, or what it has where some were dropped."""
        return [queue.popleft() for queue in self.queues for _ in range(min(number, len(queue)))]


def queues(args: Args, memory: Memory) -> Queues:
    """The way that the arguments name; its thread is not started yet."""
    return Local(args, memory) if args.queues == "local" else Shared(args, memory)
