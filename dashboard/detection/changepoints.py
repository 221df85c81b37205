"""`detect`: the change points of a plain series of values, without samples or a kind."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dashboard.detection import noise
from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import Floats, Loss, segment

CAP = 9.0
LEAST_NOISE = 1e-9  # on the scaled values: a constant series has no noise, and any step in it is one


def detect(values: Sequence[float]) -> list[int]:
    """The indices (ascending, never 0) at which a new level starts, for a history as it stands.

    Deterministic. Raises ValueError for a value that isn't finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError("values must be finite")
    if len(array) < 3:
        return []
    scaled = Scale.of(array).apply(array)
    return segment(scaled, local_noise(scaled), loss_for(len(array)))


def loss_for(n: int) -> Loss:
    """The penalty grows with the number of places at which noise could pass for a step."""
    return Loss(cap=CAP, penalty=CAP + 2.0 * math.log(max(n, 10)))


def local_noise(scaled: Floats) -> Floats:
    """One noise for the whole series, per point (n,)."""
    return np.full(len(scaled), max(noise.between_runs(scaled), LEAST_NOISE))
