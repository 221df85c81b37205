"""The result files of ranks, and how ranks wait for each other before the first of them ends."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic, sleep

from .rank_identity import RankIdentity

POLL_SECONDS = 0.005


def rank_result_path(result: Path, identity: RankIdentity | None) -> Path:
    """Return the file of this rank beside `result`, which is that of a process without ranks."""
    name = f"process-{os.getpid()}" if identity is None else f"rank-{identity.rank}"
    return result.with_name(f"{result.stem}.{name}.json")


def rank_result_paths(result: Path) -> list[Path]:
    """Return the files that ranks have written, by rank."""
    found = result.parent.glob(f"{result.stem}.*-*.json")
    return sorted(found, key=lambda path: int(path.name.split("-")[-1].removesuffix(".json")))


def await_other_ranks(result: Path, identity: RankIdentity | None, seconds: float) -> None:
    """Wait until every rank has written its result: the end of one breaks the connections of the others."""
    deadline = monotonic() + seconds
    while identity is not None and monotonic() < deadline:
        if len(rank_result_paths(result)) >= identity.world_size:
            return
        sleep(POLL_SECONDS)
