"""What a series is read against, in words."""

from __future__ import annotations

from paceline.manifest.policy import MERGE_BASE, ROLLING

from dashboard.detection import Comparison
from dashboard.metric_scale import MetricScale
from dashboard.sentences.formatting import numbers

# Wider intervals around no difference hide what people would want to know.
WIDEST_EQUAL = 0.1
LABELS = {ROLLING: "rolling", MERGE_BASE: "merge base"}
PROBLEMS = {
    "unknown": "No commit of this name is known here yet.",
    "not measured": "This case isn't measured at that commit, or what was measured there is tainted.",
    "no fork": "Where this branch left the project's isn't known.",
    "own branch": "Only another branch has a merge base: this one is the project's own.",
    "no level": "There is no point before the newest one on its level yet.",
    "no points": "All points that are shown are tainted.",
}


def baseline_label(name: str) -> str:
    """`rolling`, `merge base`, or the name of the tag or commit."""
    return LABELS.get(name, name)


def format_comparison(metric: MetricScale, comparison: Comparison, level: float) -> str:
    """`+12 % [10, 14]`, or a difference of exponents; `level` is that of the baseline."""
    if metric.is_exponent:
        interval = numbers.format_exponent_interval(comparison.low, comparison.high)
        return f"{numbers.format_exponent_difference(comparison.ratio)} {interval}".strip()
    if not level:
        return numbers.format_percent_change(None)
    interval = numbers.format_percent_interval(comparison.low, comparison.high)
    return f"{numbers.format_percent_change(comparison.ratio)} {interval}".strip()


def comparison_word(better: str, comparison: Comparison) -> str:
    """Whether the newest point is better or worse than its baseline, or no different; empty: not known.

    That it is no different is said only where the interval leaves no room for a difference that matters.
    """
    if comparison.verdict == "?":
        return ""
    if comparison.verdict == "~":
        return "no different" if _is_narrow(comparison) else "too uncertain to tell apart"
    return "better" if comparison.verdict == better else "worse"


def _is_narrow(comparison: Comparison) -> bool:
    low, high = comparison.low, comparison.high
    return low is None or high is None or max(high - 1, 1 - low) <= WIDEST_EQUAL
