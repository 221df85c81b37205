"""A run's ranks and the DataLoaders that feed them, for its page."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from dashboard.charts.stacked_bar import stack_widths
from dashboard.sentences.measurements import processes as sentences
from dashboard.training_processes.loaders import Loader, summarize_loaders
from dashboard.training_processes.ranks import Rank, Ranks, known_median, summarize_ranks

# So many are shown at once, the rank that is waited for among them; the others unfold.
MOST_RANKS = 16
MOST_LOADERS = 4
MOST_PHASES = 4

Json = dict[str, Any]


def ranks_context(document: Json) -> Json:
    """Empty for a run of one process."""
    ranks = summarize_ranks(document)
    if ranks is None:
        return {}
    shown = _first_ranks(ranks)
    left_out = [rank for rank in ranks.ranks if rank not in shown]
    longest = max(rank.step_time for rank in ranks.ranks)
    return {
        "world_size": ranks.world_size,
        "slowest_rank": ranks.slowest,
        "ranks_sentence": sentences.describe_slowest(ranks),
        "ranks": [_rank_row(rank, longest) for rank in shown],
        "more_ranks": [_rank_row(rank, longest) for rank in left_out],
        "waits_known": any(rank.waits is not None for rank in ranks.ranks),
        "collectives": _collective_rows(ranks.ranks),
        "rank_columns": _known_columns(ranks.ranks),
    }


def _first_ranks(ranks: Ranks) -> list[Rank]:
    """The first ones in order, and the slowest in the place of the last where it isn't among them."""
    if len(ranks.ranks) <= MOST_RANKS:
        return list(ranks.ranks)
    first = list(ranks.ranks[:MOST_RANKS])
    slowest = None if ranks.slowest is None else ranks.find_rank(ranks.slowest)
    return first if slowest is None or slowest in first else [*first[:-1], slowest]


def _rank_row(rank: Rank, longest: float) -> Json:
    """A rank with the three parts of its bar: (class, start, width) in per cent of the longest step."""
    names = ("computing", "waiting", "communicating")
    spans = stack_widths([getattr(rank, name) for name in names], longest)
    parts = [(name, start, width) for name, (start, width) in zip(names, spans, strict=True)]
    return {"rank": rank, "parts": parts, "waits_share": _share_of_step(rank.waits, rank)}


def _share_of_step(seconds: float | None, rank: Rank) -> float | None:
    return None if seconds is None or rank.step_time <= 0 else seconds / rank.step_time


def _known_columns(ranks: Sequence[Rank]) -> Json:
    """Which columns have a value in any row: a table of dashes says nothing."""
    names = ("device_memory", "overlap", "peak_memory", "waits", "last_share")
    return {name: any(getattr(rank, name) is not None for rank in ranks) for name in names}


def _collective_rows(ranks: Sequence[Rank]) -> list[Json]:
    """Each kind of collective over all ranks, the longest first, with the ranks blocked least and most."""
    kinds = {use.kind for rank in ranks for use in rank.collectives}
    rows = []
    for kind in kinds:
        uses = [(use, rank.number) for rank in ranks for use in rank.collectives if use.kind == kind]
        least, most = (chosen(uses, key=lambda pair: pair[0].seconds) for chosen in (min, max))
        rows.append(
            {
                "kind": kind,
                "count": median(use.count for use, _ in uses),
                "bytes": median(use.bytes for use, _ in uses),
                "seconds": median(use.seconds for use, _ in uses),
                "least": least[0].seconds,
                "least_rank": least[1],
                "most": most[0].seconds,
                "most_rank": most[1],
            }
        )
    return sorted(rows, key=lambda row: (-row["seconds"], row["kind"]))


def loaders_context(document: Json) -> Json:
    """The DataLoaders with workers and the helpers; empty lists where there are none."""
    loaders = [_loader_row(loader) for loader in summarize_loaders(document)]
    return {
        "loaders": loaders[:MOST_LOADERS],
        "more_loaders": loaders[MOST_LOADERS:],
        "helpers": _helper_rows(document),
    }


def _loader_row(loader: Loader) -> Json:
    return {"loader": loader, "sentence": sentences.describe_loader(loader)}


def _helper_rows(document: Json) -> list[Json]:
    """Processes that take no steps, by name: medians over the repetitions, the busiest first."""
    by_name: dict[str, list[Json]] = {}
    for helper in document.get("helpers") or []:
        by_name.setdefault(helper["name"], []).append(helper)
    rows = [
        {
            "name": name,
            "count": max(helper["count"] for helper in helpers),
            "cpu_time": known_median(helpers, "cpu_time"),
            "phases": _median_members(helpers, "phases")[:MOST_PHASES],
            "counts": _median_members(helpers, "counts")[:MOST_PHASES],
        }
        for name, helpers in by_name.items()
    ]
    return sorted(rows, key=lambda row: (-(row["cpu_time"] or 0.0), row["name"]))


def _median_members(helpers: Sequence[Json], member: str) -> list[tuple[str, float]]:
    names = {name for helper in helpers for name in helper[member]}
    values = [(name, median(helper[member].get(name, 0.0) for helper in helpers)) for name in names]
    return sorted(values, key=lambda pair: (-pair[1], pair[0]))


def step_context(document: Json) -> Json:
    return {"step_sentence": sentences.describe_step(document.get("step"))}
