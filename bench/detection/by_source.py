"""How `detect` does on each of many sources: `python -m bench.detection.by_source --series FOLDER`.

`--series` is the folder that `bench.detection.sources` wrote; nothing in `detect` was chosen on these. Each
is scored by itself; below stand the mean over sources and the worst of them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bench.detection.printing import print_line
from bench.detection.scoring import (
    Alarms,
    Detector,
    count_false_alarms,
    detection_delay,
    lower_median,
    share_within,
)
from bench.detection.source_trials import PERCENTS, SourceTrials, load_source
from dashboard.detection import detect


@dataclass(frozen=True, slots=True)
class SourceScore:
    """How a detector does on one source."""

    name: str
    real: Alarms
    wandering: Alarms
    disturbed: Alarms
    delays: dict[int, list[float]]
    real_delays: list[float]


def score_source(detector: Detector, trials: SourceTrials) -> SourceScore:
    """All tracks of a source."""
    return SourceScore(
        trials.name,
        sum_alarms(count_false_alarms(detector, trial) for trial in trials.change_free),
        sum_alarms(count_false_alarms(detector, trial) for trial in trials.wandering),
        sum_alarms(count_false_alarms(detector, trial) for trial in trials.disturbed),
        {
            percent: [detection_delay(detector, t) for t in trials.steps if t.percent == percent]
            for percent in PERCENTS
        },
        [detection_delay(detector, trial) for trial in trials.real_steps],
    )


def sum_alarms(each: Iterable[Alarms]) -> Alarms:
    """The alarms of several series."""
    alarms = list(each)
    return Alarms(sum(a.count for a in alarms), sum(a.points for a in alarms))


def format_scores(scores: Sequence[SourceScore]) -> Iterator[str]:
    """A table with a row for each source, then their mean, then the worst of each column."""
    yield (
        "| source | false alarms per 1,000: still | wandering | disturbed "
        "| found of 3 % | 5 % | 10 % | delay of 5 % | 10 % | of real steps, found within 5 |"
    )
    yield "|---|" + "---:|" * 9
    columns = [source_figures(score) for score in scores]
    for score, figures in zip(scores, columns, strict=True):
        yield format_row(score.name, figures)
    means = [mean_known(column) for column in zip(*columns, strict=True)]
    # Of false alarms and delays the largest is the worst, of what is found the smallest.
    worst_of = (max, max, max, min, min, min, max, max, min)
    worst = [
        pick([figure for figure in column if not math.isnan(figure)], default=math.nan)
        for pick, column in zip(worst_of, zip(*columns, strict=True), strict=True)
    ]
    yield format_row("**mean**", means)
    yield format_row("**worst**", worst)


def source_figures(score: SourceScore) -> list[float]:
    """The columns of a source; NaN where it has no such trials."""
    alarms = (score.real, score.wandering, score.disturbed)
    return [
        *(each.per_1000 for each in alarms),
        *(share_within(score.delays[percent]) for percent in PERCENTS),
        *(lower_median(score.delays[percent]) for percent in PERCENTS[1:]),
        share_within(score.real_delays, 5),
    ]


def mean_known(figures: Sequence[float]) -> float:
    """Of those that are finite: a median delay that never comes has no mean."""
    known = [figure for figure in figures if math.isfinite(figure)]
    return fmean(known) if known else math.nan


def format_row(name: str, figures: Sequence[float]) -> str:
    shapes = ("{:.2f}",) * 6 + ("{:.0f}",) * 2 + ("{:.2f}",)
    cells = [
        "-" if math.isnan(figure) else "never" if math.isinf(figure) else shape.format(figure)
        for figure, shape in zip(figures, shapes, strict=True)
    ]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.detection.by_source", description=__doc__)
    parser.add_argument("--series", type=Path, required=True, metavar="FOLDER", help="what sources wrote")
    folder: Path = parser.parse_args().series
    files = sorted(folder.glob("*.json"))
    if not files:
        parser.error(f"--series: {folder} holds no .json file: run bench.detection.sources first")
    scores = []
    for file in files:
        scores.append(score_source(detect, load_source(file)))
        print_line(f"{file.stem}: scored")
    print_line("")
    for line in format_scores(scores):
        print_line(line)


if __name__ == "__main__":
    main()
