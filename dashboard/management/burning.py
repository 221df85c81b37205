"""A second program that burns every core while some runs are measured: these must not be judged."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from dashboard.models import Run

# It ends by itself with the program that started it, even where that was killed.
BURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(10_000))\n"
SHARE = 0.25


class Burner:
    """Burns while any of the runs that were drawn is measured; at other times nothing of it runs."""

    def __init__(self, ids: Sequence[int], chance: random.Random) -> None:
        self.drawn = set(chance.sample(list(ids), round(SHARE * len(ids)))) if ids else set()
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def follow(self, runs: Iterable[Run]) -> None:
        """Start or stop, as the runs' states ask for."""
        wanted = any(run.pk in self.drawn and run.state == Run.State.MEASURING for run in runs)
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
