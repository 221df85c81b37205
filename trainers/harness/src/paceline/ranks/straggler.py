"""Which rank the others wait for, told by the order in which they come to collectives.

A rank that waits is as slow as the one that it waits for: step times don't tell them apart, arrivals do. A
rank's lateness is its arrival less the mean of the others', summed over the collectives of a step. Steps
that follow each other aren't independent, so that blocks of them are summed up first, by their means and by
their medians: a mean finds the rank that now and then takes long, a median isn't moved by one hiccup. A rank
is late where the lower end of either, for all ranks and both ways at once, is beyond what matters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median, stdev
from typing import Literal

BLOCKS = 20
FEWEST = 2 * BLOCKS
# The chance that any rank is named where none is slower, in one repetition.
ERROR = 0.005
# Of a step: what is less isn't worth a person's time.
RELEVANT_SHARE = 0.01

Reason = Literal[
    "no_collectives",
    "different_numbers",
    "different_kinds",
    "too_few_collectives",
    "device_collectives",
    "none_late",
    "several_late",
    "repetitions_disagree",
]
"""Why it isn't known which rank is waited for."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late one rank comes, in seconds per step, by how much at least, and how often it is last."""

    rank: int
    mean: float
    low: float
    last: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The order of arrival in one repetition: every rank's lateness, and the rank that is waited for.

    `slowest` is None where no rank is known to be; `reason` says why in that case.
    """

    ranks: tuple[Lateness, ...]
    collectives: int
    slowest: int | None
    reason: Reason | None


def judge_arrivals(
    orders: Sequence[Sequence[str]], arrived: Sequence[Sequence[float]], steps: int, step_time: float
) -> Arrivals:
    """Judge one repetition: of each rank the kinds of its collectives and when it came to each, in s."""
    if len(arrived) < 2:
        return Arrivals((), 0, None, "no_collectives")
    if any(len(order) != len(orders[0]) for order in orders):
        return Arrivals((), 0, None, "different_numbers")
    if any(order != orders[0] for order in orders):
        return Arrivals((), 0, None, "different_kinds")
    count = len(orders[0])
    last = Counter(max(range(len(arrived)), key=lambda rank: arrived[rank][k]) for k in range(count))
    rows = []
    for rank, times in enumerate(arrived):
        others = [own for index, own in enumerate(arrived) if index != rank]
        late = [times[k] - fmean(own[k] for own in others) for k in range(count)]
        sums, per_step = _sum_steps(late, steps)
        mean = fmean(sums) * per_step
        low = per_step * max(_lower_bound(sums, centre, len(arrived)) for centre in (fmean, median))
        rows.append(Lateness(rank, mean, low, last[rank]))
    if count < FEWEST:
        return Arrivals(tuple(rows), count, None, "too_few_collectives")
    return _name_slowest(tuple(rows), count, step_time)


def slowest_of_repetitions(judged: Sequence[Arrivals]) -> int | None:
    """Return the rank that more than half of the repetitions name and none contradicts; None for no such."""
    named = Counter(arrivals.slowest for arrivals in judged if arrivals.slowest is not None)
    if len(named) != 1:
        return None
    ((rank, times),) = named.items()
    return rank if 2 * times > len(judged) else None


def _sum_steps(late: Sequence[float], steps: int) -> tuple[Sequence[float], float]:
    """Return the sums over the collectives of each step where all have as many; and how many make a step."""
    size, rest = divmod(len(late), steps)
    if rest or size < 2 or steps < FEWEST:
        return late, len(late) / steps
    return [math.fsum(late[step * size : (step + 1) * size]) for step in range(steps)], 1.0


def _lower_bound(late: Sequence[float], centre: Callable[[Sequence[float]], float], ranks: int) -> float:
    """Return the lower end of the one-sided interval of the mean over blocks' centres."""
    if len(late) < BLOCKS:
        return -math.inf
    edges = [len(late) * block // BLOCKS for block in range(BLOCKS + 1)]
    blocks = [centre(late[edges[block] : edges[block + 1]]) for block in range(BLOCKS)]
    tail = ERROR / (2 * ranks)
    return fmean(blocks) - _student_quantile(1 - tail, BLOCKS - 1) * stdev(blocks) / math.sqrt(BLOCKS)


def _student_quantile(share: float, freedom: int) -> float:
    """Student's quantile by the expansion of Abramowitz and Stegun, 26.7.5; to 1 % from 10 degrees on."""
    z = NormalDist().inv_cdf(share)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def _name_slowest(rows: tuple[Lateness, ...], count: int, step_time: float) -> Arrivals:
    least = RELEVANT_SHARE * step_time
    late = [row for row in rows if row.low > least]
    if not late:
        return Arrivals(rows, count, None, "none_late")
    if len(late) > 1:
        return Arrivals(rows, count, None, "several_late")
    return Arrivals(rows, count, late[0].rank, None)
