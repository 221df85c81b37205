"""Measured numbers as JSON, back from Postgres as they went in."""

from __future__ import annotations

import json
from typing import Any

# An integer that a float holds exactly, and that every reader behind us can take.
LARGEST_INTEGER = 2**53


class MeasuredJsonDecoder(json.JSONDecoder):
    """Postgres writes 1e20 as an integer of 21 digits, which no chart and no browser takes for a number."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, parse_int=_parse_integer)


def _parse_integer(text: str) -> int | float:
    value = int(text)
    return value if abs(value) <= LARGEST_INTEGER else float(value)
