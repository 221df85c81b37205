"""Functions suspected of a regression, in words."""

from __future__ import annotations

from typing import Any


def function_location(suspect: dict[str, Any]) -> str:
    """`replay.py:push`, with the folders that it lies in."""
    return ":".join(str(part) for part in (suspect.get("file"), suspect.get("function")) if part)


def is_called_in_step(suspect: dict[str, Any]) -> bool:
    """Whether a step calls it, before or after. What only the diff names has no calls and no time."""
    return any(suspect.get(side) != 0 for side in ("calls_before", "calls_after"))
