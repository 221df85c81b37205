"""Exact counters that matter by themselves, and from which growth on.

A commit that grows one opens a regression, and a pull request that does is worse.
"""

from __future__ import annotations

# Judged beside the headline series, though only as a whole, never per phase.
ANY_INCREASE = (
    *("synchronisations", "host_device_copies", "copied_bytes"),
    *("graph_breaks", "recompilations"),
)
LARGE_INCREASE = ("function_calls", "tensor_operations")
LARGE_RATIO = 1.05
# A device is waited for at each read: one more at every step counts, however many an optimizer makes.
# As a difference of means over some steps it is seldom a whole number to the last digit.
READS, WHOLE_READ = "scalar_reads", 1 - 1e-9
JUDGED_COUNTERS = (*ANY_INCREASE, *LARGE_INCREASE, READS)


def least_growth(name: str, before: float, *, headline: bool) -> float | None:
    """By how much a counter has to grow from `before` to matter, in its own unit.

    0 is any growth; None: it never matters by itself. Of one phase, `function_calls:learn`, a headline does.
    """
    if name.partition(":")[0] in ANY_INCREASE:
        return 0.0
    large = (LARGE_RATIO - 1) * before
    if name == READS:
        return min(WHOLE_READ, large) if headline else WHOLE_READ
    return large if headline or name in LARGE_INCREASE else None
