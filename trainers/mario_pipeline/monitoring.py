"""The document's monitoring lines as counts and gauges, for collectors that are processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import paceline
from numpy.typing import NDArray
from wait_times import find_percentile

PERIOD = 64
"""Steps from one reading of rates and waits to the next: fewer have too few waits for a percentile."""

# What a collector counts in an array that it alone writes; times are in seconds.
HANDED, DROPPED, TAKEN, WAITED, HANDING, PLAYING, REWARDS, GAMES, DISTANCE = COUNTS = range(9)


@dataclass(frozen=True)
class Progress:
    """What the main process knows at the end of a step."""

    exploration: float
    batches: int
    samples: int
    epochs: int
    chunks: int
    waiting: int
    kept: int
    megabytes: float
    loss: Any


class Monitor:
    """Reports what has happened since the last report."""

    def __init__(
        self, counts: Sequence[NDArray[np.float64]], waits: Sequence[NDArray[np.int64]], environments: int
    ) -> None:
        self.counts = counts
        self.waits = waits
        self.environments = environments
        self.step_counts = self.period_counts = self.read_counts()
        self.period_waits = self.read_waits()
        self.batches = self.chunks = self.epochs = self.period_samples = self.period_batches = 0
        self.began = perf_counter()

    def read_counts(self) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = np.sum(self.counts, axis=0)
        return sums

    def read_waits(self) -> NDArray[np.int64]:
        sums: NDArray[np.int64] = np.sum(self.waits, axis=0)
        return sums

    def report(self, step: int, progress: Progress) -> None:
        """Report a step, and at the end of each period the rates and waits in it."""
        sums = self.read_counts()
        new, self.step_counts = sums - self.step_counts, sums
        paceline.count("experiences", self.environments)
        paceline.count("batches", progress.batches - self.batches)
        paceline.count("chunks", progress.chunks - self.chunks)
        paceline.count("queue_drops", float(new[DROPPED]))
        paceline.count("lock_acquisitions", float(new[TAKEN]))
        paceline.count("epochs", progress.epochs - self.epochs)
        self.batches, self.chunks, self.epochs = progress.batches, progress.chunks, progress.epochs
        paceline.gauge("queue_length", progress.waiting)
        paceline.gauge("replay_experiences", progress.kept)
        paceline.gauge("replay_megabytes", progress.megabytes)
        paceline.gauge("exploration", progress.exploration)
        if new[GAMES]:
            paceline.gauge("reward", float(new[REWARDS] / new[GAMES]))
            paceline.gauge("distance", float(new[DISTANCE] / new[GAMES]))
        if (step + 1) % PERIOD == 0:
            self.report_period(progress)

    def report_period(self, progress: Progress) -> None:
        now, sums, waits = perf_counter(), self.step_counts, self.read_waits()
        new, seconds = sums - self.period_counts, now - self.began
        self._report_waits(new, waits - self.period_waits)
        paceline.gauge("experience_rate", float(new[HANDED]) / seconds)
        paceline.gauge("consumption_rate", (progress.samples - self.period_samples) / seconds)
        paceline.gauge("batch_rate", (progress.batches - self.period_batches) / seconds)
        if progress.loss is not None:
            paceline.gauge("loss", float(progress.loss))
        self.period_counts, self.period_waits, self.began = sums, waits, now
        self.period_samples, self.period_batches = progress.samples, progress.batches

    def _report_waits(self, new: NDArray[np.float64], waits: NDArray[np.int64]) -> None:
        """What collectors waited for the lock, and how long handing over took them with all that is in it."""
        paceline.gauge("lock_wait_ms", 1000 * float(new[WAITED]) / max(1.0, float(new[TAKEN])))
        for name, share in (("p95", 0.95), ("p99", 0.99), ("worst", 1.0)):
            paceline.gauge(f"lock_wait_{name}_ms", 1000 * find_percentile(waits, share))
        offered = max(1.0, float(new[HANDED] + new[DROPPED]))
        paceline.gauge("handover_ms", 1000 * float(new[HANDING]) / offered)
        paceline.gauge("blocked_percent", 100 * float(new[HANDING]) / max(1e-9, float(new[PLAYING])))
