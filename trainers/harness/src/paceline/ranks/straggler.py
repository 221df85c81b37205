"""Which rank the others wait for, by the order in which they come to collectives.

A rank that waits is as slow as the one that it waits for: step times don't tell them apart, arrivals do.
A rank's lateness is its arrival less the others', summed over the collectives of a step, as a share of a
step. It is taken twice: against the others' mean, which finds a rank that now and then takes long, and
against their median, which a hiccup doesn't move. Steps that follow each other aren't independent: blocks of
them, over all repetitions, are what is compared. A rank is named where the lower end of either interval, for
all ranks and both ways at once, is beyond what matters, and most repetitions agree. `python -m
bench.stragglers` says how often that is right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median, stdev
from typing import Literal

# Blocks of all repetitions together, and of each at least.
BLOCKS = 20
FEWEST_BLOCKS = 4
# Collectives of all repetitions together.
FEWEST = 2 * BLOCKS
# The chance that any rank is named where none is slower, in one run.
ERROR = 0.01
# Of a step: what is less isn't worth a person's time.
RELEVANT_SHARE = 0.01
# So many repetitions agree only where a rank is slow; in fewer, blocks that resemble each other may say so.
REPETITIONS_ENOUGH = 3
# Blocks that follow each other resemble each other by chance up to this correlation.
CHANCE_RESEMBLANCE = 0.3

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
    """How late a rank comes in one repetition: seconds per step, and to how many collectives it is last.

    `beyond_mean` and `beyond_median` are the series of it, as shares of a step.
    """

    mean: float
    last: int
    beyond_mean: Sequence[float]
    beyond_median: Sequence[float]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """One repetition: the lateness of every rank, none where `reason` says why they can't be compared."""

    ranks: tuple[Lateness, ...]
    collectives: int
    reason: Reason | None


def compare_arrivals(
    orders: Sequence[Sequence[str]], arrived: Sequence[Sequence[float]], steps: int, step_time: float
) -> Arrivals:
    """Compare the ranks of one repetition: the kinds of their collectives, when they came to each, in s."""
    if not orders or not orders[0]:
        return Arrivals((), 0, "no_collectives")
    if any(len(order) != len(orders[0]) for order in orders):
        return Arrivals((), 0, "different_numbers")
    if any(order != orders[0] for order in orders):
        return Arrivals((), 0, "different_kinds")
    count = len(orders[0])
    last = Counter(max(range(len(arrived)), key=lambda rank: arrived[rank][k]) for k in range(count))
    return Arrivals(
        tuple(_find_lateness(rank, arrived, last[rank], steps, step_time) for rank in range(len(arrived))),
        count,
        None,
    )


def find_slowest(repetitions: Sequence[Arrivals]) -> tuple[int | None, Reason | None]:
    """Return the rank that is waited for, by its place among the ranks; or None and why it isn't known."""
    reason = next((arrivals.reason for arrivals in repetitions if arrivals.reason is not None), None)
    if reason is not None:
        return None, reason
    blocks = max(FEWEST_BLOCKS, math.ceil(BLOCKS / len(repetitions)))
    lengths = [len(arrivals.ranks[0].beyond_mean) for arrivals in repetitions]
    if sum(arrivals.collectives for arrivals in repetitions) < FEWEST or min(lengths) < blocks:
        return None, "too_few_collectives"
    ranks = range(len(repetitions[0].ranks))
    late = [
        rank
        for rank in ranks
        if _least_lateness([arrivals.ranks[rank] for arrivals in repetitions], blocks, len(ranks))
        > RELEVANT_SHARE
    ]
    if len(late) != 1:
        return None, "several_late" if late else "none_late"
    agree = sum(max(ranks, key=lambda rank: arrivals.ranks[rank].mean) == late[0] for arrivals in repetitions)
    return (late[0], None) if 2 * agree > len(repetitions) else (None, "repetitions_disagree")


def _find_lateness(
    rank: int, arrived: Sequence[Sequence[float]], last: int, steps: int, step_time: float
) -> Lateness:
    others = [own for index, own in enumerate(arrived) if index != rank]
    together = list(zip(*others, strict=True))
    beyond_mean = [own - fmean(times) for own, times in zip(arrived[rank], together, strict=True)]
    beyond_median = [own - median(times) for own, times in zip(arrived[rank], together, strict=True)]
    return Lateness(
        math.fsum(beyond_mean) / steps,
        last,
        _sum_steps(beyond_mean, steps, step_time),
        _sum_steps(beyond_median, steps, step_time),
    )


def _sum_steps(late: Sequence[float], steps: int, step_time: float) -> Sequence[float]:
    """Return shares of a step: summed over each step where all have as many collectives."""
    size, rest = divmod(len(late), steps)
    if rest or not size:
        return [seconds * len(late) / steps / step_time for seconds in late]
    return [math.fsum(late[step * size : (step + 1) * size]) / step_time for step in range(steps)]


def _least_lateness(repetitions: Sequence[Lateness], blocks: int, ranks: int) -> float:
    """Return the lower end of a rank's lateness, the higher of both ways to take it."""
    tail = ERROR / (2 * ranks)
    return max(
        _lower_bound([late.beyond_mean for late in repetitions], blocks, fmean, tail),
        _lower_bound([late.beyond_median for late in repetitions], blocks, median, tail),
    )


def _lower_bound(
    series: Sequence[Sequence[float]], blocks: int, centre: Callable[[Sequence[float]], float], tail: float
) -> float:
    """Return the lower end of the one-sided interval of the mean over blocks' centres."""
    centres = [
        centre(late[len(late) * block // blocks : len(late) * (block + 1) // blocks])
        for late in series
        for block in range(blocks)
    ]
    error = stdev(centres) / math.sqrt(len(centres))
    if len(series) < REPETITIONS_ENOUGH:
        error *= _inflate_error(centres, blocks)
    return fmean(centres) - _student_quantile(1 - tail, len(centres) - 1) * error


def _inflate_error(centres: Sequence[float], blocks: int) -> float:
    """Return by how much the error is larger because blocks that follow each other resemble each other."""
    middle, variance = fmean(centres), stdev(centres) ** 2
    pairs = [
        (centres[index] - middle) * (centres[index + 1] - middle)
        for index in range(len(centres) - 1)
        if (index + 1) % blocks
    ]
    if not variance:
        return 1.0
    seen = fmean(pairs) / variance
    # Of so few pairs, less is seen than there is.
    resemblance = min(0.9, seen + (1 + 3 * seen) / len(pairs))
    if resemblance < CHANCE_RESEMBLANCE:
        return 1.0
    return math.sqrt((1 + resemblance) / (1 - resemblance))


def _student_quantile(share: float, freedom: int) -> float:
    """Student's quantile by the expansion of Abramowitz and Stegun, 26.7.5; to 1 % from 10 degrees on."""
    z = NormalDist().inv_cdf(share)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
