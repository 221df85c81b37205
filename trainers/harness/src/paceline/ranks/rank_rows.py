"""The document's member `ranks`, from what each rank of each repetition left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..statistics import median
from .straggler import Arrivals, Lateness, judge_arrivals, slowest_of_repetitions

Raw = dict[str, Any]
# Ranks whose windows differ by less count as equally long: the lowest of them is the one that is shown.
EQUAL_SHARE = 0.01


def choose_measured_rank(results: Sequence[Mapping[str, Any]]) -> int:
    """Return the index of the rank with the longest steps: a step is as long as its slowest rank."""
    longest = max(float(result["seconds"]) for result in results)
    return next(
        index for index, result in enumerate(results) if result["seconds"] >= longest * (1 - EQUAL_SHARE)
    )


def build_ranks_member(repetitions: Sequence[Sequence[Mapping[str, Any]]]) -> Raw | None:
    """Return the member for repetitions of some ranks' results each; None where there is one process."""
    if not repetitions or len(repetitions[0]) < 2:
        return None
    judged = [_judge_repetition(ranks) for ranks in repetitions]
    slowest = slowest_of_repetitions(judged)
    rows = [
        {"place": rank, **_rank_row(index, rank, result, arrivals)}
        for index, (ranks, arrivals) in enumerate(zip(repetitions, judged, strict=True))
        for rank, result in enumerate(ranks)
    ]
    sentence = _describe_slowest(judged, slowest, rows)
    for row in rows:
        del row["place"]
    return {
        "world_size": len(repetitions[0]),
        "rows": rows,
        "slowest": None if slowest is None else repetitions[0][slowest]["rank"],
        "sentence": sentence,
    }


def _judge_repetition(ranks: Sequence[Mapping[str, Any]]) -> Arrivals:
    logs = [result["collectives"] for result in ranks]
    if None in logs:
        return Arrivals((), 0, None, "not every rank took a collective in the window")
    return judge_arrivals(
        [log["order"] for log in logs],
        [log["arrived"] for log in logs],
        ranks[0]["steps"],
        median([result["step_time"]["mean"] for result in ranks]),
    )


def _rank_row(repetition: int, rank: int, result: Mapping[str, Any], arrivals: Arrivals) -> Raw:
    late: Lateness | None = next((row for row in arrivals.ranks if row.rank == rank), None)
    log = result["collectives"] or {"kinds": [], "overlap": None}
    return {
        "repetition": repetition,
        "rank": result["rank"],
        "step_time": result["seconds"] / result["steps"],
        "collectives": log["kinds"],
        "overlap": log["overlap"],
        "late": late.mean if late else None,
        "waits": late.waits if late else None,
        "last": late.last if late else None,
        "of": arrivals.collectives,
        "peak_memory": result["peak_memory"],
        "device_memory": (result["device_memory"] or {}).get("allocated"),
        "phases": {row["path"]: row["total"] for row in result["phases"][:100] if row["thread"] == "main"},
    }


def _describe_slowest(judged: Sequence[Arrivals], slowest: int | None, rows: Sequence[Raw]) -> str:
    if slowest is None:
        reasons = [arrivals.reason for arrivals in judged if arrivals.reason]
        return f"Which rank is waited for isn't known: {reasons[0] if reasons else 'repetitions disagree'}."
    own = [row for row in rows if row["place"] == slowest]
    share = median([100 * row["last"] / row["of"] for row in own])
    others = [row for row in rows if row["place"] != slowest]
    most = max(others, key=lambda row: row["waits"] / row["step_time"])
    kinds = {kind["kind"]: kind["seconds"] for kind in most["collectives"]}
    kind = max(kinds, key=lambda name: kinds[name])
    return (
        f"Rank {own[0]['rank']} is waited for: it comes last to {share:.0f} % of the collectives, "
        f"{1000 * median([row['late'] for row in own]):.3g} ms a step after the others; "
        f"rank {most['rank']} waits {100 * most['waits'] / most['step_time']:.0f} % of its time, "
        f"most of it in {kind}."
    )
