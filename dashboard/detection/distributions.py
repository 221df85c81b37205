"""Student's t and the normal distribution.

From scipy's special functions, since scipy.stats takes each process half a second to import, and thirty
times as long for one value. They take a third of a second themselves, which no command should wait for that
judges nothing: they are imported where the first value is asked for.
"""

from __future__ import annotations


def student_upper_tail(value: float, freedom: float) -> float:
    """The probability that Student's t with these degrees of freedom is above `value`."""
    from scipy import special

    return float(special.stdtr(freedom, -value))


def student_quantile(probability: float, freedom: float) -> float:
    from scipy import special

    return float(special.stdtrit(freedom, probability))


def normal_share(value: float) -> float:
    """The probability that a standard normal value is below `value`."""
    from scipy import special

    return float(special.ndtr(value))


def normal_quantile(probability: float) -> float:
    from scipy import special

    return float(special.ndtri(probability))
