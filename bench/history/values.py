"""The values of one case: levels with steps, noise with a heavy tail, runs beside other work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

STEP_SECONDS = 0.010
REPETITIONS = 5
TAINTED_SHARE = 0.02
# Of Student's t: heavier than normal, as times are.
DEGREES_OF_FREEDOM = 5
SPREAD_OF_REPETITIONS = 0.008


@dataclass(frozen=True, slots=True)
class SeriesKind:
    """A series of a case: its metric, and what moves it. `share` of the step, where it is a phase's."""

    name: str
    unit: str
    better: str
    kind: str
    base: float
    noise: float
    phase: str = ""
    headline: bool = False
    exact: bool = False
    # What a step of the case multiplies it by: the step to this power.
    power: float = 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """From this commit on the case takes `factor` times as long."""

    position: int
    factor: float


WHOLE = (
    SeriesKind("step_time", "s", "lower", "time", STEP_SECONDS, 0.010, headline=True),
    SeriesKind("throughput", "steps/s", "higher", "rate", 1 / STEP_SECONDS, 0.010, headline=True, power=-1.0),
    SeriesKind("peak_memory", "bytes", "lower", "memory", 412e6, 0.004, headline=True, power=0.2),
    SeriesKind("memory_growth", "bytes/1000 steps", "lower", "memory", 52e3, 0.15, headline=True, power=0.0),
    SeriesKind("step_time_p99", "s", "lower", "time", 1.9 * STEP_SECONDS, 0.03),
    SeriesKind("cpu_utilization", "%", "higher", "utilization", 92.0, 0.01, power=0.0),
    SeriesKind("quality.score", "1", "higher", "quality", 7.1, 0.04, power=0.0),
    SeriesKind("function_calls", "calls/step", "lower", "counter", 412.0, 0.0, exact=True, power=0.5),
)


def series_kinds(count: int) -> list[SeriesKind]:
    """`count` kinds: those of the whole step, then times and calls of as many phases as it takes."""
    phases = [f"{'rollout' if number % 3 == 0 else 'learn'}/part_{number:02}" for number in range(count)]
    share = 2.0 / max(1, count - len(WHOLE))
    by_phase = (
        kind
        for phase in phases
        for kind in (
            SeriesKind("phase_self_time", "s", "lower", "time", share * STEP_SECONDS, 0.02, phase),
            SeriesKind(
                "function_calls", "calls/step", "lower", "counter", 40.0, 0.0, phase, exact=True, power=0.5
            ),
        )
    )
    return [*WHOLE, *by_phase][:count]


def level_factors(commits: int, steps: Sequence[Step]) -> np.ndarray:
    """How many times as long the case takes at each commit (n,) as at the first one."""
    factors = np.ones(commits)
    for step in steps:
        factors[step.position :] *= step.factor
    return factors


def draw_samples(
    kind: SeriesKind, factors: np.ndarray, tainted: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """The repetitions (n, REPETITIONS) of each run of a series; those of an exact one are all alike."""
    level = kind.base * factors**kind.power
    if kind.exact:
        return np.repeat(np.round(level)[:, None], REPETITIONS, axis=1)
    count = len(factors)
    run = kind.noise * random.standard_t(DEGREES_OF_FREEDOM, count) * 0.77
    # Other work on the machine slows a run down; nothing makes one faster.
    run = run + np.where(tainted, random.uniform(0.08, 0.3, count) * np.sign(kind.power), 0.0)
    repetition = min(kind.noise, SPREAD_OF_REPETITIONS) * random.standard_normal((count, REPETITIONS))
    return np.asarray(level[:, None] * np.exp(np.clip(run[:, None] + repetition, -1.5, 1.5)))
