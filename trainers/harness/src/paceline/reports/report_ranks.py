"""The sections of a report on several processes: ranks, the workers of DataLoaders, helpers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..document import Document
from ..document_rows import HelperResult, LoaderResult, RankResult, RankResults
from ..phase_names import UNATTRIBUTED
from ..statistics import median
from ..units import align_columns, format_amount

UNKNOWN = "?"
REASONS = {
    "no_collectives": "not every rank took part in a collective within the window",
    "different_numbers": "the ranks took different numbers of collectives, so that they can't be matched",
    "different_kinds": "the ranks took different collectives, so that they can't be matched",
    "too_few_collectives": "the window holds too few collectives of all ranks, measure more steps",
    "device_collectives": "the collectives run on devices, where the host doesn't see who comes last",
    "none_late": "no rank comes later than the others by what is known",
    "several_late": "more than one rank comes late",
    "repetitions_disagree": "the repetitions disagree",
}


def ranks_table(document: Document) -> str:
    """Return what each rank took and waited, over all repetitions, and which one is waited for."""
    ranks = document.ranks
    if ranks is None or not ranks.rows:
        return ""
    rows = [_rank_row(own) for own in _rows_by_rank(ranks).values()]
    header = ["rank", "step", "own work", "in collectives", "waits", "last", "hidden", "peak memory"]
    return align_columns([header, *rows]) + f"\n{describe_slowest_rank(ranks)}"


def describe_slowest_rank(ranks: RankResults) -> str:
    """Say which rank is waited for, where it takes longer and who waits most; or why it isn't known."""
    by_rank = _rows_by_rank(ranks)
    if ranks.slowest is None:
        numbers = f" ({_describe_numbers(by_rank)})" if ranks.reason == "different_numbers" else ""
        return f"Which rank is waited for isn't known: {REASONS[ranks.reason or 'none_late']}{numbers}."
    own = by_rank.pop(ranks.slowest, [])
    parts = [f"Rank {ranks.slowest} is waited for"]
    shares = [row.last / row.of for row in own if row.last is not None and row.of]
    if shares:
        parts.append(f"it comes last to {median(shares):.0%} of the collectives")
    if ranks.phase is not None and ranks.excess is not None:
        where = "outside all phases" if ranks.phase == UNATTRIBUTED else f"in {ranks.phase}"
        parts.append(f"it takes {format_amount(ranks.excess, 's')} a step longer {where} than the others")
    waits = {rank: _waiting_share(rows) for rank, rows in by_rank.items()}
    if waits:
        most = max(waits, key=lambda rank: waits[rank])
        parts.append(
            f"rank {most} waits {waits[most]:.0%} of its time, most of it in {_longest_kind(by_rank[most])}"
        )
    return f"{parts[0]}: {'; '.join(parts[1:])}." if parts[1:] else f"{parts[0]}."


def _rows_by_rank(ranks: RankResults) -> dict[int, list[RankResult]]:
    numbers = sorted({row.rank for row in ranks.rows})
    return {number: [row for row in ranks.rows if row.rank == number] for number in numbers}


def _describe_numbers(by_rank: Mapping[int, Sequence[RankResult]]) -> str:
    """Return `rank 0: 2, rank 1: 3 a step`."""
    numbers = {
        rank: median([sum(kind["count"] for kind in row.collectives) for row in rows])
        for rank, rows in list(by_rank.items())[:8]
    }
    return ", ".join(f"rank {rank}: {number:g}" for rank, number in numbers.items()) + " a step"


def _waiting_share(rows: Sequence[RankResult]) -> float:
    return median([(row.waits or 0.0) / row.step_time if row.step_time else 0.0 for row in rows])


def _longest_kind(rows: Sequence[RankResult]) -> str:
    kinds = [kind for row in rows for kind in row.collectives]
    return str(max(kinds, key=lambda kind: float(kind["seconds"]))["kind"]) if kinds else "collectives"


def _rank_row(rows: Sequence[RankResult]) -> list[str]:
    last = [row.last / row.of for row in rows if row.last is not None and row.of]
    hidden = [row.overlap for row in rows if row.overlap is not None]
    # The host doesn't wait in collectives of a device: what it spends there is their launch.
    waits = all(row.own_time is not None for row in rows)
    inside = [sum(kind["seconds"] for kind in row.collectives) if waits else None for row in rows]
    return [
        str(rows[0].rank),
        _format_median([row.step_time for row in rows], "s"),
        _format_median([row.own_time for row in rows], "s"),
        _format_median(inside, "s"),
        _format_median([row.waits for row in rows], "s"),
        f"{median(last):.0%}" if last else UNKNOWN,
        f"{median(hidden):.0%}" if hidden else "" if waits else UNKNOWN,
        _format_median([row.peak_memory for row in rows], "bytes"),
    ]


def _format_median(values: Sequence[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    return format_amount(median(known), unit) if known else UNKNOWN


def loaders_table(document: Document) -> str:
    """Return what the workers of each DataLoader took for a batch, and who waited for whom."""
    loaders = [row for row in document.loaders if row.repetition == 0]
    if not loaders:
        return ""
    rows = [cells for loader in loaders for cells in _loader_rows(loader)]
    header = ["DataLoader", "batches", "fetch a batch", "loop waits", "busy"]
    sentences = [sentence for loader in loaders if (sentence := describe_loader(loader))]
    return "\n".join([align_columns([header, *rows]), *sentences])


def describe_loader(loader: LoaderResult) -> str:
    """Say which worker is slow and whether the loop waits for data, or nothing where neither is known."""
    parts = []
    if loader.starved == "loop":
        parts.append(f"the loop waits for it {format_amount(loader.wait_time, 's')} a step")
    elif loader.starved == "workers":
        receives = loader.fetch_time is not None and loader.wait_time > loader.batches * loader.fetch_time
        wait = f", which takes {format_amount(loader.wait_time, 's')} a step to receive what lies ready"
        parts.append(f"its workers wait for the loop{wait if receives else ''}")
    if loader.slowest is not None:
        parts.append(f"worker {loader.slowest} is slower than the others")
    return f"DataLoader of {loader.dataset}: {', '.join(parts)}." if parts else ""


def _loader_rows(loader: LoaderResult) -> list[list[str]]:
    name = loader.dataset if loader.rank is None else f"{loader.dataset} [rank {loader.rank}]"
    fetch = UNKNOWN if loader.fetch_time is None else format_amount(loader.fetch_time, "s")
    whole = [name, format_amount(loader.batches, "1"), fetch, format_amount(loader.wait_time, "s"), ""]
    return [
        whole,
        *(
            [
                f"  worker {row.worker}",
                format_amount(row.batches, "1"),
                format_amount(row.fetch_time, "s"),
                format_amount(row.wait_time, "s"),
                f"{row.busy:.0%}",
            ]
            for row in loader.workers
        ),
    ]


def helpers_table(document: Document) -> str:
    """Return the processor time and phases of processes that took no steps, by their name."""
    helpers = [row for row in document.helpers if row.repetition == 0]
    rows = [cells for helper in helpers for cells in _helper_rows(helper)]
    return align_columns([["helper", "number", "per step"], *rows]) if rows else ""


def _helper_rows(helper: HelperResult) -> list[list[str]]:
    cpu_time = UNKNOWN if helper.cpu_time is None else format_amount(helper.cpu_time, "s")
    processor = [f"{helper.name}, processor", str(helper.count), cpu_time]
    phases = [[f"  {path}", "", format_amount(total, "s")] for path, total in sorted(helper.phases.items())]
    return [processor, *phases]
