"""The lines of the result: a figure, its target, and whether it was reached."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.units import align_columns


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table. `reached` is None where there is no target, or the interval decides nothing."""

    what: str
    figure: str
    beside: str = ""
    target: str = ""
    reached: bool | None = None

    @property
    def verdict(self) -> str:
        """The target and whether it was reached."""
        if not self.target:
            return ""
        words = {True: "reached", False: "MISSED", None: "undecided"}
        return f"{words[self.reached]}: {self.target}"


def is_below(low: float, high: float, most: float) -> bool | None:
    """Whether a figure is below its target: only an interval on one side of it tells."""
    if math.isnan(low) or low < most <= high:
        return None
    return high < most


def format_part(title: str, heads: Sequence[str], lines: Sequence[Line]) -> str:
    """Return one part's table as text."""
    rows = [[line.what, line.figure, line.beside, line.verdict] for line in lines]
    return f"{title}\n{align_columns([[*heads, ''], *rows])}\n"
