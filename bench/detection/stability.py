"""Whether changes stay as points arrive, and what detection costs: `python -m bench.detection.stability`."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import fmean, median

import numpy as np

from bench.detection.null_models import simulate_null
from bench.detection.printing import print_tables
from dashboard.detection import detect, judge_series, suspect
from dashboard.detection.identity import same_change
from dashboard.detection.types import Change, Point, Series

HISTORIES = 20
STEPS = (1.05, 1.15)
LENGTHS = (100, 1_000, 2_000, 10_000)
LEVELS = (1.0, 1.05, 1.1, 1.15)
SAMPLES = 5
LOOKS = 7
GROWN = 1 / 20  # of a history: the points that come one by one


@dataclass(slots=True)
class Stability:
    """What became of the changes that were reported while histories grew, counted."""

    reported: int = 0
    moved: int = 0
    vanished: int = 0

    def add_history(self, reports: Iterable[Sequence[Change]]) -> None:
        """Add the reports of one history, one after each point."""
        before: Sequence[Change] = ()
        for now in reports:
            for old, new in pair_changes(before, now):
                self.reported += old is None
                self.vanished += new is None
                self.moved += old is not None and new is not None and old.index != new.index
            before = now


def pair_changes(old: Sequence[Change], new: Sequence[Change]) -> list[tuple[Change | None, Change | None]]:
    """Which change was which, both in order. Pairs never cross; of several that fit, the nearest is taken.

    (old, new) for the same one, (None, new) for one that appeared, (old, None) for one that vanished.
    """
    remaining = list(old)
    matched: list[tuple[Change | None, Change | None]] = []
    for change in new:
        fitting = [known for known in remaining if same_change(known, change)]
        nearest = min(fitting, key=lambda known: abs(known.index - change.index), default=None)
        if nearest is not None:
            at = remaining.index(nearest)
            matched.extend((gone, None) for gone in remaining[:at])
            remaining = remaining[at + 1 :]
        matched.append((nearest, change))
    return [*matched, *((gone, None) for gone in remaining)]


def stability_table(count: int) -> Iterator[str]:
    """What became of the changes that `judge_series` reported while histories grew from 30 to 80 points."""
    yield "| step | noise | given what is known | reported | moved, per report | vanished, per report |"
    yield "|---|---|---|---|---|---|"
    for step, sigma, with_known in product(STEPS, (0.01, 0.03), (False, True)):
        total = Stability()
        for seed in range(count):
            values = np.exp(np.random.default_rng(seed).normal(0, sigma, 80))
            values[40:] *= step
            total.add_history(growing_reports(values.tolist(), with_known))
        shares = (part / max(total.reported, 1) for part in (total.moved, total.vanished))
        cells = " | ".join(f"{share:.2f}" for share in shares)
        is_given = "yes" if with_known else "no"
        yield f"| {step - 1:.0%} | {sigma:.0%} | {is_given} | {total.reported} | {cells} |"


def growing_reports(values: list[float], with_known: bool) -> Iterator[Sequence[Change]]:
    """The changes after each point, with or without being given those of the point before."""
    points = [Point(value) for value in values]
    found: list[Change] = []
    for n in range(30, len(points) + 1):
        known = [change.index for change in found] if with_known else []
        found = judge_series(Series(points[:n], "lower", "time"), known)
        yield found


def cost_table() -> Iterator[str]:
    """Processor time, in milliseconds: the median of some looks at histories with three steps."""
    yield (
        "| points | `detect` | the same, one point more: median, mean | `suspect` | `judge_series`, plain | "
        "`judge_series`, five samples a point |"
    )
    yield "|---|---|---|---|---|---|"
    for n in LENGTHS:
        values = simulate_null("white", 1, n) * np.repeat(LEVELS, n // len(LEVELS))
        samples = values[:, None] * np.exp(np.random.default_rng(1).normal(0, 0.01, (n, SAMPLES)))
        plain = Series([Point(value) for value in values.tolist()], "lower", "time")
        sampled = Series([Point(median(row), tuple(row)) for row in samples.tolist()], "lower", "time")
        looks: list[Callable[[], object]] = [
            partial(suspect, values.tolist()),
            *(partial(judge_series, series, known_starts(series)) for series in (plain, sampled)),
        ]
        grown = [1000 * seconds for seconds in grown_look_seconds(values.tolist())]
        cells = [
            f"{1000 * processor_seconds(partial(detect, values.tolist())):.1f}",
            f"{median(grown):.2f}, {fmean(grown):.2f}",
            *(f"{1000 * processor_seconds(look):.1f}" for look in looks),
        ]
        yield f"| {n} | " + " | ".join(cells) + " |"


def grown_look_seconds(values: list[float]) -> list[float]:
    """The processor time of a look at each of the last prefixes, in the order in which points arrive."""
    lengths = range(math.ceil((1 - GROWN) * len(values)), len(values) + 1)
    detect(values[: lengths[0] - 1])
    return [time_look(partial(detect, values[:n])) for n in lengths]


def time_look(look: Callable[[], object]) -> float:
    """Its processor time, in seconds."""
    begun = time.process_time()
    look()
    return time.process_time() - begun


def known_starts(series: Series) -> list[int]:
    """What the site knows of a series that it has judged before."""
    return [change.index for change in judge_series(series)]


def processor_seconds(look: Callable[[], object]) -> float:
    """The median over some looks."""
    return median(time_look(look) for _ in range(LOOKS))


def main(arguments: Sequence[str] | None = None) -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description="Measure how stable reported changes are.")
    parser.add_argument("histories", type=int, nargs="?", default=HISTORIES, help="in each line")
    options = parser.parse_args(arguments)
    print_tables([stability_table(options.histories), cost_table()])


if __name__ == "__main__":
    main()
