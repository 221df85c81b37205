"""Doubts about a change in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.sentences import labels

SENTENCES = {
    "few points after": "The new level has only {count} points so far.",
    "few points before": "The level before has only {count} points.",
    "tainted before": "Tainted points lie directly before it ({count}): the step may be theirs.",
    "no ratio": "There are no ratios (zero or both signs): the change is relative to the typical size.",
    "too few samples": "Too few samples to tell: {least} of each are needed, {a} and {b} were given.",
    "near floor": "Its interval reaches below what is relevant for this kind of metric.",
    "in parts": "Seen in {parts}: the whole doesn't stand out of its noise.",
}


def doubt_sentence(doubt: Mapping[str, Any]) -> str:
    """The sentence of a doubt, as it is stored with the change."""
    if doubt["code"] == "environment changed":
        named = ", ".join(labels.format_difference(difference) for difference in doubt["differences"])
        return f"The environment changed here: {named}."
    known = SENTENCES.get(doubt["code"])
    return known.format(**doubt) if known else str(doubt.get("text", doubt["code"]))
