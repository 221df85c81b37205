"""A second program that burns every core while some runs are measured: these must not be judged."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

# It ends by itself with the program that started it, even where that was killed.
BURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(10_000))\n"
SHARE = 0.25
LOOK_SECONDS = 0.5


def draw_runs(ids: Sequence[int], chance: random.Random) -> set[int]:
    """The runs beside which a program burns, drawn by lot."""
    return set(chance.sample(list(ids), round(SHARE * len(ids))))


class Burner:
    """Burns while `is_wanted` says so; at other times nothing of it runs."""

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        self.is_wanted = is_wanted
        self.processes: list[subprocess.Popen[bytes]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self.stop()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """Start or stop, as it is wanted."""
        wanted = self.is_wanted()
        if wanted and not self.processes:
            for core in sorted(os.sched_getaffinity(0)):
                process = subprocess.Popen([sys.executable, "-c", BURN])
                self.processes.append(process)
                # Left to itself the system packs them on one core and leaves the others to what is measured.
                os.sched_setaffinity(process.pid, {core})
        elif not wanted:
            self.stop()

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes = []
