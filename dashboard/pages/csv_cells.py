"""Cells of CSV files that people open in table programs."""

from __future__ import annotations

from typing import Any

# What a table program takes for a formula, in text that comes from a repository or from measured code.
FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(value: Any) -> Any:
    """A text that no table program takes for a formula; a number as it is."""
    if isinstance(value, str) and value.startswith(FORMULA_BEGINS):
        return f"'{value}"
    return value
