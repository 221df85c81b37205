"""Threads that do what they are ordered, for collectors, consolidation and learner."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

OrderT = TypeVar("OrderT")


class Worker(Generic[OrderT]):
    """A thread that does its orders one after the other. `do` returns whether its order is waited for.

    Orders and answers pass through queues that are written in C: how often Python runs must not depend on
    who waits for whom, or no counter would be exact.
    """

    def __init__(self, name: str, do: Callable[[OrderT], bool]) -> None:
        self.do = do
        self.orders: SimpleQueue[OrderT | None] = SimpleQueue()
        self.answers: SimpleQueue[BaseException | None] = SimpleQueue()
        self.thread = Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    def order(self, order: OrderT) -> None:
        """Have something done, and don't wait for it."""
        self.orders.put(order)

    def wait(self) -> None:
        """Return when the next order that is waited for is done; raises what failed meanwhile."""
        failed = self.answers.get()
        if failed is not None:
            raise failed

    def close(self) -> None:
        """End the thread, when it has done what was ordered."""
        self.orders.put(None)
        self.thread.join()

    def _work(self) -> None:
        while (order := self.orders.get()) is not None:
            try:
                if self.do(order):
                    self.answers.put(None)
            except BaseException as error:  # noqa: BLE001  # a thread's border: wait raises it
                self.answers.put(error)
