"""Steps that only some processes of a run show: `python -m bench.detection.slowed_processes [--write]`.

Each repetition of a run is a process of its own. A cause may slow every one of them, or only some: an
unlucky hash seed, a race, a page that is shared or not. Histories are judged by their best repetitions alone,
and as a site judges them. `--write` puts the table into the page on detection.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.detection.printing import print_published
from bench.detection.simulation import autoregressive_wander
from dashboard.detection import Change, Point, Series, judge_series
from dashboard.detection.judgement import judge_readings
from dashboard.detection.readings import prepare_readings
from dashboard.detection.segmentation import Floats

PAGE = Path(__file__).resolve().parents[2] / "docs/method/detection.md"
PART = re.compile(r"(<!-- slowed_processes:[^>]*-->\n).*?(<!-- end of slowed_processes -->)", re.DOTALL)
HISTORIES = 200
LENGTHS = (30, 60, 150)
GROWING, FIRST_LOOK = 60, 8  # commits of histories that are judged while they grow, and at the first look
REPETITIONS = 5
NOISE = 0.02  # of repetitions; half of its variance is common to a run's
SLOWED, STEP = 0.6, 0.38  # the chance of a process to be slowed, and by how much
NEAR = 2  # commits
# What else runs on a machine slows a repetition that it meets by so much.
BUSY = (0.05, 0.45)

Rng = np.random.Generator
Judge = Callable[[Series, Collection[int]], Sequence[Change]]


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A repetition is slowed with the chance `usual`, and with `busy` in stretches of about `length` runs,
    one of which begins at a run with the chance `begins`."""

    name: str
    usual: float
    busy: float = 0.0
    begins: float = 0.0
    length: float = 1.0

    def chances(self, rng: Rng, n: int) -> Floats:
        """The chance to be slowed of the repetitions of each of n runs."""
        chances, at = np.full(n, self.usual), 0
        while at < n:
            stretch = int(rng.exponential(self.length)) + 1 if rng.random() < self.begins else 0
            chances[at : at + stretch] = self.busy
            at += max(stretch, 1)
        return chances


DISTURBANCES = (
    Disturbance("none", 0.0),
    Disturbance("a tenth of the processes", 0.1),
    Disturbance("three tenths", 0.3),
    Disturbance("six tenths for 8 runs", 0.05, busy=0.6, begins=0.02, length=8),
    Disturbance("six tenths for 20 runs", 0.05, busy=0.6, begins=0.01, length=20),
)


def simulate_runs(rng: Rng, n: int, disturbance: Disturbance) -> Floats:
    """What the repetitions of n runs took (n, REPETITIONS), around 1."""
    own, shared = (rng.normal(0, NOISE * np.sqrt(0.5), (n, count)) for count in (REPETITIONS, 1))
    wander = autoregressive_wander(rng, n, NOISE / 2)[:, None]
    met = rng.random((n, REPETITIONS)) < disturbance.chances(rng, n)[:, None]
    return np.asarray(np.exp(own + shared + wander) * (1 + met * rng.uniform(*BUSY, (n, REPETITIONS))))


def slow_some(rng: Rng, runs: Floats) -> Floats:
    """The same runs, whose second half has processes that are slowed by chance."""
    slowed = rng.random(runs.shape) < SLOWED
    slowed[: len(runs) // 2] = False
    return np.asarray(runs * (1 + STEP * slowed))


def make_series(runs: Floats) -> Series:
    points = [Point(float(np.median(run)), tuple(run.tolist())) for run in runs]
    return Series(points, better="lower", kind="time")


def judge_by_best(series: Series, known: Collection[int] = ()) -> Sequence[Change]:
    """The changes that the best repetitions show."""
    (changes,) = judge_readings([series], [prepare_readings(series)], known)
    return changes


JUDGES: tuple[Judge, Judge] = (judge_by_best, judge_series)


def tally_trials(judge: Judge, n: int, disturbance: Disturbance, histories: int) -> tuple[float, float]:
    """The share of steps found at their place, and false changes per 1,000 commits where nothing changes."""
    rng, found, false = np.random.default_rng([n, histories]), 0, 0
    for _ in range(histories):
        runs = simulate_runs(rng, n, disturbance)
        false += len(judge(make_series(runs), ()))
        changes = judge(make_series(slow_some(rng, runs)), ())
        found += any(abs(change.index - n // 2) <= NEAR for change in changes)
    return found / histories, 1000 * false / (n * histories)


def count_false_reports(judge: Judge, n: int, disturbance: Disturbance, histories: int) -> float:
    """Changes reported while histories of n commits grew in which nothing changes, per 1,000 commits."""
    rng, reported = np.random.default_rng([n, histories, 1]), 0
    for _ in range(histories):
        series, known = make_series(simulate_runs(rng, n, disturbance)), list[int]()
        for length in range(FIRST_LOOK, n + 1):
            found = judge(replace(series, points=series.points[:length]), known)
            now = [change.index for change in found]
            reported += sum(all(abs(index - before) > NEAR for before in known) for index in now)
            known = now
    return 1000 * reported / (n * histories)


def result_lines(histories: int) -> Iterator[str]:
    """The table: a row for each length and disturbance."""
    columns = ("found", "false", "ever reported")
    heads = [head for column in columns for head in (f"{column} by the best", column)]
    yield f"| commits | disturbed | {' | '.join(heads)} |"
    yield "|---|---|" + "---|" * len(heads)
    for n in LENGTHS:
        for disturbance in DISTURBANCES:
            (found_by_best, false_by_best), (found, false) = (
                tally_trials(judge, n, disturbance, histories) for judge in JUDGES
            )
            shares, counts = f"{found_by_best:.0%} | {found:.0%}", f"{false_by_best:.2f} | {false:.2f}"
            growing = n == GROWING and [
                f"{count_false_reports(judge, n, disturbance, max(histories // 4, 1)):.2f}"
                for judge in JUDGES
            ]
            yield f"| {n} | {disturbance.name} | {shares} | {counts} | {' | '.join(growing or ('', ''))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write it where it is published."""
    parser = argparse.ArgumentParser(description="Steps that only some processes of a run show.")
    parser.add_argument("histories", type=int, nargs="?", default=HISTORIES, help="for each row")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args(arguments)
    print_published(result_lines(options.histories), PAGE, PART, write=options.write)


if __name__ == "__main__":
    main()
