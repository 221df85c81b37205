"""Simulated short histories with known changes and the noise of shared machines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dashboard.detection.segmentation import Floats
from dashboard.detection.types import Kind, Point, Series

COMMITS = 16
NEUTRAL_FIRST = 4
GAP = 3  # a planted commit and two neutral ones
REPETITIONS = 3
BURST_CHANCE = 0.05  # of a commit whose repetitions are all slowed by something else on the machine
BURST_SIZE = (0.05, 0.40)
MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class History:
    """A series and the positions at which its level really changes."""

    series: Series
    planted: tuple[int, ...]


def places(rng: np.random.Generator, plants: int) -> list[int]:
    """Positions of the planted commits: neutral ones first, two between, and at least one after the last."""
    slack = COMMITS - 1 - (NEUTRAL_FIRST + (plants - 1) * GAP + 1)
    extra = np.sort(rng.integers(0, slack + 1, size=plants))
    return [NEUTRAL_FIRST + k * GAP + int(e) for k, e in enumerate(extra)]


def time_history(rng: np.random.Generator, noise: float, bursts: bool) -> tuple[History, History]:
    """A step time with two regressions and an improvement, and the peak memory of the same commits with one.

    `noise` is the median absolute deviation over the median of single repetitions. Half of its variance is
    common to a run's repetitions; a wander of half its size and a memory of a few commits lies over it.
    """
    at = places(rng, 4)
    memory = at.pop(int(rng.integers(0, 4)))
    steps = [rng.uniform(1.25, 1.40), rng.uniform(1.60, 2.50), 1 / rng.uniform(1.25, 2.0)]
    rng.shuffle(steps)
    time = series_of(noisy(rng, levels(at, steps), noise, bursts), "time")
    size = levels([memory], [rng.uniform(1.20, 1.30)])
    return History(time, tuple(at)), History(
        series_of(noisy(rng, size, min(noise, 0.005), False), "memory"), (memory,)
    )


def levels(at: list[int], steps: list[float]) -> Floats:
    """The true level of each commit (COMMITS,), 1 before the first step."""
    true = np.ones(COMMITS)
    for index, step in zip(at, steps, strict=True):
        true[index:] *= step
    return true


def noisy(rng: np.random.Generator, true: Floats, noise: float, bursts: bool) -> Floats:
    """Repetitions (commits, REPETITIONS) around the true levels (commits,)."""
    sigma = MAD_TO_SIGMA * noise
    own = rng.normal(0, sigma * np.sqrt(0.5), (len(true), REPETITIONS))
    shared = rng.normal(0, sigma * np.sqrt(0.5), (len(true), 1))
    log = np.log(true)[:, None] + own + shared + wander(rng, len(true), sigma / 2)[:, None]
    if bursts:
        slow = rng.uniform(*BURST_SIZE, (len(true), 1)) * (rng.random((len(true), 1)) < BURST_CHANCE)
        log = log + np.log1p(slow)
    return np.asarray(np.exp(log))


def wander(rng: np.random.Generator, n: int, sigma: float, memory: float = 0.8) -> Floats:
    """An autoregressive series (n,) of standard deviation `sigma`."""
    out = np.empty(n)
    state = rng.normal(0, sigma)
    for i in range(n):
        out[i] = state
        state = memory * state + rng.normal(0, sigma * np.sqrt(1 - memory**2))
    return out


def series_of(repetitions: Floats, kind: Kind) -> Series:
    """A series whose points are medians of repetitions (commits, repetitions)."""
    points = [Point(float(np.median(row)), tuple(float(v) for v in row)) for row in repetitions]
    return Series(points=points, better="lower", kind=kind)
