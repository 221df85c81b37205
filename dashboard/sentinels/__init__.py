"""Sentinels: pinned commits that are measured again and again, so that what moves them is their machine."""

from dashboard.sentinels.movement import compare_between, judge_sentinel
from dashboard.sentinels.pinning import measure_beside, pin_commit, watch_machines

__all__ = [
    "compare_between",
    "judge_sentinel",
    "measure_beside",
    "pin_commit",
    "watch_machines",
]
