"""What several ranks are compared by, as metrics: one sample per repetition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..statistics import mean, median

Row = Mapping[str, Any]
# Bytes and numbers of collectives: exact where all repetitions have the same.
COUNTERS = ("collectives", "collective_bytes")


def rank_samples(ranks: Mapping[str, Any] | None, repetitions: int) -> dict[str, list[float | None]]:
    """Return the samples of each metric; None where a repetition doesn't tell, nothing without ranks."""
    if ranks is None:
        return {}
    groups = [[row for row in ranks["rows"] if row["repetition"] == index] for index in range(repetitions)]
    overlaps = [_mean_of_all([row["overlap"] for row in rows]) for rows in groups]
    return {
        "rank_spread": [_find_spread(rows) for rows in groups],
        "rank_wait_time": [_mean_of_all([row["waits"] for row in rows]) for rows in groups],
        "communication_time": [_mean_of_all([_transfer_time(row) for row in rows]) for rows in groups],
        "communication_overlap": [None if share is None else 100 * share for share in overlaps],
        "collectives": [_mean_sum(rows, "count") for rows in groups],
        "collective_bytes": [_mean_sum(rows, "bytes") for rows in groups],
    }


def is_exact_counter(name: str, samples: Sequence[float]) -> bool:
    """Whether the samples of one of the ranks' counters repeat exactly."""
    return name in COUNTERS and len(samples) > 1 and len(set(samples)) == 1


def _find_spread(rows: Sequence[Row]) -> float | None:
    own = [row["own_time"] for row in rows]
    if None in own or len(own) < 2:
        return None
    *others, slowest = sorted(own)
    return slowest / median(others) if median(others) else None


def _transfer_time(row: Row) -> float | None:
    blocked = math.fsum(kind["seconds"] for kind in row["collectives"])
    return None if row["waits"] is None else max(0.0, blocked - row["waits"])


def _mean_sum(rows: Sequence[Row], field: str) -> float:
    return math.fsum(kind[field] for row in rows for kind in row["collectives"]) / len(rows)


def _mean_of_all(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known and len(known) == len(values) else None
