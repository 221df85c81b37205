"""How values of a metric stand to each other: by ratios, or by differences where they may be 0 or less."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paceline.metrics import is_signed

# No code grows that fast: what lies beyond is only known to be far away.
LARGEST_EXPONENT = 50.0


class MetricScale:
    """The arithmetic of a metric; whoever mixes it in has the metric's `name`."""

    name: str

    @property
    def is_exponent(self) -> bool:
        """True for a power, read off a sweep: it may be 0 or less, and its differences count, not its ratios.

        Its `ratio`, wherever one is kept, is e ** difference: by how much longer a time takes for each e-fold
        of the swept parameter.
        """
        return self.name.startswith("scaling_exponent")

    @property
    def is_quality(self) -> bool:
        """True for what is learned: which may be 0 or less, so that its differences count, not its ratios."""
        return self.name.startswith("quality.")

    @property
    def has_sign(self) -> bool:
        """True where it may be 0 or less, so that a ratio only says how large a difference is beside what is
        usual.
        """
        return is_signed(self.name)

    def on_ratio_scale(self, value: float) -> float:
        """The value, or what has ratios in its place."""
        return math.exp(max(-LARGEST_EXPONENT, min(LARGEST_EXPONENT, value))) if self.is_exponent else value

    def off_ratio_scale(self, value: float) -> float:
        """The other way round; of an exponent's the value is positive."""
        return math.log(value) if self.is_exponent else value

    def level(self, before: float, ratio: float) -> float:
        """The level that is reached from another one by a ratio."""
        return before + math.log(ratio) if self.is_exponent else before * ratio

    def ratio(self, before: float, after: float) -> float | None:
        """How two levels stand to each other; None where the first one is 0 and has no ratios."""
        old, new = self.on_ratio_scale(before), self.on_ratio_scale(after)
        return new / old if old else None

    def lacks_ratio(self, before: float, after: float) -> bool:
        """True where the difference of two levels counts, not their ratio: one is 0 or less, or may be."""
        return self.has_sign or (not self.is_exponent and min(before, after) <= 0)

    def distance(self, before: float, after: float) -> float:
        """How far two levels are apart, above 0 where the second is higher: the logarithm of their ratio, or
        their difference where they lack one.
        """
        if self.lacks_ratio(before, after):
            return after - before
        return math.log(self.on_ratio_scale(after) / self.on_ratio_scale(before))


# Two processes that do the same differ by this much at least, as the logarithm of their ratio.
LEAST_NOISE = 0.003


@dataclass(frozen=True, slots=True)
class NamedScale(MetricScale):
    """The arithmetic of a metric of which the name alone was read."""

    name: str
