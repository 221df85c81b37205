"""Experiences through a multiprocessing.Queue, as the document's pipeline hands them over.

Whatever is put in is pickled by a thread of the collector, goes through a pipe, and is unpickled by whoever
takes it out: each picture is copied four times on its way.
"""

from __future__ import annotations

from multiprocessing.queues import Queue
from queue import Empty, Full
from typing import Any

from memory import Experience


class PickledQueue:
    """A process's own look at a queue. What finds no free slot is not put in."""

    def __init__(self, queue: Queue[Any], slots: int) -> None:
        self.queue = queue
        self.slots = slots
        # A process that ends must not wait for somebody to empty the pipe: nobody is left who would.
        queue.cancel_join_thread()

    def __len__(self) -> int:
        return self.queue.qsize()

    def put(self, experience: Experience) -> bool:
        """Have an experience sent; False where no slot is free."""
        try:
            self.queue.put_nowait(tuple(experience))
        except Full:
            return False
        return True

    def take(self, most: int) -> list[Experience]:
        """Take the oldest experiences out, as far as the pipe has them."""
        taken: list[Experience] = []
        while len(taken) < most:
            try:
                taken.append(Experience(*self.queue.get_nowait()))
            except Empty:
                break
        return taken
