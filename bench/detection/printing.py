"""Tables on standard output, line by line, as they are measured."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def print_line(line: str) -> None:
    """A line as soon as it is known."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def print_tables(tables: Iterable[Iterable[str]]) -> None:
    """Tables with an empty line below each."""
    for lines in tables:
        for line in lines:
            print_line(line)
        print_line("")
