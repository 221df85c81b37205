"""How a detector does on sources that nothing was chosen on: `python -m bench.detection.leave_one_out --series F`.

`--series` is the folder that `bench.detection.sources` wrote. Each source is scored by itself; below stand the
mean over sources and the worst of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from bench.detection.trials import Trial


@dataclass(frozen=True, slots=True)
class SourceScore:
    """How a detector does on one source."""

    name: str
    real: Alarms
    disturbed: Alarms
    delays: dict[int, list[float]]
    real_delays: list[float]


def score_source(detector: Detector, trials: SourceTrials) -> SourceScore:
    """All tracks of a source."""
    return SourceScore(
        trials.name,
        sum_alarms(count_false_alarms(detector, trial) for trial in trials.change_free),
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
