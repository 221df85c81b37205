"""What a series is read against: the choice of the policy, and how the newest point stands to it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from paceline.manifest.policy import MERGE_BASE, ROLLING

from dashboard import detection
from dashboard.detection import Comparison
from dashboard.detection.comparison import interval_verdict
from dashboard.detection.medians import fast_median
from dashboard.detection.noise import neighbour_noise
from dashboard.metric_scale import MetricScale
from dashboard.policy.effective import EffectivePolicy
from dashboard.policy.patterns import selects_name

# Fewer values of a series tell nothing of the noise between its runs: then it is taken to be so large.
ENOUGH_VALUES = 6
ASSUMED_NOISE = 0.01
LEAST_NOISE = 0.0005


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """The value of a point, and those of its repetitions."""

    value: float
    samples: Sequence[float] = ()


def default_baseline(policy: EffectivePolicy, branch: str, main: str) -> str:
    """What the policy says for a branch: `rolling`, `merge-base`, or the name of a tag or commit."""
    for pattern, baseline in policy.branch_baselines.items():
        if selects_name([pattern], branch):
            return baseline
    if branch == main:
        return policy.pinned or ROLLING
    return MERGE_BASE


def compare_to_baseline(
    metric: MetricScale,
    baseline: Sequence[MeasuredValue],
    newest: MeasuredValue,
    values: Sequence[float],
    *,
    exact: bool,
) -> Comparison:
    """The ratio of the newest point to its baseline, with its interval.

    `values` are those of the series lately: by them the runs of one commit differ too. What repeats exactly
    needs neither repetitions nor an interval.
    """
    old = [metric.on_ratio_scale(sample) for row in baseline for sample in (row.samples or [row.value])]
    new = [metric.on_ratio_scale(sample) for sample in (newest.samples or [newest.value])]
    if exact:
        difference = newest.value - float(np.median([row.value for row in baseline]))
        verdict = interval_verdict(difference, difference)
        return replace(detection.compare_samples(old, new), low=None, high=None, verdict=verdict)
    noise = relative_noise([metric.on_ratio_scale(value) for value in values])
    return detection.compare_samples(old, new, noise)


def relative_noise(values: Sequence[float]) -> float:
    """How much the runs of a series differ, by neighbours: a step between two of them doesn't count."""
    known = np.asarray(values, dtype=np.float64)
    level = abs(fast_median(known)) if len(known) else 0.0
    if len(known) < ENOUGH_VALUES or not level:
        return ASSUMED_NOISE
    return max(LEAST_NOISE, neighbour_noise(known) / level)
