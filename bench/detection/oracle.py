"""How far anybody could get: a detector that is told what no detector can know.

Page's cumulative sum of log-likelihood ratios (*Continuous Inspection Schemes*, Biometrika 1954) finds a step
of known size between known distributions as soon as any rule can that raises as few false alarms (Lorden,
*Procedures for Reacting to a Change in Distribution*, Annals of Mathematical Statistics 1971). The oracle is
told the size and direction of each step, and the level and the noise of the stretch without it; where the
step is, it doesn't have to say. Its noise has the tails of a Cauchy distribution: of Student's t with 1, 2, 3
and 5 degrees of freedom and of a Gaussian this finds most on histories that were measured, which have bursts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from bench.detection.scoring import FIRST, HORIZON, share_within
from bench.detection.source_trials import PERCENTS, SourceTrials, local_noise
from bench.detection.trials import Trial
from dashboard.detection.noise import MAD_TO_SIGMA
from dashboard.detection.segmentation import Floats

FALSE_ALARMS = 1.0  # per 1,000 points of quiet stretches, the mean over sources: what `detect` may raise
SIGNS = (1, -1)


def oracle_recalls(sources: Sequence[SourceTrials]) -> dict[str, tuple[float, ...]]:
    """Of each source the shares of its steps, by size, that are found at FALSE_ALARMS over all sources."""
    threshold = alarm_threshold(sources)
    return {source.name: recalls_of(source, threshold) for source in sources}


def recalls_of(source: SourceTrials, threshold: float) -> tuple[float, ...]:
    """The shares of a source's steps, by size, at which the sum reaches the threshold in time."""
    delays = [
        [step_delay(trial, threshold) for trial in source.steps if trial.percent == size] for size in PERCENTS
    ]
    return tuple(share_within(each) for each in delays)


def alarm_threshold(sources: Sequence[SourceTrials]) -> float:
    """The least sum at which quiet stretches raise no more than FALSE_ALARMS, as a mean over sources."""
    peaks, rates = [], []
    for source in sources:
        of_source = [peak for trial in source.change_free for peak in quiet_peaks(trial)]
        points = sum(len(trial.values) - FIRST for trial in source.change_free)
        looks = len(PERCENTS) * len(SIGNS) * points * len(sources)
        peaks += of_source
        rates += [1000 / looks] * len(of_source)
    order = np.argsort(peaks)[::-1]
    above = np.cumsum(np.array(rates)[order]) > FALSE_ALARMS
    # An alarm is a sum above the threshold: the first one that would be too many is at it.
    return float(np.array(peaks)[order][int(above.argmax())]) if above.any() else 0.0


def quiet_peaks(trial: Trial) -> Iterator[float]:
    """How high each excursion of the sum goes in a stretch without a step, for every size and direction."""
    values = np.log(trial.values)
    level, noise = float(np.median(values)), local_noise(values)
    for percent in PERCENTS:
        for sign in SIGNS:
            step = sign * math.log1p(percent / 100)
            yield from excursion_peaks(page_sums(values[FIRST:], level, noise, step))


def excursion_peaks(sums: Floats) -> list[float]:
    """The largest of each run of positive sums (n,): one alarm each, as for a level that lasts."""
    ends = np.flatnonzero(sums == 0)
    return [float(part.max()) for part in np.split(sums, ends) if part.any()]


def step_delay(trial: Trial, threshold: float) -> float:
    """The points of the new level after which the sum is above the threshold; infinite if not in time."""
    (tau,) = trial.taus
    values, step = np.log(trial.values), trial.sign * math.log1p(trial.percent / 100)
    without = np.concatenate([values[:tau], values[tau:] - step])
    level, noise = float(np.median(without)), local_noise(without)
    sums = page_sums(values[FIRST : tau + HORIZON], level, noise, step)[tau - FIRST :]
    return 1.0 + int((sums > threshold).argmax()) if (sums > threshold).any() else math.inf


def page_sums(values: Floats, level: float, noise: float, step: float) -> Floats:
    """Page's sums (n,) of values (n,) around a level of this noise, for a `step` from it; never negative."""
    median_distance = noise / MAD_TO_SIGMA  # of a Cauchy distribution it is the scale
    before, after = ((values - level - shift) / median_distance for shift in (0.0, step))
    total = np.concatenate([[0.0], np.cumsum(np.log1p(before**2) - np.log1p(after**2))])
    return np.asarray((total - np.minimum.accumulate(total))[1:])
