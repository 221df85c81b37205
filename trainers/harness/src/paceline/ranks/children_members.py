"""The document's members `loaders` and `helpers`, and their metrics, from what the repetitions left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..measurement import TimedRepetition

Raw = dict[str, Any]
ROWS_LIMIT = 2000
NAMES_LIMIT = 100


def children_members(timed: Sequence[TimedRepetition]) -> Raw:
    """Return both members; what isn't there is left out."""
    loaders = [
        {"repetition": repetition.index, "rank": rank, **row}
        for repetition in timed
        for rank, result in _results_of(repetition)
        for row in result["loaders"]
    ]
    helpers = [row for repetition in timed for row in _helper_rows(repetition)]
    members = {"loaders": loaders[:ROWS_LIMIT], "helpers": helpers[:ROWS_LIMIT]}
    return {name: rows for name, rows in members.items() if rows}


def loader_samples(timed: Sequence[TimedRepetition]) -> dict[str, list[float | None]]:
    """Return the samples of the loaders' metrics: those of the measured rank, as all that is timed."""
    rows = [repetition.result["loaders"] for repetition in timed]
    if not any(rows):
        return {}
    return {
        "loader_wait_time": [math.fsum(row["wait_time"] for row in loaders) for loaders in rows],
        "loader_fetch_time": [_mean_fetch(loaders) for loaders in rows],
    }


def _results_of(repetition: TimedRepetition) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    if not repetition.ranks:
        yield None, repetition.result
    for result in repetition.ranks:
        yield result["rank"], result


def _helper_rows(repetition: TimedRepetition) -> list[Raw]:
    """Return a row for each name: the helpers of all ranks together."""
    rows: dict[str, Raw] = {}
    for _, result in _results_of(repetition):
        for helper in result["helpers"]:
            before = rows.get(helper["name"])
            rows[helper["name"]] = helper if before is None else _add_helpers(before, helper)
    return [{"repetition": repetition.index, **row} for row in rows.values()]


def _add_helpers(left: Raw, right: Raw) -> Raw:
    cpu_times = left["cpu_time"], right["cpu_time"]
    return {
        "name": left["name"],
        "count": left["count"] + right["count"],
        "cpu_time": None if None in cpu_times else math.fsum(cpu_times),
        **{
            member: {
                name: left[member].get(name, 0.0) + right[member].get(name, 0.0)
                for name in list(left[member] | right[member])[:NAMES_LIMIT]
            }
            for member in ("phases", "counts")
        },
    }


def _mean_fetch(loaders: Sequence[Mapping[str, Any]]) -> float | None:
    batches = math.fsum(row["batches"] for row in loaders if row["fetch_time"] is not None)
    fetched = math.fsum(
        row["batches"] * row["fetch_time"] for row in loaders if row["fetch_time"] is not None
    )
    return fetched / batches if batches else None
