"""Members of documents of several processes, as the harness writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def rank_row(rank: int, work: Mapping[str, float], wait: float = 0.0, **changes: Any) -> Json:
    """A rank that takes so long in its phases, then waits, and is 1 ms in a collective."""
    blocked = wait + 0.001
    backward = work.get("backward", 0.0) + blocked
    step = sum(work.values()) + blocked
    return {
        "repetition": 0,
        "rank": rank,
        "step_time": step,
        "own_time": step - blocked,
        "collectives": [{"kind": "all_reduce", "count": 2.0, "bytes": 4e6, "seconds": blocked}],
        "overlap": None,
        "late": -wait,
        "waits": wait,
        "last": 90 if wait == 0 else 5,
        "of": 100,
        "peak_memory": 3e8,
        "device_memory": None,
        "device": None,
        "phases": {**work, "backward": backward, "backward/all_reduce": blocked},
        **changes,
    }


def ranks_member(rows: Sequence[Json], slowest: int | None = None, **changes: Any) -> Json:
    return {
        "world_size": len({row["rank"] for row in rows}),
        "rows": list(rows),
        "slowest": slowest,
        "reason": None if slowest is not None else "none_late",
        "phase": None,
        "excess": None,
        **changes,
    }


def four_ranks(augment_of_2: float = 0.004) -> Json:
    """Ranks that are alike, or of which number 2 takes longer in `augment` so that the others wait."""
    longer = augment_of_2 - 0.004
    rows = [
        rank_row(
            rank,
            {"augment": augment_of_2 if rank == 2 else 0.004, "backward": 0.010},
            0.0 if rank == 2 else longer,
        )
        for rank in range(4)
    ]
    if longer <= 0:
        return ranks_member(rows)
    rows[2]["late"] = longer
    return ranks_member(rows, slowest=2, phase="augment", excess=longer)


def loader_row(wait: float, fetch: Sequence[float], slowest: int | None = None, **changes: Any) -> Json:
    """A DataLoader whose workers take so long for a batch each."""
    workers = [
        {"worker": number, "batches": 1 / len(fetch), "fetch_time": seconds, "wait_time": 0.0, "busy": 0.5}
        for number, seconds in enumerate(fetch)
    ]
    return {
        "repetition": 0,
        "rank": None,
        "dataset": "Tiles",
        "batches": 1.0,
        "wait_time": wait,
        "fetch_time": sum(fetch) / len(fetch),
        "ready": 0.5,
        "workers": workers,
        "slowest": slowest,
        "starved": "loop" if slowest is not None else None,
        **changes,
    }
