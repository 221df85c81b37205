"""The smallest step that a series would show."""

from __future__ import annotations

import math

import numpy as np

from dashboard.detection.judgement import DETECT_FROM, FEWEST_POINTS, loss_for
from dashboard.detection.levels import LEVEL_WINDOW
from dashboard.detection.readings import Readings, prepare_readings, repeats_exactly
from dashboard.detection.rules import ALARM
from dashboard.detection.segmentation import Loss
from dashboard.detection.types import Series


def minimum_detectable_effect(series: Series, n: int) -> float:
    """The smallest relative rise that `n` new points (n >= 1) would raise a change for, half of the time.

    A fraction: 0.1 is +10 %. Infinite where no rise of any size would be reported: at the first point of
    a noisy metric, or after too few points.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    readings = prepare_readings(series)
    if repeats_exactly(series):
        return 0.0
    known = min(len(readings.values), LEVEL_WINDOW)
    if known + n < FEWEST_POINTS or not known:
        return math.inf
    step = float(np.median(readings.noise)) * noises_needed(known, n, judging_loss(readings))
    return max(readings.floor, math.expm1(step) if readings.scale.logarithmic and step < 700 else step)


def judging_loss(readings: Readings) -> Loss:
    """The loss by which a series is judged, with samples or without."""
    n = len(readings.values)
    return ALARM.loss(n) if n >= DETECT_FROM and not readings.sampled else loss_for(n)


def noises_needed(known: int, n: int, loss: Loss) -> float:
    """The step, in noises, that pays the penalty for a new level of n points after `known` points."""
    if min(known, n) * loss.cap <= loss.penalty:
        return math.inf
    return math.sqrt(loss.penalty * (known + n) / (known * n))
