"""Doubts about a change in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.models import Change
from dashboard.sentences.formatting import numbers
from dashboard.sentences.measurements.environment_changes import describe_differences

SENTENCES = {
    "few points after": "The new level has only {points} so far.",
    "few points before": "The level before has only {points}.",
    "tainted before": "Tainted points lie directly before it ({count}): the step may be theirs.",
    "no ratio": "There are no ratios (zero or both signs): it was weighed against the typical size.",
    "guard crossed": "It left its guard's bounds here: one seed may be unlucky, so pairs over seeds decide.",
    "guard kept": "It is within its guard's bounds again.",
    "reported again": "It is reported again: it was not before.",
    "varies": "The counter varies between values on the same code, which it had before and has left again.",
    "near floor": "Its interval reaches below what is relevant for this kind of metric.",
}


def describe_doubts(change: Change) -> list[str]:
    """Why one should look twice at a change: detection's doubts, and what else changed where it starts."""
    doubts = [doubt_sentence(doubt) for doubt in change.doubts]
    if change.markers:
        doubts.append(f"The environment changed here: {describe_differences(change.markers)}.")
    return doubts


def doubt_sentence(doubt: Mapping[str, Any]) -> str:
    """The sentence of a doubt, as it is stored with its change."""
    if doubt["code"] == "in parts":
        return f"Seen in {', '.join(doubt['parts'])}: the whole doesn't stand out of its noise."
    if doubt["code"] == "moved":
        before, after = (", ".join(doubt[side]) for side in ("from", "to"))
        share = numbers.format_share(doubt["share"])
        return f"{share} of the step moved from {before} to {after}: nothing was lost."
    if doubt["code"] == "not in best":
        best = numbers.format_percent_change(doubt["ratio_of_best"])
        return (
            f"Only some processes show it, or the machine was busy: the best repetition changed by {best}. "
            "Its size is that of the average process."
        )
    known = SENTENCES.get(doubt["code"])
    points = numbers.format_count(doubt.get("count", 0), "point")
    return known.format(**doubt, points=points) if known else str(doubt.get("text", doubt["code"]))
