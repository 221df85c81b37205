"""Student's t and the normal distribution.

From scipy's special functions, since scipy.stats takes each process half a second to import, and thirty
times as long for one value.
"""

from __future__ import annotations

from scipy import special


def student_upper_tail(value: float, freedom: float) -> float:
    """The probability that Student's t with these degrees of freedom is above `value`."""
    return float(special.stdtr(freedom, -value))


def student_quantile(probability: float, freedom: float) -> float:
    return float(special.stdtrit(freedom, probability))


def normal_share(value: float) -> float:
    """The probability that a standard normal value is below `value`."""
    return float(special.ndtr(value))


def normal_quantile(probability: float) -> float:
    return float(special.ndtri(probability))
