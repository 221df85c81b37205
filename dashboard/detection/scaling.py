"""From a metric's unit to the scale on which noise is alike at every level, and back to ratios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dashboard.detection.medians import fast_median
from dashboard.detection.segmentation import Floats

LARGEST = 1e12  # in units of the typical magnitude; what lies beyond is only known to be far away


def safe_median(values: Floats) -> float:
    """The median of values (n,) of any finite size: half of each is taken, so that two never overflow."""
    return 2.0 * fast_median(values / 2.0)


def _common_sign(values: Floats) -> float:
    """1 or -1 where all values (n,) have that sign, else 0."""
    if not len(values):
        return 0.0
    return 1.0 if values.min() > 0 else -1.0 if values.max() < 0 else 0.0


@dataclass(frozen=True, slots=True)
class Scale:
    """Logarithms where all values have one sign, because noise and steps are shares of the level.

    Otherwise values in units of the series' typical magnitude: growth and signed metrics have no ratio.
    """

    magnitude: float
    sign: float  # of every value; 0 where they differ or one is zero

    @property
    def logarithmic(self) -> bool:
        """True where levels have ratios."""
        return self.sign != 0

    @classmethod
    def fit(cls, values: Floats, *, by_difference: bool = False) -> Scale:
        """The scale for values (n,), finite. `by_difference`: without logarithms, whatever their signs."""
        sign = _common_sign(values)
        if sign and not by_difference:
            return cls(magnitude=1.0, sign=sign)
        sizes = np.abs(values[values != 0])
        return cls(magnitude=safe_median(sizes) if len(sizes) else 1.0, sign=0.0)

    def holds(self, values: Floats) -> bool:
        """Whether the scale is one for values (n,) too: those of another sign have no logarithm."""
        return not self.logarithmic or bool((np.sign(values) == self.sign).all())

    def apply(self, values: Floats) -> Floats:
        """Values (n,) on the scale, in their order."""
        if self.logarithmic:
            return np.asarray(self.sign * np.log(np.abs(values)), dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(values / self.magnitude, -LARGEST, LARGEST), dtype=np.float64)

    def values(self, scaled: Floats) -> Floats:
        """What `apply` has put on the scale (n,), in the metric's unit again."""
        if self.logarithmic:
            return np.asarray(self.sign * np.exp(self.sign * scaled), dtype=np.float64)
        return scaled * self.magnitude

    def step(self, difference: float, level: float) -> float:
        """A `difference` in the metric's unit (not negative) from a level of either sign, on this scale."""
        size = abs(level) if self.logarithmic else self.magnitude
        share = LARGEST if difference > LARGEST * size else difference / size
        return float(np.log1p(share)) if self.logarithmic else share

    def level_after(self, step: float, before: float) -> float:
        """The level a `step` on this scale leads to from the one before, both in the metric's unit."""
        return before * self.ratio(step, before) if self.logarithmic else before + step * self.magnitude

    def ratio(self, step: float, before: float) -> float:
        """The ratio after / before of a `step` on this scale.

        Without logarithms it is relative to the level before, or to the typical magnitude where that level is
        nearer to zero, with the sign of the step: from 0 to anything is finite, and never below 0.
        """
        if self.logarithmic:
            return float(np.exp(min(max(self.sign * step, -700.0), 700.0)))
        return max(0.0, 1.0 + step / max(abs(before) / self.magnitude, 1.0))
