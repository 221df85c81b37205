"""What repetitions that end early cost in detection: `python -m bench.detection.early_ends [SERIES]`.

Series of simulated runs, judged once with all repetitions and once with those that the harness's own rule
leaves. Where nothing changes, every change is a false alarm; where a step is planted, it should be found.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from paceline.protocol.enough_repetitions import is_precise_enough

from bench.detection.printing import print_tables
from dashboard.detection import Point, Series, judge_series

SERIES = 200
COMMITS = 60
MOST = 5
PRECISION = 0.02
PLANTED_AT, PLANTED_STEP = 40, 0.04
# A step counts as found within so many commits.
NEAR = 2


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """Deviations of the logarithm: of repetitions within a run, and between runs. A share of the runs has
    repetitions that are `disturbed` times as noisy, as a busy machine's are."""

    name: str
    within: float
    between: float
    disturbed: float = 1.0
    share: float = 0.0


MODELS = (
    NoiseModel("repetitions alike, runs noisy", 0.003, 0.02),
    NoiseModel("repetitions as noisy as runs", 0.012, 0.012),
    NoiseModel("noisy repetitions", 0.02, 0.008),
    NoiseModel("a quarter of the runs disturbed", 0.005, 0.01, disturbed=6.0, share=0.25),
)


@dataclass(frozen=True, slots=True)
class Tally:
    """Of some series: repetitions per run, false changes per 1,000 commits, the share of steps found."""

    repetitions: float
    false_changes: float
    found: float


def simulate_runs(model: NoiseModel, rng: np.random.Generator, planted: float) -> list[list[float]]:
    """The repetitions of each commit, MOST of them; the level steps up by `planted`."""
    runs = []
    for commit in range(COMMITS):
        level = 0.01 * (1 + planted * (commit >= PLANTED_AT)) * np.exp(rng.normal(0, model.between))
        noise = model.within * (model.disturbed if rng.random() < model.share else 1.0)
        runs.append([float(value) for value in level * np.exp(rng.normal(0, noise, MOST))])
    return runs


def end_early(repetitions: Sequence[float], precision: float) -> list[float]:
    """The repetitions that the harness would have taken."""
    for count in range(1, len(repetitions)):
        if is_precise_enough(repetitions[:count], precision, len(repetitions)):
            return list(repetitions[:count])
    return list(repetitions)


def find_starts(runs: Sequence[Sequence[float]]) -> list[int]:
    """Where the series of these runs changes, as a site judges it."""
    points = [Point(statistics.median(run), tuple(run)) for run in runs]
    return [change.index for change in judge_series(Series(points, better="lower", kind="time"))]


def tally_model(model: NoiseModel, series: int, precision: float) -> Tally:
    """The same seeds whatever the precision; 0 takes all repetitions."""
    false_changes, found, taken = 0, 0, []
    for seed in range(series):
        for planted in (0.0, PLANTED_STEP):
            runs = simulate_runs(model, np.random.default_rng([seed, planted > 0]), planted)
            kept = [end_early(run, precision) for run in runs]
            starts = find_starts(kept)
            if planted:
                found += any(abs(start - PLANTED_AT) <= NEAR for start in starts)
            else:
                false_changes += len(starts)
                taken += [len(run) for run in kept]
    return Tally(statistics.fmean(taken), 1000 * false_changes / (series * COMMITS), found / series)


def early_ends_table(series: int) -> Iterator[str]:
    """A row for each model."""
    heads = (
        "noise",
        "repetitions",
        f"false, all {MOST}",
        "false, early",
        f"found, all {MOST}",
        "found, early",
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|"
    for model in MODELS:
        whole, early = (tally_model(model, series, precision) for precision in (0.0, PRECISION))
        yield (
            f"| {model.name} | {early.repetitions:.1f} "
            f"| {whole.false_changes:.2f} | {early.false_changes:.2f} "
            f"| {100 * whole.found:.0f} % | {100 * early.found:.0f} % |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """The table."""
    parser = argparse.ArgumentParser(description="Judge runs whose repetitions end early.")
    parser.add_argument("series", type=int, nargs="?", default=SERIES, help="simulated series of each model")
    print_tables([early_ends_table(parser.parse_args(arguments).series)])


if __name__ == "__main__":
    main()
