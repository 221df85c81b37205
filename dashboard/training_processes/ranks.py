"""The ranks of a document: each one's step in computing, waiting and communicating, over all repetitions.

A rank that waits is as slow as the one that it waits for. What tells them apart is the time that a rank takes
outside of collectives, and who comes last to them; the harness judges that, see the document's `slowest`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CollectiveUse:
    """One kind of collective on one rank, per step: `seconds` is what the rank is blocked in it."""

    kind: str
    count: float
    bytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Rank:
    """Medians over the repetitions, times in seconds per step; None where the document doesn't say.

    `blocked` is the time in collectives, of which `waits` goes by until the last rank comes. `last_share` is
    the part of the collectives to which it comes last, `late` by how much later than the others it comes.
    """

    number: int
    device: str | None
    step_time: float
    blocked: float
    waits: float | None
    own_time: float | None
    overlap: float | None
    late: float | None
    last_share: float | None
    peak_memory: float | None
    device_memory: float | None
    collectives: tuple[CollectiveUse, ...]
    phases: Mapping[str, float]

    @property
    def computing(self) -> float:
        """The step without what is blocked in collectives."""
        return max(0.0, self.step_time - self.blocked) if self.own_time is None else self.own_time

    @property
    def waiting(self) -> float:
        """Of the time in collectives what goes by until the last rank comes."""
        return min(self.waits or 0.0, self.blocked)

    @property
    def communicating(self) -> float:
        return self.blocked - self.waiting

    @property
    def main_collective(self) -> str:
        """The kind in which it is blocked longest; empty where it takes none."""
        longest = max(self.collectives, key=lambda use: use.seconds, default=None)
        return longest.kind if longest else ""


@dataclass(frozen=True, slots=True)
class Ranks:
    """All ranks in order. `slowest` is the one that is waited for; None where `reason`, a code, says why not.

    `phase` is where it takes longer than the others, by `excess` seconds per step.
    """

    world_size: int
    ranks: tuple[Rank, ...]
    slowest: int | None
    reason: str
    phase: str
    excess: float | None

    def find_rank(self, number: int) -> Rank | None:
        return next((rank for rank in self.ranks if rank.number == number), None)

    @property
    def longest_waiting(self) -> Rank | None:
        """Of the ranks beside the slowest the one that waits most; None where no wait is known."""
        known = [rank for rank in self.ranks if rank.waits is not None and rank.number != self.slowest]
        return max(known, key=lambda rank: rank.waits or 0.0, default=None)


def summarize_ranks(document: Mapping[str, Any]) -> Ranks | None:
    """None for a document of one process."""
    member = document.get("ranks")
    if not member or not member["rows"]:
        return None
    by_rank: dict[int, list[Json]] = {}
    for row in member["rows"]:
        by_rank.setdefault(row["rank"], []).append(row)
    return Ranks(
        world_size=member["world_size"],
        ranks=tuple(_summarize_rank(number, by_rank[number]) for number in sorted(by_rank)),
        slowest=member["slowest"],
        reason=member.get("reason") or "",
        phase=member.get("phase") or "",
        excess=member.get("excess"),
    )


def _summarize_rank(number: int, rows: Sequence[Json]) -> Rank:
    collectives = _summarize_collectives(rows)
    shares = [row["last"] / row["of"] for row in rows if row["last"] is not None and row["of"]]
    return Rank(
        number=number,
        device=next((row["device"] for row in rows if row.get("device")), None),
        step_time=median(row["step_time"] for row in rows),
        blocked=median(sum(use["seconds"] for use in row["collectives"]) for row in rows),
        waits=known_median(rows, "waits"),
        own_time=known_median(rows, "own_time"),
        overlap=known_median(rows, "overlap"),
        late=known_median(rows, "late"),
        last_share=median(shares) if shares else None,
        peak_memory=known_median(rows, "peak_memory"),
        device_memory=known_median(rows, "device_memory"),
        collectives=collectives,
        phases=_summarize_phases(rows),
    )


def known_median(rows: Sequence[Mapping[str, Any]], member: str) -> float | None:
    """The median of the rows that know the member; None where none does."""
    values = [row[member] for row in rows if row.get(member) is not None]
    return float(median(values)) if values else None


def _summarize_collectives(rows: Sequence[Json]) -> tuple[CollectiveUse, ...]:
    """By kind, the longest first; a repetition without a kind was blocked in it for no time."""
    by_kind: dict[str, list[Json]] = {}
    for row in rows:
        for use in row["collectives"]:
            by_kind.setdefault(use["kind"], []).append(use)
    uses = [
        CollectiveUse(
            kind, *(_padded_median(found, name, len(rows)) for name in ("count", "bytes", "seconds"))
        )
        for kind, found in by_kind.items()
    ]
    return tuple(sorted(uses, key=lambda use: (-use.seconds, use.kind)))


def _summarize_phases(rows: Sequence[Json]) -> dict[str, float]:
    """Seconds per step by path, those nested in it included."""
    paths = {path for row in rows for path in row["phases"]}
    return {path: median(row["phases"].get(path, 0.0) for row in rows) for path in sorted(paths)}


def _padded_median(uses: Sequence[Json], name: str, repetitions: int) -> float:
    values = [use[name] for use in uses]
    return float(median([*values, *[0.0] * (repetitions - len(values))]))
