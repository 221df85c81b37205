"""The points that each tool is given: those of a series of the site."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class MeasuredCommit:
    """One commit's value, in seconds, with the interval that its repetitions give."""

    hash: str
    subject: str
    at: datetime
    value: float
    low: float
    high: float


def read_history(series: int) -> list[MeasuredCommit]:
    """Return the points of the series of this key, oldest first."""
    from dashboard.models import Point

    columns = (
        "run__commit__hash",
        "run__commit__subject",
        "run__commit__committed_at",
        "value",
        "low",
        "high",
    )
    points = Point.objects.filter(series=series).order_by("position").values_list(*columns)
    return [MeasuredCommit(*point) for point in points]
