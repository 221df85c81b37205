"""Simulated series in which nothing changes, of every kind that makes detectors raise false alarms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dashboard.detection.segmentation import Floats

Rng = np.random.Generator
SIGMA = 0.01  # of every model: the noise, as a share of the level
DAY = 24  # points
QUANTUM = 1.5  # of rounding, in noises


def white_noise(rng: Rng, n: int) -> Floats:
    """Independent Gaussian noise of variance 1 (n,); so are the others, but for what their names say."""
    return rng.normal(0, 1, n)


def autoregressive_noise(rng: Rng, n: int, correlation: float) -> Floats:
    """Each point keeps this share of the deviation of the one before."""
    out = rng.normal(0, np.sqrt(1 - correlation**2), n)
    out[0] = rng.normal()
    for i in range(1, n):
        out[i] += correlation * out[i - 1]
    return out


def heavy_tails(rng: Rng, n: int, freedom: float) -> Floats:
    """Heavy tails; of the same interquartile range as Gaussian noise, because t(2) has no variance."""
    return np.asarray(rng.standard_t(freedom, n) * (0.826 if freedom <= 2 else 0.882))


def random_walk(rng: Rng, n: int, size: float) -> Floats:
    """A random walk of this standard deviation over the series lies under the noise."""
    walk = np.cumsum(rng.normal(0, 1, n))
    return np.asarray(white_noise(rng, n) + size * (walk - walk.mean()) / walk.std())


def changing_noise(rng: Rng, n: int) -> Floats:
    """Half to twice the noise, in stretches of 10 to 40 points."""
    sizes = np.concatenate(
        [np.full(rng.integers(10, 40), 2.0 ** rng.uniform(-1, 1)) for _ in range(n // 10 + 1)]
    )
    return np.asarray(white_noise(rng, n) * sizes[:n])


def two_modes(rng: Rng, n: int, stay: float) -> Floats:
    """A second mode 4 noises away, for a fifth of the points; `stay` is the chance to remain in it."""
    leave = 0.25 * (1 - stay)
    mode, high = np.zeros(n), rng.random() < 0.2
    for i in range(n):
        mode[i] = high
        high = rng.random() < (stay if high else leave)
    return np.asarray(white_noise(rng, n) + 4 * mode)


def rounded_noise(rng: Rng, n: int) -> Floats:
    """A clock or a counter with few digits."""
    return np.asarray(np.round(white_noise(rng, n) / QUANTUM) * QUANTUM)


def daily_cycle(rng: Rng, n: int) -> Floats:
    """A sine of the noise's size, once a day."""
    return np.asarray(white_noise(rng, n) + np.sin(2 * np.pi * (np.arange(n) / DAY + rng.random())))


def noise_with_outliers(rng: Rng, n: int) -> Floats:
    """One point in twenty is an outlier, 5 to 40 noises off; a third of them reach their neighbour."""
    spikes = (rng.random(n) < 0.05) * rng.uniform(5, 40, n)
    spikes[1:] += np.where(rng.random(n - 1) < 1 / 3, spikes[:-1], 0.0)
    return np.asarray(white_noise(rng, n) + spikes)


def linear_drift(rng: Rng, n: int) -> Floats:
    """A slope that rises by three noises in all."""
    return np.asarray(white_noise(rng, n) + 3 * rng.choice([-1, 1]) * np.arange(n) / n)


class NullModel(NamedTuple):
    """How a series without a change is drawn, and the number that makes its draws its own."""

    number: int
    draw: Callable[[Rng, int], Floats]


NULL_MODELS = {
    "white": NullModel(15, white_noise),
    "autocorrelation .3": NullModel(3, lambda rng, n: autoregressive_noise(rng, n, 0.3)),
    "autocorrelation .6": NullModel(4, lambda rng, n: autoregressive_noise(rng, n, 0.6)),
    "autocorrelation .9": NullModel(5, lambda rng, n: autoregressive_noise(rng, n, 0.9)),
    "wander, half the noise": NullModel(14, lambda rng, n: random_walk(rng, n, 0.5)),
    "wander as large as the noise": NullModel(12, lambda rng, n: random_walk(rng, n, 1.0)),
    "wander, 1.5 noises": NullModel(13, lambda rng, n: random_walk(rng, n, 1.5)),
    "tails t(3)": NullModel(9, lambda rng, n: heavy_tails(rng, n, 3)),
    "tails t(2)": NullModel(8, lambda rng, n: heavy_tails(rng, n, 2)),
    "changing noise": NullModel(0, changing_noise),
    "two modes": NullModel(10, lambda rng, n: two_modes(rng, n, 0.2)),
    "two modes that last": NullModel(11, lambda rng, n: two_modes(rng, n, 0.6)),
    "rounded": NullModel(7, rounded_noise),
    "daily cycle": NullModel(1, daily_cycle),
    "outliers": NullModel(6, noise_with_outliers),
    "drift": NullModel(2, linear_drift),
}


def simulate_null(name: str, seed: int, n: int = 150) -> Floats:
    """Values (n,) around 1 of a null model, the same for the same seed."""
    model = NULL_MODELS[name]
    return np.exp(SIGMA * model.draw(np.random.default_rng([seed, model.number]), n))
