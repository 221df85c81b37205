"""Which share of the time each part of a step takes: the document's table, as the training itself sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import paceline

ROWS = (
    ("API: serialize and call", ("serialize", "api"), "about 75 %"),
    ("  of it screens without play", ("ui",), "-"),
    ("Parsing", ("parse",), "about 5 %"),
    ("Cache", ("cache",), "-"),
    ("Observation history", ("history",), "-"),
)
"""Rows: their name, their phases, the document's share."""


class Shares:
    """Marks phases, and keeps their seconds."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys((name for row in ROWS for name in row[1]), 0.0)
        self.began = perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A phase of the step, which is one of these parts."""
        began = perf_counter()
        try:
            with paceline.phase(name):
                yield
        finally:
            self.seconds[name] += perf_counter() - began

    def table(self) -> str:
        """The shares since the beginning, beside the document's."""
        whole = perf_counter() - self.began
        lines = [f"{'time':30}{'share':>8}{'document':>12}"]
        for name, parts, said in ROWS:
            lines.append(f"{name:30}{sum(self.seconds[part] for part in parts) / whole:8.1%}{said:>12}")
        return "\n".join(lines)
