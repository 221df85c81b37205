"""The lines of the result: a figure, its target, and whether it was reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.units import columns


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table. `reached` is None where no target was set."""

    what: str
    figure: str
    beside: str = ""
    target: str = ""
    reached: bool | None = None

    @property
    def verdict(self) -> str:
        """The target and whether it was reached."""
        return "" if self.reached is None else f"{'reached' if self.reached else 'MISSED'}: {self.target}"


def show(title: str, heads: Sequence[str], lines: Sequence[Line]) -> str:
    """Return one part's table as text."""
    rows = [[line.what, line.figure, line.beside, line.verdict] for line in lines]
    return f"{title}\n{columns([[*heads, ''], *rows])}\n"
