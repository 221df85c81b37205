"""The numbers that the code reports itself: those that no document can hold are left out, and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..document import LARGEST
from ..measurement import TimedRepetition

Raw = dict[str, Any]
# The members of a result that hold the code's own numbers.
COUNTS, GAUGES, HELPERS = "counts", "gauges", "helpers"


def is_usable(value: float) -> bool:
    """False for NaN, and for what is too large for a document."""
    return -LARGEST <= value <= LARGEST


def leave_out_unusable(repetition: TimedRepetition) -> TimedRepetition:
    """Return the repetition without numbers that no document can hold; `unusable_numbers` names them."""
    result, ranks = _usable_result(repetition.result), [_usable_result(rank) for rank in repetition.ranks]
    # Of the ranks beside the measured one the document has the helpers' counts alone.
    for rank in ranks:
        for name, readings in rank["unusable"].get(HELPERS, {}).items():
            result["unusable"].setdefault(HELPERS, {}).setdefault(name, readings)
    return replace(repetition, result=result, ranks=ranks)


def unusable_numbers(results: Iterable[Mapping[str, Any]]) -> Counter[tuple[str, str]]:
    """Return how many readings were left out in all, by the member of the result and the number's name."""
    found: Counter[tuple[str, str]] = Counter()
    for result in results:
        for member, readings in result.get("unusable", {}).items():
            for name, number in readings.items():
                found[member, name] += number
    return found


def _usable_result(result: Mapping[str, Any]) -> Raw:
    usable = {**result, "unusable": {member: dict(row) for member, row in result["unusable"].items()}}
    for member in (COUNTS, GAUGES):
        usable[member] = _usable_values(result[member], usable["unusable"], member)
    usable[HELPERS] = [
        {**helper, "counts": _usable_values(helper["counts"], usable["unusable"], HELPERS)}
        for helper in result[HELPERS]
    ]
    return usable


def _usable_values(values: Mapping[str, float], unusable: Raw, member: str) -> dict[str, float]:
    for name, value in values.items():
        if not is_usable(value):
            unusable.setdefault(member, {}).setdefault(name, 1)
    return {name: value for name, value in values.items() if is_usable(value)}
