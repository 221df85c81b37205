"""Whether the smallest step that is stated is found: `python -m bench.detection.smallest_steps [--write]`.

A step of the size that `minimum_detectable_effect` tells of a history is put behind it, and half of it.
`--write` puts the table into the page on detection.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from bench.detection.null_models import NULL_MODELS, SIGMA, simulate_null
from bench.detection.printing import print_published
from dashboard.detection import Point, Series, judge_series
from dashboard.detection.segmentation import Floats
from dashboard.detection.smallest_effect import minimum_detectable_effect

PAGE = Path(__file__).resolve().parents[2] / "docs/method/detection.md"
PART = re.compile(r"(<!-- smallest_steps:[^>]*-->\n).*?(<!-- end of smallest_steps -->)", re.DOTALL)
SERIES = 100
KNOWN = 40  # commits before the step
SAMPLED, PLAIN = (2, 5, 10), (5, 10)  # runs of the new level: with repetitions, and without
REPETITIONS = 3
NOISE = 0.03  # of runs: so much that the effect floor doesn't hide what is asked
WITHIN = 0.5  # repetitions of one run differ by this part of what runs differ by
NEAR = 3  # commits
COLUMNS = [*(f"{n} runs" for n in SAMPLED), *(f"{n} points" for n in PLAIN)]


def simulate_history(model: str, seed: int, points: int, *, sampled: bool) -> Floats:
    """The logarithms of what each repetition of a run took, (points, repetitions): one where not sampled."""
    runs = NOISE / SIGMA * np.log(simulate_null(model, seed, points))[:, None]
    if not sampled:
        return runs
    return np.asarray(runs + np.random.default_rng(seed).normal(0, WITHIN * NOISE, (points, REPETITIONS)))


def make_series(history: Floats) -> Series:
    """A step time of such repetitions."""
    times = np.exp(history)
    points = (Point(float(np.median(row)), tuple(row.tolist()) if len(row) > 1 else ()) for row in times)
    return Series(tuple(points), better="lower", kind="time")


def find_smallest_step(model: str, seed: int, count: int, *, sampled: bool) -> tuple[float, bool, bool]:
    """The smallest step stated for `count` points, and whether it and half of it are found."""
    history = simulate_history(model, seed, KNOWN + count, sampled=sampled)
    smallest = minimum_detectable_effect(make_series(history[:KNOWN]), count)
    if not math.isfinite(smallest):
        return smallest, False, False
    return smallest, *(is_found(history, math.log1p(part * smallest)) for part in (1.0, 0.5))


def is_found(history: Floats, step: float) -> bool:
    """Whether a change is reported at KNOWN, give or take NEAR, when the points from there on are moved."""
    moved = history + np.where(np.arange(len(history)) < KNOWN, 0.0, step)[:, None]
    return any(abs(change.index - KNOWN) <= NEAR for change in judge_series(make_series(moved)))


def result_lines(count: int) -> Iterator[str]:
    """The table: in each cell the median of what is stated, and the shares of it and of half of it found."""
    yield "| null model | " + " | ".join(COLUMNS) + " |"
    yield "|---|" + "---|" * len(COLUMNS)
    for model in NULL_MODELS:
        asked = [(n, True) for n in SAMPLED] + [(n, False) for n in PLAIN]
        cells = [
            format_cell([find_smallest_step(model, seed, n, sampled=sampled) for seed in range(count)])
            for n, sampled in asked
        ]
        yield f"| {model} | " + " | ".join(cells) + " |"


def format_cell(results: Sequence[tuple[float, bool, bool]]) -> str:
    """`4.2%: 83, 10`; of those for which a step is stated."""
    finite = [result for result in results if math.isfinite(result[0])]
    if 2 * len(finite) < len(results):
        return "none"
    whole, half = (round(100 * sum(row[i] for row in finite) / len(finite)) for i in (1, 2))
    return f"{median(row[0] for row in finite):.1%}: {whole}, {half}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write it where it is published."""
    parser = argparse.ArgumentParser(description="Whether the smallest step that is stated is found.")
    parser.add_argument("series", type=int, nargs="?", default=SERIES, help="for each cell")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args(arguments)
    print_published(result_lines(options.series), PAGE, PART, write=options.write)


if __name__ == "__main__":
    main()
