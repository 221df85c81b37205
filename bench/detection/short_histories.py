"""The published figures for short histories: `python -m bench.detection.short_histories [HISTORIES]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from bench.detection.simulation import COMMITS, Disturbance, History, simulate_history
from dashboard.detection.judgement import judge_series

NOISES = (0.01, 0.03, 0.06)
HISTORIES = 2000
SEED = 20


@dataclass(slots=True)
class Tally:
    """What was found in simulated histories, added up."""

    histories: int = 0
    planted: int = 0
    found: int = 0
    exact: int = 0
    beside: int = 0
    false: int = 0
    ever_false: int = 0
    memory: int = 0

    def add(self, time: History, memory: History) -> None:
        """Judge one more project: its time series as it ends and as it grew, and its memory series."""
        last = found_positions(time)
        self.histories += 1
        self.planted += len(time.planted)
        self.found += len(set(last) & set(time.planted))
        self.exact += tuple(last) == time.planted
        self.beside += any(distance_to_planted(i, time) == 1 for i in last)
        self.false += any(distance_to_planted(i, time) > 1 for i in last)
        self.ever_false += any(distance_to_planted(i, time) > 1 for i in ever_found_positions(time))
        self.memory += tuple(found_positions(memory)) == memory.planted

    def row(self, noise: float, disturbance: str) -> str:
        """A line of the table, in per cent of planted changes (first figure) and of histories."""
        shares = [
            self.found / self.planted,
            *(
                n / self.histories
                for n in (self.exact, self.beside, self.false, self.ever_false, self.memory)
            ),
        ]
        return f"| {noise:.0%} | {disturbance} | " + " | ".join(f"{share:.1%}" for share in shares) + " |"


def found_positions(history: History) -> list[int]:
    """Where changes are found."""
    return [change.index for change in judge_series(history.series)]


def ever_found_positions(history: History) -> set[int]:
    """Where a change was found at any time while the history grew point by point."""
    points = history.series.points
    prefixes = (replace(history.series, points=points[:n]) for n in range(1, COMMITS + 1))
    return {change.index for prefix in prefixes for change in judge_series(prefix)}


def distance_to_planted(index: int, history: History) -> int:
    """How far an index is from the nearest planted change."""
    return min(abs(index - at) for at in history.planted)


def tally_histories(noise: float, disturbance: Disturbance, histories: int) -> Tally:
    """Histories of one kind, from a fixed seed."""
    rng = np.random.default_rng(SEED)
    total = Tally()
    for _ in range(histories):
        total.add(*simulate_history(rng, noise, disturbance))
    return total


def short_history_table(histories: int) -> Iterator[str]:
    """The lines of the table."""
    yield "| noise | disturbance | planted found | all exact | beside | false | ever false | memory exact |"
    yield "|---|---|---|---|---|---|---|---|"
    for noise in NOISES:
        for disturbance in get_args(Disturbance):
            yield tally_histories(noise, disturbance, histories).row(noise, disturbance)


if __name__ == "__main__":
    for line in short_history_table(max(int(sys.argv[1]), 1) if len(sys.argv) > 1 else HISTORIES):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
