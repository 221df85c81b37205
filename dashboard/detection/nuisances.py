"""Simulated series in which nothing changes, of every kind that makes detectors raise false alarms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dashboard.detection.segmentation import Floats

Rng = np.random.Generator
SIGMA = 0.01  # of every family: the noise, as a share of the level
DAY = 24  # points
QUANTUM = 1.5  # of rounding, in noises


def white(rng: Rng, n: int) -> Floats:
    """Independent Gaussian noise of variance 1 (n,); so are the others, but for what their names say."""
    return rng.normal(0, 1, n)


def autoregressive(rng: Rng, n: int, memory: float) -> Floats:
    """Each point remembers this share of the one before."""
    out = rng.normal(0, np.sqrt(1 - memory**2), n)
    out[0] = rng.normal()
    for i in range(1, n):
        out[i] += memory * out[i - 1]
    return out


def student(rng: Rng, n: int, freedom: float) -> Floats:
    """Heavy tails; of the same interquartile range as Gaussian noise, because t(2) has no variance."""
    return np.asarray(rng.standard_t(freedom, n) * (0.826 if freedom <= 2 else 0.882))


def wandering(rng: Rng, n: int, size: float) -> Floats:
    """A random walk of this standard deviation over the series lies under the noise."""
    walk = np.cumsum(rng.normal(0, 1, n))
    return np.asarray(white(rng, n) + size * (walk - walk.mean()) / walk.std())


def changing(rng: Rng, n: int) -> Floats:
    """Half to twice the noise, in stretches of 10 to 40 points."""
    sizes = np.concatenate(
        [np.full(rng.integers(10, 40), 2.0 ** rng.uniform(-1, 1)) for _ in range(n // 10 + 1)]
    )
    return np.asarray(white(rng, n) * sizes[:n])


def switching(rng: Rng, n: int, stay: float) -> Floats:
    """A second mode 4 noises away, for a fifth of the points; `stay` is the chance to remain in it."""
    leave = 0.25 * (1 - stay)
    mode, high = np.zeros(n), rng.random() < 0.2
    for i in range(n):
        mode[i] = high
        high = rng.random() < (stay if high else leave)
    return np.asarray(white(rng, n) + 4 * mode)


def rounded(rng: Rng, n: int) -> Floats:
    """A clock or a counter with few digits."""
    return np.asarray(np.round(white(rng, n) / QUANTUM) * QUANTUM)


def daily(rng: Rng, n: int) -> Floats:
    """Day and night, as far apart as the noise is wide."""
    return np.asarray(white(rng, n) + np.sin(2 * np.pi * (np.arange(n) / DAY + rng.random())))


def spiking(rng: Rng, n: int) -> Floats:
    """One point in twenty is an outlier, 5 to 40 noises off; a third of them drag their neighbour along."""
    spikes = (rng.random(n) < 0.05) * rng.uniform(5, 40, n)
    spikes[1:] += np.where(rng.random(n - 1) < 1 / 3, spikes[:-1], 0.0)
    return np.asarray(white(rng, n) + spikes)


def drifting(rng: Rng, n: int) -> Floats:
    """A slope that rises by three noises in all."""
    return np.asarray(white(rng, n) + 3 * rng.choice([-1, 1]) * np.arange(n) / n)


FAMILIES: dict[str, Callable[[Rng, int], Floats]] = {
    "white": white,
    "memory .3": lambda rng, n: autoregressive(rng, n, 0.3),
    "memory .6": lambda rng, n: autoregressive(rng, n, 0.6),
    "memory .9": lambda rng, n: autoregressive(rng, n, 0.9),
    "wander, half the noise": lambda rng, n: wandering(rng, n, 0.5),
    "wander as large as the noise": lambda rng, n: wandering(rng, n, 1.0),
    "wander, 1.5 noises": lambda rng, n: wandering(rng, n, 1.5),
    "tails t(3)": lambda rng, n: student(rng, n, 3),
    "tails t(2)": lambda rng, n: student(rng, n, 2),
    "changing noise": changing,
    "two modes": lambda rng, n: switching(rng, n, 0.2),
    "two modes that last": lambda rng, n: switching(rng, n, 0.6),
    "rounded": rounded,
    "day and night": daily,
    "outliers": spiking,
    "drift": drifting,
}


def series(family: str, seed: int, n: int = 150) -> Floats:
    """Values (n,) around 1 of a family, the same for the same seed."""
    rng = np.random.default_rng([seed, sorted(FAMILIES).index(family)])
    return np.exp(SIGMA * FAMILIES[family](rng, n))
