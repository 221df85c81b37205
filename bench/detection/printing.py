"""Tables on standard output, line by line, as they are measured."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path


def print_line(line: str) -> None:
    """A line as soon as it is known."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def table_head(columns: Sequence[str]) -> Iterator[str]:
    """The two lines that a table of Markdown begins with."""
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)


def print_tables(tables: Iterable[Iterable[str]]) -> None:
    """Tables with an empty line below each."""
    for lines in tables:
        for line in lines:
            print_line(line)
        print_line("")


def print_published(lines: Iterable[str], page: Path, part: re.Pattern[str], *, write: bool) -> None:
    """A table; with `write` it also stands on a page, between the two groups of what `part` finds."""
    printed = []
    for line in lines:
        print_line(line)
        printed.append(line)
    if write:
        body = "\n".join(printed).strip("\n")
        page.write_text(part.sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", page.read_text()))
