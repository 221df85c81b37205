"""Simulated short histories with planted changes and the noise of shared machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dashboard.detection.segmentation import Floats
from dashboard.detection.types import Kind, Point, Series

COMMITS = 16
NEUTRAL_FIRST = 4
GAP = 3  # a planted commit and two neutral ones
REPETITIONS = 3
MAD_TO_SIGMA = 1.4826
MEMORY_BYTES = 3e8

Disturbance = Literal["none", "bursts", "contention"]

# A burst slows every repetition of a commit.
BURST_CHANCE = 0.05
BURST_SIZE = (0.05, 0.40)
# Contention comes in episodes of seconds, which slow the repetitions, or the parts of them, that they meet.
EPISODE_SECONDS = 8.0
CALM_SECONDS = 30.0
EPISODE_SIZE = (0.05, 0.45)
REPETITION_SECONDS = 4.0  # of which the last are measured
MEASURED_SECONDS = 1.5
COUNTING_SECONDS = 6.0  # between the repetitions of two commits


@dataclass(frozen=True, slots=True)
class History:
    """A series and the positions at which its level really changes."""

    series: Series
    planted: tuple[int, ...]


def planted_positions(rng: np.random.Generator, plants: int) -> list[int]:
    """Positions of the planted commits: neutral ones first, two between, and at least one after the last."""
    slack = COMMITS - 1 - (NEUTRAL_FIRST + (plants - 1) * GAP + 1)
    extra = np.sort(rng.integers(0, slack + 1, size=plants))
    return [NEUTRAL_FIRST + k * GAP + int(e) for k, e in enumerate(extra)]


def simulate_history(
    rng: np.random.Generator, noise: float, disturbance: Disturbance
) -> tuple[History, History]:
    """A step time with two regressions and an improvement, and the peak memory of the same commits with one.

    `noise` is the median absolute deviation over the median of single repetitions. Half of its variance is
    common to a run's repetitions; a wander of half its size, autocorrelated over a few commits, lies over it.
    """
    at = planted_positions(rng, 4)
    memory = at.pop(int(rng.integers(0, 4)))
    steps = [rng.uniform(1.25, 1.40), rng.uniform(1.60, 2.50), 1 / rng.uniform(1.25, 2.0)]
    rng.shuffle(steps)
    seconds = noisy_repetitions(rng, true_levels(at, steps), noise) * slowdown_factors(rng, disturbance)
    size = MEMORY_BYTES * noisy_repetitions(
        rng, true_levels([memory], [rng.uniform(1.20, 1.30)]), min(noise, 0.005)
    )
    return History(series_of(seconds, "time"), tuple(at)), History(series_of(size, "memory"), (memory,))


def true_levels(at: list[int], steps: list[float]) -> Floats:
    """The true level of each commit (COMMITS,), 1 before the first step."""
    true = np.ones(COMMITS)
    for index, step in zip(at, steps, strict=True):
        true[index:] *= step
    return true


def noisy_repetitions(rng: np.random.Generator, true: Floats, noise: float) -> Floats:
    """Repetitions (commits, REPETITIONS) around the true levels (commits,)."""
    sigma = MAD_TO_SIGMA * noise
    own = rng.normal(0, sigma * np.sqrt(0.5), (len(true), REPETITIONS))
    shared = rng.normal(0, sigma * np.sqrt(0.5), (len(true), 1))
    return np.asarray(
        np.exp(
            np.log(true)[:, None] + own + shared + autoregressive_wander(rng, len(true), sigma / 2)[:, None]
        )
    )


def slowdown_factors(rng: np.random.Generator, disturbance: Disturbance) -> Floats:
    """What else runs on the machine, as a factor on each repetition (COMMITS, REPETITIONS)."""
    if disturbance == "bursts":
        size = rng.uniform(*BURST_SIZE, (COMMITS, 1)) * (rng.random((COMMITS, 1)) < BURST_CHANCE)
        return np.asarray(np.repeat(1 + size, REPETITIONS, axis=1))
    if disturbance == "contention":
        return contention_factors(rng)
    return np.ones((COMMITS, REPETITIONS))


def contention_factors(rng: np.random.Generator) -> Floats:
    """Episodes of a slower machine over the hours of all commits, averaged over each measured window."""
    a_commit = REPETITIONS * REPETITION_SECONDS + COUNTING_SECONDS
    end = np.arange(COMMITS)[:, None] * a_commit + (1 + np.arange(REPETITIONS))[None, :] * REPETITION_SECONDS
    factor = np.ones_like(end)
    clock = rng.exponential(CALM_SECONDS)
    while clock < COMMITS * a_commit:
        over = clock + rng.exponential(EPISODE_SECONDS)
        met = np.minimum(end, over) - np.maximum(end - MEASURED_SECONDS, clock)
        factor += rng.uniform(*EPISODE_SIZE) * np.clip(met, 0, None) / MEASURED_SECONDS
        clock = over + rng.exponential(CALM_SECONDS)
    return factor


def autoregressive_wander(rng: np.random.Generator, n: int, sigma: float, correlation: float = 0.8) -> Floats:
    """An autoregressive series (n,) of standard deviation `sigma`."""
    out = np.empty(n)
    state = rng.normal(0, sigma)
    for i in range(n):
        out[i] = state
        state = correlation * state + rng.normal(0, sigma * np.sqrt(1 - correlation**2))
    return out


def series_of(repetitions: Floats, kind: Kind) -> Series:
    """A series whose points are medians of repetitions (commits, repetitions)."""
    points = [Point(float(np.median(row)), tuple(float(v) for v in row)) for row in repetitions]
    return Series(points=points, better="lower", kind=kind)
