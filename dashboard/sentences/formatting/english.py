"""Letters at the start of a sentence, and lists of names and of clauses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def lower_first(text: str) -> str:
    """Unless it begins with an abbreviation: `CPU utilization` stays."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def upper_first(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def join_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; empty of none."""
    *first, last = names or [""]
    return f"{', '.join(first)} and {last}" if first else last


def join_clauses(clauses: Iterable[str]) -> str:
    """Each once: `a`, `a; b`."""
    return "; ".join(dict.fromkeys(clauses))
