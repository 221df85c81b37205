"""Whether changes stay as points arrive, and what detection costs: `python -m bench.detection.stability`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from bench.detection.printing import print_tables
from dashboard.detection import ALARM, SUSPICION, Watch, detect, judge_series, suspect
from dashboard.detection.identity import Steadiness
from dashboard.detection.null_models import simulate_null
from dashboard.detection.types import Change, Point, Series

HISTORIES = 20
STEPS = (1.05, 1.15)
LENGTHS = (100, 1_000, 10_000)
ADDED = 300


def stability_table(count: int) -> Iterator[str]:
    """What became of the changes that `judge_series` reported while histories grew from 30 to 80 points."""
    yield "| step | noise | told what is known | reported | moved, per report | vanished, per report |"
    yield "|---|---|---|---|---|---|"
    for step, sigma, told in product(STEPS, (0.01, 0.03), (False, True)):
        total = Steadiness()
        for seed in range(count):
            values = np.exp(np.random.default_rng(seed).normal(0, sigma, 80))
            values[40:] *= step
            total.follow(growing_reports(values.tolist(), told))
        shares = (part / max(total.reported, 1) for part in (total.moved, total.vanished))
        cells = " | ".join(f"{share:.2f}" for share in shares)
        yield f"| {step - 1:.0%} | {sigma:.0%} | {'yes' if told else 'no'} | {total.reported} | {cells} |"


def growing_reports(values: list[float], told: bool) -> Iterator[Sequence[Change]]:
    """The changes after each point, with or without being told those of the point before."""
    points = [Point(value) for value in values]
    found: list[Change] = []
    for n in range(30, len(points) + 1):
        known = [change.index for change in found] if told else []
        found = judge_series(Series(points[:n], "lower", "time"), known)
        yield found


def cost_table() -> Iterator[str]:
    """Processor time, in milliseconds: of all at once, and of one point more, on average over many."""
    yield "| points before | `detect` | one more | `suspect` | one more |"
    yield "|---|---|---|---|---|"
    for n in LENGTHS:
        values = simulate_null("white", 1, n + ADDED).tolist()
        cells = []
        for detector, rule in ((detect, ALARM), (suspect, SUSPICION)):
            begun = time.process_time()
            detector(values[:n])
            whole = time.process_time() - begun
            watch = Watch(values[:n], rule)
            begun = time.process_time()
            for value in values[n:]:
                watch.add(value)
            cells += [whole, (time.process_time() - begun) / ADDED]
        yield f"| {n} | " + " | ".join(f"{1000 * cell:.2f}" for cell in cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description="Measure how stable reported changes are.")
    parser.add_argument("histories", type=int, nargs="?", default=HISTORIES, help="in each line")
    options = parser.parse_args(arguments)
    print_tables([stability_table(options.histories), cost_table()])


if __name__ == "__main__":
    main()
