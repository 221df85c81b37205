"""What the page of a series says of its lines and of the sizes in it."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.models import Change, Series
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import format_change_size, shown_step
from dashboard.sentences.formatting.english import join_clauses
from dashboard.sentences.measurements.disturbances import ADVICE

REFERENCE_PROBLEMS = {
    "sign": "Values of this metric may be 0 or less: they have no changes in percent.",
    "zero": "The value to compare with is 0: there are no changes in percent from it.",
    "no points": "All runs that are shown are tainted: none is the first to compare with.",
    "no baseline": "The baseline has no value here: choose another one below.",
    "unknown": "No commit of this name is known here yet.",
    "not measured": "This series has no untainted value at that commit.",
}


def taint_reason(codes: Iterable[str]) -> str:
    """Why a run is kept out of judgement: `the repetitions of a run differ by too much`; else empty."""
    return join_clauses([ADVICE[code][0] for code in codes if code in ADVICE])


def failure_text(run: int, failure: str, reason: str) -> str:
    """`run 12 failed: crash. The process ended with exit code 1.`"""
    return f"run {run} failed{f': {failure}' if failure else ''}. {reason}".strip()


def line_label(series: Series, branch: str, beside: Series, own_branch: str) -> str:
    """By what a line differs from the page's own: `pool h100, branch feature`."""
    own, other = beside.configuration, series.configuration
    parts = []
    if own.case_id != other.case_id:
        parts.append(str(other.case))
    if own.pool_id != other.pool_id:
        parts.append(f"pool {other.pool.name}")
    if own.version != other.version:
        parts.append(f"version {other.version}")
    if own.quick != other.quick:
        parts.append("quick" if other.quick else "standard")
    if branch != own_branch:
        parts.append(f"branch {branch}")
    return ", ".join(parts) or "the same line"


def size_of_points(change: Change) -> str:
    """What its points say, where the size that is reported is another one; else empty."""
    shown = shown_step(change)
    if shown is change or format_change_size(change) == format_change_size(shown):
        return ""
    return points_moved_sentence(change)


def points_moved_sentence(change: Change) -> str:
    """`The points, measured at other hours, moved by +67 %; what pairs measured side by side counts.`

    Of a quality, whose seeds differ, `The points of its runs show 9.3 → 2.1; what pairs ...`.
    """
    points = format_change_size(change)
    if change.series.metric.is_quality:
        return f"The points of its runs show {points}; what pairs measured side by side counts."
    return f"The points, measured at other hours, moved by {points}; what pairs measured side by side counts."


def dropped_points_sentence(days: int, every: int) -> str:
    """Why old runs have no point in a series that nothing is judged by."""
    return (
        f"Old points went with age: of runs that ended more than {numbers.format_count(days, 'day')} ago "
        f"one in {every} commits keeps its point here. Nothing is judged by this series."
    )


def thinned_sentence(drawn: int, shown: int) -> str:
    """What a long line leaves out; empty where it leaves out nothing."""
    if drawn >= shown:
        return ""
    return (
        f"{numbers.format_number(drawn)} of {numbers.format_number(shown)} runs are drawn: of each "
        "stretch the first, the last, the lowest and the highest, and both sides of each change. "
        "Closer shows them all."
    )
