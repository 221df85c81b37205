"""Many intervals looked at together: which of them leave out no difference for more than chance.

Of two hundred intervals at 95 % ten leave it out though nothing differs. Benjamini and Hochberg's procedure
keeps the part of such ones among all that are called different below a rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.detection.comparison import LEVEL
from dashboard.detection.distributions import student_quantile, student_upper_tail

# Of what is called different, so much may be no difference.
FALSE_DISCOVERIES = 0.05


@dataclass(frozen=True, slots=True)
class Interval:
    """A shift with its interval on a scale where 0 is no difference; `samples` of both groups together."""

    shift: float
    low: float
    high: float
    samples: int

    @property
    def p_value(self) -> float:
        """The probability of such a shift without a difference, by Student's t of the same interval."""
        half = self.shift - self.low if self.shift > 0 else self.high - self.shift
        if half <= 0:
            return 0.0 if self.shift else 1.0
        freedom = max(1, self.samples - 2)
        distance = abs(self.shift) / half * student_quantile((1 + LEVEL) / 2, freedom)
        return 2 * student_upper_tail(distance, freedom)


def find_discoveries(intervals: Sequence[Interval], rate: float = FALSE_DISCOVERIES) -> list[bool]:
    """Of each interval whether it is a difference, where so many are looked at."""
    p_values = [interval.p_value for interval in intervals]
    ordered = sorted(p_values)
    passing = [p for rank, p in enumerate(ordered, 1) if p <= rate * rank / len(ordered)]
    largest = max(passing, default=-1.0)
    return [p <= largest for p in p_values]
