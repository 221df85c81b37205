"""When a run has repetitions enough: fixed looks at a fixed rule, whatever the code's speed turns out to be.

A look after three, four, six and ten repetitions asks whether Student's interval of the mean step time, taken
of logarithms, is within the manifest's `precision` to either side. The looks share an error of 5 %: each has
its part of it, so that looking several times makes the interval no narrower than it says. How fast the code
was plays no part, only how alike its repetitions are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..statistics import mean

LOOKS = (3, 4, 6, 10)
# Student's t for a two-sided error of 5 % over the number of looks: a row for each number, by look.
_STUDENT = (
    (4.303, 3.182, 2.571, 2.262),
    (6.205, 4.177, 3.163, 2.685),
    (7.649, 4.857, 3.534, 2.933),
    (8.860, 5.392, 3.810, 3.111),
)


def is_precise_enough(step_times: Sequence[float], precision: float, most: int) -> bool:
    """Whether these repetitions, of `most` at most, are a look's and narrow the step time down enough."""
    looks = [look for look in LOOKS if look < most]
    if precision <= 0 or len(step_times) not in looks or min(step_times) <= 0:
        return False
    return interval_half_width(step_times, len(looks)) <= math.log1p(precision)


def interval_half_width(step_times: Sequence[float], looks: int) -> float:
    """Half the width of the interval of the mean logarithm, at one of so many looks."""
    logarithms = [math.log(seconds) for seconds in step_times]
    middle, count = mean(logarithms), len(logarithms)
    spread = math.sqrt(math.fsum((value - middle) ** 2 for value in logarithms) / (count - 1))
    return _STUDENT[looks - 1][LOOKS.index(count)] * spread / math.sqrt(count)
