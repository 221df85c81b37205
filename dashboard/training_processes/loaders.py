"""The DataLoaders of a document: how long workers fetch a batch, how long the loop waits, who starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar

from dashboard.training_processes.ranks import known_median

Json = dict[str, Any]
Named = TypeVar("Named", int, str)
LOOP, WORKERS = "loop", "workers"


@dataclass(frozen=True, slots=True)
class LoaderWorker:
    """`batches` and `wait_time` are per step, `fetch_time` is per batch, `busy` a share of the window."""

    number: int
    batches: float
    fetch_time: float
    wait_time: float
    busy: float


@dataclass(frozen=True, slots=True)
class Loader:
    """A DataLoader of one rank, medians over the repetitions; `rank` is None where there is one process.

    The loop waits `wait_time` per step for its `batches`, of which the share `ready` lay there when it asked.
    `slowest` is the worker that takes longer than the others, `starved` who waits for whom, where most
    repetitions say the same.
    """

    rank: int | None
    dataset: str
    batches: float
    wait_time: float
    fetch_time: float | None
    ready: float | None
    workers: tuple[LoaderWorker, ...]
    slowest: int | None
    starved: str | None

    def find_worker(self, number: int) -> LoaderWorker | None:
        return next((worker for worker in self.workers if worker.number == number), None)


def summarize_loaders(document: Mapping[str, Any]) -> list[Loader]:
    """By rank and data set, those first for which the loop waits longest."""
    groups: dict[tuple[int | None, str], list[Json]] = {}
    for row in document.get("loaders") or []:
        groups.setdefault((row["rank"], row["dataset"]), []).append(row)
    loaders = [_summarize_loader(rank, dataset, rows) for (rank, dataset), rows in groups.items()]
    return sorted(loaders, key=lambda loader: (-loader.wait_time, loader.rank or 0, loader.dataset))


def _summarize_loader(rank: int | None, dataset: str, rows: Sequence[Json]) -> Loader:
    return Loader(
        rank=rank,
        dataset=dataset,
        batches=median(row["batches"] for row in rows),
        wait_time=median(row["wait_time"] for row in rows),
        fetch_time=known_median(rows, "fetch_time"),
        ready=known_median(rows, "ready"),
        workers=_summarize_workers(rows),
        slowest=most_named(row["slowest"] for row in rows),
        starved=most_named(row["starved"] for row in rows),
    )


def _summarize_workers(rows: Sequence[Json]) -> tuple[LoaderWorker, ...]:
    by_number: dict[int, list[Json]] = {}
    for row in rows:
        for worker in row["workers"]:
            by_number.setdefault(worker["worker"], []).append(worker)
    members = ("batches", "fetch_time", "wait_time", "busy")
    return tuple(
        LoaderWorker(number, *(median(worker[name] for worker in by_number[number]) for name in members))
        for number in sorted(by_number)
    )


def most_named(values: Iterable[Named | None]) -> Named | None:
    """What more than half say; None where they disagree, or most say nothing."""
    named = list(values)
    (value, times), *_ = Counter(named).most_common(1) or [(None, 0)]
    return value if 2 * times > len(named) else None
