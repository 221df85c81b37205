"""What the parts of a difference are shares of."""

from __future__ import annotations

from collections.abc import Collection

# Parts that leave less than this of themselves cancel each other.
LEAST_LEFT = 0.1


def whole_of_parts(parts: Collection[float]) -> float | None:
    """The sum of the parts; None where they mostly cancel each other: a share of that would say nothing."""
    whole = sum(parts)
    return whole if abs(whole) >= LEAST_LEFT * sum(abs(part) for part in parts) and whole else None
