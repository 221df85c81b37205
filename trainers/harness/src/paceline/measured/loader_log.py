"""What this process's DataLoaders with workers took in the measured window, and who waited for whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..statistics import median
from .helper_records import HelperTotals

LOADERS_LIMIT = 20
OTHERS = "(other datasets)"
# The loop starves where it waits for longer than this share of a step; the workers do where so many batches
# lie ready when it asks, and they don't fetch all the time. To take a batch that lies ready may last as well:
# workers that have nothing to do half of the time starve no loop.
STARVING_SHARE = 0.1
READY_SHARE = 0.9
IDLE_SHARE = 0.5
# A worker is slow that takes longer than the others by this factor, and by so many standard errors.
SLOW_FACTOR = 1.2
STANDARD_ERRORS = 4.0
FEWEST_BATCHES = 5

Children = Mapping[int, HelperTotals]


@dataclass(slots=True)
class WorkerWaits:
    """The batches that one worker has delivered and the seconds that the loop waited for them."""

    batches: int = 0
    seconds: float = 0.0
    pids: set[int] = field(default_factory=set)


@dataclass(slots=True)
class LoaderTotals:
    """The workers of the loaders of datasets of one type, and how many batches lay ready."""

    dataset: str
    ready: int = 0
    workers: dict[int, WorkerWaits] = field(default_factory=dict)

    def find_worker(self, number: int) -> WorkerWaits:
        """Return what is known of the worker of that number."""
        return self.workers.setdefault(number, WorkerWaits())


@dataclass(frozen=True, slots=True)
class _Fetching:
    """How long a worker took for its batches: their number, the mean, and its variance."""

    batches: float
    seconds: float
    mean: float
    variance: float


class LoaderLog:
    """Keeps how long the loop waits for batches while the window is open."""

    def __init__(self) -> None:
        self._open = False
        # By the name of the dataset's type: each epoch may make a dataset and a loader of its own.
        self._loaders: dict[str, LoaderTotals] = {}

    def open_window(self) -> None:
        """Keep waits from now on."""
        self._open = True

    def close_window(self) -> None:
        """Keep no more."""
        self._open = False

    def add_worker(self, dataset: object, worker: int, pid: int | None) -> None:
        """Note which process is a worker of this dataset's loader, inside the window or before it."""
        if pid is not None:
            self._find_loader(dataset).find_worker(worker).pids.add(pid)

    def add_wait(self, dataset: object, worker: int, seconds: float, *, ready: bool) -> None:
        """Add one batch, for which the loop waited so long."""
        if self._open:
            loader = self._find_loader(dataset)
            waits = loader.find_worker(worker)
            waits.batches += 1
            waits.seconds += seconds
            loader.ready += ready

    def result(self, before: Children, after: Children, steps: int, seconds: float) -> list[dict[str, Any]]:
        """Return a row for each type of dataset that gave batches; `before` and `after` hold the workers'."""
        rows = [_loader_row(loader, before, after, steps, seconds) for loader in self._loaders.values()]
        return [row for row in rows if row["batches"]]

    def _find_loader(self, dataset: object) -> LoaderTotals:
        name = type(dataset).__name__[:100]
        if name not in self._loaders and len(self._loaders) >= LOADERS_LIMIT:
            name = OTHERS
        return self._loaders.setdefault(name, LoaderTotals(name))


def _loader_row(
    loader: LoaderTotals, before: Children, after: Children, steps: int, seconds: float
) -> dict[str, Any]:
    fetching = {
        worker: _sum_fetching(waits.pids, before, after) for worker, waits in sorted(loader.workers.items())
    }
    batches = sum(waits.batches for waits in loader.workers.values())
    waited = math.fsum(waits.seconds for waits in loader.workers.values())
    fetched = math.fsum(worker.batches for worker in fetching.values())
    workers = [
        {
            "worker": worker,
            "batches": loader.workers[worker].batches / steps,
            "fetch_time": own.mean,
            "wait_time": loader.workers[worker].seconds / steps,
            "busy": own.seconds / seconds,
        }
        for worker, own in fetching.items()
        if own.batches
    ]
    ready = loader.ready / batches if batches else None
    return {
        "dataset": loader.dataset,
        "batches": batches / steps,
        "wait_time": waited / steps,
        "fetch_time": math.fsum(own.seconds for own in fetching.values()) / fetched if fetched else None,
        "ready": ready,
        "workers": workers[:256],
        "slowest": find_slow_worker(fetching),
        "starved": _find_starved(waited / seconds, ready, [row["busy"] for row in workers]),
    }


def _sum_fetching(pids: set[int], before: Children, after: Children) -> _Fetching:
    """Sum what a worker's processes did in the window: an epoch may have its own."""
    sums = [0.0, 0.0, 0.0]
    for pid in pids & set(after):
        now, then = after[pid], before.get(pid, HelperTotals())
        sums[0] += now.batches - then.batches
        sums[1] += now.fetch - then.fetch
        sums[2] += now.fetch_squared - then.fetch_squared
    number, seconds, squared = sums
    mean = seconds / number if number else 0.0
    spread = max(0.0, squared - number * mean * mean) / (number - 1) if number > 1 else math.inf
    return _Fetching(number, seconds, mean, spread / number if number else math.inf)


def find_slow_worker(fetching: Mapping[int, _Fetching]) -> int | None:
    """Return the worker that takes longer for a batch than the others, None where that isn't a single one."""
    slow = []
    for worker, own in fetching.items():
        others = [other for index, other in fetching.items() if index != worker and other.batches]
        if others and own.batches >= FEWEST_BATCHES:
            middle = median([other.mean for other in others])
            error = math.sqrt(own.variance + max(other.variance for other in others))
            if own.mean > SLOW_FACTOR * middle and own.mean - middle > STANDARD_ERRORS * error:
                slow.append(worker)
    return slow[0] if len(slow) == 1 else None


def _find_starved(share: float, ready: float | None, busy: Sequence[float]) -> str | None:
    most_busy = max(busy) if ready is not None and ready >= READY_SHARE and busy else 1.0
    if share > STARVING_SHARE and most_busy >= IDLE_SHARE:
        return "loop"
    return "workers" if most_busy < READY_SHARE else None


log = LoaderLog()
"""That of this process."""
