"""Trials from measured histories, by source: stretches in which nothing changes, and steps put into them.

A stretch is change-free by hindsight, by a rule that no detector had a part in: nowhere do the medians of the
points before and after differ by MOST_WANDER noises or more. The rule sees all points at once and looks at
windows of WINDOW points, so that a burst, a lasting mode or a wander of less than that stays in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.detection.scoring import FIRST, HORIZON
from bench.detection.trials import Trial

Floats = npt.NDArray[np.float64]

WINDOW = 20  # points on each side of a place
EDGE = 10  # points at an end in which no window of its own fits
MOST_WANDER = 1.5  # noises
WANDERING = 2.0  # noises: beyond that, much would be steps that somebody made
SHORTEST, LONGEST = 90, 160  # points of a stretch
MOST_NOISE = 0.08  # of the level: the noisiest tenth of the public histories
MOST_EQUAL = 0.5  # of the points: a rounded series' noise isn't known
STRETCHES = 16  # of each source, each from a benchmark of its own
PERCENTS = (3, 5, 10)
STEPS_OF_STRETCH = 2  # of each size
STEP_LEVELS = 35  # points on both sides of a step that nobody planted
LEAST_STEP = 4.0  # noises
REAL_STEPS = 20  # of each source
MODES_APART = 4.0  # noises
WILD_POINTS, WILDEST = 0.03, (5.0, 20.0)  # share, and noises
LOUD_SHARE, LOUD = 0.2, 4.0  # of the points, and times the noise


@dataclass(slots=True)
class SourceTrials:
    """What one source is tried on."""

    name: str
    change_free: list[Trial] = field(default_factory=list)
    wandering: list[Trial] = field(default_factory=list)
    disturbed: list[Trial] = field(default_factory=list)
    steps: list[Trial] = field(default_factory=list)
    real_steps: list[Trial] = field(default_factory=list)


def load_source(path: Path) -> SourceTrials:
    """The trials of a file that `sources` wrote; the same file gives the same trials."""
    rows = json.loads(path.read_text())
    rng = np.random.default_rng(sum(path.stem.encode()))
    trials = SourceTrials(path.stem)
    histories = [rows[int(k)] for k in rng.permutation(len(rows))]
    for values in find_stretches(histories, is_wandering):
        trials.wandering.append(Trial(np.exp(values).tolist(), group="wandering", source=path.stem))
    for values in find_stretches(histories, is_change_free):
        trials.change_free.append(Trial(np.exp(values).tolist(), group="real", source=path.stem))
        trials.disturbed += list(disturbed_trials(values, rng, path.stem))
        trials.steps += list(step_trials(values, rng, path.stem))
    trials.real_steps = find_real_steps(histories, path.stem)
    return trials


def local_noise(values: Floats) -> float:
    """The noise of values (n,) around a running median: wander isn't part of it, modes are."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, 10, mode="reflect"), 21)
    residuals = values - np.median(windows, axis=1)
    return float(1.4826 * np.median(np.abs(residuals)))


def median_steps(values: Floats, window: int = WINDOW) -> Floats:
    """The distance of the medians before and after each place from EDGE points on (n - 2 EDGE + 1,)."""
    places = range(EDGE, len(values) - EDGE + 1)
    return np.array(
        [np.median(values[t : t + window]) - np.median(values[max(t - window, 0) : t]) for t in places]
    )


def largest_wander(values: Floats) -> float:
    """How far the medians of logarithms (n,) wander, in noises; infinite if they are of no use here."""
    noise = local_noise(values)
    if not 0 < noise < MOST_NOISE or len(np.unique(values)) < MOST_EQUAL * len(values):
        return float("inf")
    return float(np.abs(median_steps(values)).max()) / noise


def is_change_free(values: Floats) -> bool:
    """Whether a stretch (n,) holds no step, by hindsight, and ends where it began."""
    third = len(values) // 3
    apart = abs(float(np.median(values[-third:]) - np.median(values[:third])))
    return largest_wander(values) < MOST_WANDER and apart < local_noise(values)


def is_wandering(values: Floats) -> bool:
    """Whether a stretch (n,) wanders a little more than that, or doesn't end where it began."""
    return largest_wander(values) < WANDERING and not is_change_free(values)


def find_stretches(histories: list[dict[str, Any]], rule: Callable[[Floats], bool]) -> list[Floats]:
    """Stretches (n,) of logarithms by a rule, as long as they come, each from another benchmark."""
    found: list[Floats] = []
    benchmarks: set[str] = set()
    for history in histories:
        benchmark = history["series"].split("#")[0]
        if len(found) == STRETCHES:
            break
        if benchmark in benchmarks:
            continue
        stretch = longest_stretch(np.log(history["values"]), rule)
        if stretch is not None:
            found.append(stretch)
            benchmarks.add(benchmark)
    return found


def longest_stretch(values: Floats, rule: Callable[[Floats], bool]) -> Floats | None:
    """The first stretch from the end of values (n,) that obeys the rule, and as long as it can be."""
    for end in range(len(values), SHORTEST - 1, -SHORTEST // 3):
        if not rule(values[end - SHORTEST : end]):
            continue
        for length in range(min(LONGEST, end), SHORTEST - 1, -10):
            if rule(values[end - length : end]):
                return values[end - length : end]
    return None


def step_trials(values: Floats, rng: np.random.Generator, source: str) -> Iterator[Trial]:
    """A stretch with one step, of each size up and down."""
    for percent in PERCENTS:
        for sign in (1, -1)[:STEPS_OF_STRETCH]:
            tau = int(rng.integers(FIRST + 5, len(values) - HORIZON + 1))
            stepped = values.copy()
            stepped[tau:] += sign * np.log1p(percent / 100)
            yield Trial(np.exp(stepped).tolist(), (tau,), "clean", source, percent, sign)


def disturbed_trials(values: Floats, rng: np.random.Generator, source: str) -> Iterator[Trial]:
    """A stretch with drift, wild points, a second mode, and noise that changes."""
    noise, n = local_noise(values), len(values)
    drift = np.linspace(0, noise * rng.choice([-1, 1]), n)
    wild = (rng.random(n) < WILD_POINTS) * rng.uniform(*WILDEST, n) * noise
    modes = (rng.random(n) < 0.5 * rng.random()) * MODES_APART * noise
    begin = int(rng.integers(0, n - int(LOUD_SHARE * n)))
    deviation = values - np.median(values)
    deviation[:begin] = 0
    deviation[begin + int(LOUD_SHARE * n) :] = 0
    extra = {"drift": drift, "outliers": wild, "bimodal": modes, "hetero": (LOUD - 1) * deviation}
    for name, added in extra.items():
        yield Trial(np.exp(values + added).tolist(), group=name, source=source)


def find_real_steps(histories: list[dict[str, Any]], source: str) -> list[Trial]:
    """Steps that nobody planted: between two levels that hold no other step by the same rule."""
    found: list[Trial] = []
    benchmarks: set[str] = set()
    for history in histories:
        benchmark = history["series"].split("#")[0]
        if len(found) == REAL_STEPS or benchmark in benchmarks:
            continue
        values = np.log(history["values"])
        tau = clearest_step(values)
        if tau is not None:
            near = values[tau - STEP_LEVELS : tau + STEP_LEVELS]
            found.append(Trial(np.exp(near).tolist(), (STEP_LEVELS,), "real step", source))
            benchmarks.add(benchmark)
    return found


def clearest_step(values: Floats) -> int | None:
    """Where values (n,) make their clearest step between two quiet levels, if they make one."""
    if len(values) < 2 * STEP_LEVELS:
        return None
    apart = np.abs(median_steps(values))
    for k in np.argsort(-apart)[:3]:
        t = int(k) + EDGE
        if t < STEP_LEVELS or t > len(values) - STEP_LEVELS:
            continue
        before, after = values[t - STEP_LEVELS : t], values[t : t + STEP_LEVELS]
        noise = max(local_noise(before), local_noise(after))
        quiet = all(np.abs(median_steps(side, EDGE)).max() < MOST_WANDER * noise for side in (before, after))
        if (
            quiet
            and 0 < noise < MOST_NOISE
            and abs(np.median(after) - np.median(before)) > LEAST_STEP * noise
        ):
            return place_step(values, t)
    return None


def place_step(values: Floats, near: int) -> int | None:
    """The place around which the absolute distances from the two medians are least."""
    places = range(max(near - 5, STEP_LEVELS), min(near + 6, len(values) - STEP_LEVELS + 1))

    def misfit(t: int) -> float:
        sides = values[t - STEP_LEVELS : t], values[t : t + STEP_LEVELS]
        return sum(float(np.abs(side - np.median(side)).sum()) for side in sides)

    return min(places, key=misfit, default=None)
