"""Which process of a training took longer: the rank that is waited for, the worker that starves the loop.

Facts as codes with their values; see dashboard/sentences/measurements/processes.py for what is said of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from dashboard.models import Document, Metric
from dashboard.regressions.decision.facts import Series
from dashboard.regressions.explanation.phase_shares import (
    CLOCKED,
    PhaseShare,
    Sides,
    deepest_phase,
    delta_within,
)
from dashboard.training_processes.loaders import Loader, most_named, summarize_loaders
from dashboard.training_processes.ranks import Rank, Ranks, summarize_ranks

Json = dict[str, Any]
RANK, RANK_MEMORY, LOADER = "rank", "rank memory", "loader"
# Of each side so many documents are read, the nearest to the step.
NEAREST_DOCUMENTS = 3
# A process that grew by this part of what was lost, or by more, is a reason for it.
REASON_SHARE = 0.5


def find_slow_processes(series: Series, sides: Sides, lost: float | None) -> list[Json]:
    """The processes that explain most of what was `lost` (seconds per step, or bytes), likeliest first."""
    if not lost or lost <= 0 or not sides.good or not sides.bad:
        return []
    before, after = (read_processes(runs) for runs in (sides.good[::-1], sides.bad))
    if series.metric.kind == Metric.Kind.MEMORY:
        return rank_of_memory(pool_ranks(before), pool_ranks(after), lost)
    if series.metric.kind not in CLOCKED:
        return []
    ranks = rank_of_loss(pool_ranks(before), pool_ranks(after), lost)
    return [*ranks, *loader_of_loss(pool_loaders(before), pool_loaders(after), lost)]


def read_processes(runs: Sequence[int]) -> list[Json]:
    """What the documents of the first few runs say of ranks and loaders; nothing else of them is read."""
    rows = Document.objects.filter(run__in=list(runs[:NEAREST_DOCUMENTS]))
    members = rows.values_list("body__ranks", "body__loaders")
    return [{"ranks": ranks, "loaders": loaders} for ranks, loaders in members]


def pool_ranks(documents: Sequence[Json]) -> Ranks | None:
    """All documents as if they were the repetitions of one run; None where their ranks differ in number."""
    members = [document["ranks"] for document in documents if document["ranks"]]
    if not members or len({member["world_size"] for member in members}) != 1:
        return None
    rows = [row for member in members for row in member["rows"]]
    # One that can't tell, such as a disturbed one, contradicts nobody: whose work grew is asked beside it.
    named = [member["slowest"] for member in members if member["slowest"] is not None]
    return summarize_ranks({"ranks": {**members[0], "rows": rows, "slowest": most_named(named)}})


def pool_loaders(documents: Sequence[Json]) -> dict[tuple[int | None, str], Loader]:
    rows = [row for document in documents for row in document["loaders"] or []]
    return {(loader.rank, loader.dataset): loader for loader in summarize_loaders({"loaders": rows})}


def rank_of_loss(before: Ranks | None, after: Ranks | None, lost: float) -> list[Json]:
    """The rank that is waited for, where its own work grew by most of what was lost, beyond the others'."""
    if before is None or after is None or after.slowest is None or before.world_size != after.world_size:
        return []
    old, new = before.find_rank(after.slowest), after.find_rank(after.slowest)
    if old is None or new is None:
        return []
    others = [growth_of_work(before, rank) for rank in after.ranks if rank is not new]
    longer = new.computing - old.computing - median(others)
    if longer < REASON_SHARE * lost:
        return []
    phase, in_phase = grown_phase(old, new)
    waiting = after.longest_waiting
    return [
        {
            "code": RANK,
            "rank": new.number,
            "ranks": after.world_size,
            "longer": longer,
            "phase": phase,
            "phase_longer": in_phase if phase else None,
            "waiting_rank": waiting.number if waiting else None,
            "waits": waiting.waits if waiting else None,
            "collective": waiting.main_collective if waiting else "",
        }
    ]


def growth_of_work(before: Ranks, rank: Rank) -> float:
    old = before.find_rank(rank.number)
    return rank.computing - old.computing if old else 0.0


def grown_phase(old: Rank, new: Rank) -> tuple[str, float]:
    """The rank's innermost phase that holds most of what it computes longer, and by how much."""
    collectives = {use.kind for rank in (old, new) for use in rank.collectives}
    before, after = own_times(old.phases), own_times(new.phases)
    deltas = {
        path: after.get(path, 0.0) - before.get(path, 0.0)
        for path in sorted(before.keys() | after.keys())
        if path.rpartition("/")[2] not in collectives
    }
    phase = deepest_phase(deltas)
    longer = delta_within(deltas, phase)
    return (phase, longer) if longer > 0 else ("", 0.0)


def own_times(phases: Mapping[str, float]) -> dict[str, float]:
    """Each phase's time without that of the phases directly in it."""
    own = dict(phases)
    for path, seconds in phases.items():
        parent = path.rpartition("/")[0]
        if parent in own:
            own[parent] -= seconds
    return own


def rank_of_memory(before: Ranks | None, after: Ranks | None, lost: float) -> list[Json]:
    """The one rank whose memory grew by most of what was lost, where the others' didn't."""
    if before is None or after is None or before.world_size != after.world_size:
        return []
    growths = {}
    for rank in after.ranks:
        old = before.find_rank(rank.number)
        if old is not None and old.peak_memory is not None and rank.peak_memory is not None:
            growths[rank.number] = rank.peak_memory - old.peak_memory
    grown = [number for number, growth in growths.items() if growth >= REASON_SHARE * lost]
    if len(growths) < after.world_size or len(grown) != 1:
        return []
    return [{"code": RANK_MEMORY, "rank": grown[0], "ranks": after.world_size, "more": growths[grown[0]]}]


def loader_of_loss(
    before: Mapping[tuple[int | None, str], Loader],
    after: Mapping[tuple[int | None, str], Loader],
    lost: float,
) -> list[Json]:
    """The DataLoader for which the loop waits longer by most of what was lost, with its slowest worker."""
    grown = {key: loader.wait_time - before[key].wait_time for key, loader in after.items() if key in before}
    key = max(grown, key=lambda key: grown[key], default=None)
    if key is None or grown[key] < REASON_SHARE * lost:
        return []
    old, new = before[key], after[key]
    worker = None if new.slowest is None else new.find_worker(new.slowest)
    earlier = old.find_worker(worker.number) if worker else None
    return [
        {
            "code": LOADER,
            "rank": new.rank,
            "dataset": new.dataset,
            "worker": worker.number if worker else None,
            "fetch_before": earlier.fetch_time if earlier else old.fetch_time,
            "fetch_after": worker.fetch_time if worker else new.fetch_time,
            "waits_before": old.wait_time,
            "waits_after": new.wait_time,
        }
    ]


def phase_of_slow_rank(share: PhaseShare, processes: Sequence[Json], lost: float | None) -> PhaseShare:
    """The phase in which the slow rank takes longer, in the place of the one in which others wait for it."""
    rank = next((row for row in processes if row["code"] == RANK and row["phase"]), None)
    if rank is None or not lost:
        return share
    waits = not share.phase or share.phase.rpartition("/")[2] == rank["collective"]
    longer = rank["phase_longer"]
    return PhaseShare(rank["phase"], min(1.0, longer / lost), longer) if waits else share
