"""Tells from the step times whether the measured window began before the code had warmed up."""

from __future__ import annotations

from collections.abc import Sequence

from ..statistics import median, quantile, theil_sen_slope

BLOCKS = 10
# How many times the other blocks' own spread the first block must lie off their line.
NOISE = 3.0
# Three quarters of a normal distribution's deviations are below this many standard deviations.
_NORMAL = 1.15


def warmup_excess(values: Sequence[float]) -> float | None:
    """Return by how much the window's first tenth differs from where the rest's line would begin.

    `values` are step times in seconds, or means of as many steps each, in their order. A difference that the
    rest's own noise explains is 0. The rest's trend is taken out first: steps that grow slower all along are
    the code's doing, and no reason to keep the run out of judgement. None where there are too few values.
    """
    size = len(values) // BLOCKS
    if size < 2:
        return None
    # Medians twice, and a robust slope: neither a slow step nor a slow stretch of them is a warm-up.
    blocks = [median(values[number * size : (number + 1) * size]) for number in range(BLOCKS)]
    rest = [(float(number), block) for number, block in enumerate(blocks) if number]
    trend = theil_sen_slope(rest)
    if trend is None:
        return None
    starts = [block - trend[0] * number for number, block in rest]
    expected = median(starts)
    if expected <= 0:
        return None
    # Of the nine, two may be disturbed as they like.
    spread = quantile(sorted(abs(start - expected) for start in starts), 0.75) / _NORMAL
    return blocks[0] / expected - 1 if abs(blocks[0] - expected) > NOISE * spread else 0.0
