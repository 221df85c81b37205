"""What stands in a form's fields, as Postgres can take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Longer ones are beyond any row, and Python refuses to read the longest.
MOST_DIGITS = 18


def read_text(form: Mapping[str, Any], name: str) -> str:
    """Empty where the form lacks it; without a NUL, for which Postgres has no text."""
    return str(form.get(name, "")).replace("\0", "")


def parse_key(text: str) -> int:
    """The key of a row; 0, which no row has, where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else 0
