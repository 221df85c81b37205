"""Where each rank stands, in a file that is up to date at every moment: for a training that hangs.

A rank that waits in a collective can't say so any more. It keeps how many it has come to, and the kind of the
one that it is in, in memory that it shares with the harness.
"""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from .collective_log import KINDS
from .rank_identity import find_rank
from .shared_memory import share_memory

FIELDS = 3
RANK, POSITION, STARTED = range(FIELDS)
# Of a process that doesn't know its rank before it joins a process group.
UNKNOWN_RANK = -1
# A position is one number: how many collectives the rank has come to, times this, and within one its marker.
ONE_ARRIVAL = 2**6
NAMED_RANKS = 5
# Of a file's name, with the number of its process.
PREFIX = "presence-"


@dataclass(frozen=True, slots=True)
class RankPresence:
    """How many collectives a rank has come to and left, and the kind of the one that it is in."""

    rank: int
    arrived: int
    left: int
    kind: str


class PresenceRecord:
    """This process's own record; it is kept nowhere without a folder, and until it is shared.

    Who comes to a collective adds ONE_ARRIVAL to `arrived`, and writes that with the marker of its kind into
    `numbers` at POSITION; who leaves it writes `arrived`. In lines and not by calls: between two collectives
    a training computes, and each function that is called has left the processor's caches meanwhile.
    """

    __slots__ = ("arrived", "numbers")

    def __init__(self) -> None:
        self.arrived = 0
        self.numbers: Any = array("q", bytes(8 * FIELDS))

    def keep_in(self, folder: Path, *, is_rank: bool = False) -> None:
        """Begin anew, in a file of this folder: at once for a rank, else with the first collective."""
        self.arrived = 0
        self.numbers = before_first = _NumbersBeforeFirst(self, folder)
        if is_rank:
            before_first.share(UNKNOWN_RANK)


class _NumbersBeforeFirst:
    """Stands in for a record's numbers until the first one is written, when the process knows its rank."""

    def __init__(self, record: PresenceRecord, folder: Path) -> None:
        self._record = record
        self._folder = folder
        self._numbers: Any = None

    def share(self, unknown_rank: int) -> Any:
        """Return the numbers in the file, with this process's rank as far as it is known."""
        if self._numbers is None:
            # The harness and its folder may be gone, while its script goes on.
            shared = share_memory(self._folder / f"{PREFIX}{os.getpid()}", 8 * FIELDS)
            self._numbers = memoryview(shared or bytearray(8 * FIELDS)).cast("q")
            self._numbers[STARTED] = perf_counter_ns()
        identity = find_rank()
        self._numbers[RANK] = identity.rank if identity is not None else unknown_rank
        return self._numbers

    def __setitem__(self, place: int, number: int) -> None:
        self._record.numbers = numbers = self.share(unknown_rank=0)
        numbers[place] = number


def presence_marker(kind: int) -> int:
    """Return what is added to a position by who is in a collective of the kind with this number."""
    return 2 * kind + 1


def read_presence(folder: Path) -> list[RankPresence]:
    """Return where all ranks stand, by rank; of one that was started again, where the last one stands."""
    files = [path.read_bytes() for path in folder.glob(f"{PREFIX}*")]
    records = [array("q", content) for content in files if len(content) == 8 * FIELDS]
    found = {}
    for rank, position, _ in sorted(records, key=lambda numbers: numbers[STARTED]):
        arrived, within = divmod(position, ONE_ARRIVAL)
        kind, waits = divmod(within, 2)
        found[rank] = RankPresence(rank, arrived, arrived - waits, KINDS[kind])
    return [found[rank] for rank in sorted(found) if rank != UNKNOWN_RANK]


def present_pids(folder: Path) -> list[int]:
    """Return the ranks' processes, and others that have come to a collective; some may have ended."""
    return [int(path.name.removeprefix(PREFIX)) for path in folder.glob(f"{PREFIX}*")]


def describe_hang(ranks: list[RankPresence]) -> str:
    """Say which ranks wait in a collective and which never came, or nothing where none waits."""
    waiting = [presence for presence in ranks if presence.arrived > presence.left]
    if not waiting:
        return ""
    foremost = max(waiting, key=lambda presence: presence.arrived)
    behind = [presence.rank for presence in ranks if presence.arrived < foremost.arrived]
    within = [presence.rank for presence in waiting if presence.arrived == foremost.arrived]
    where = f"{_name_ranks(within)} in {foremost.kind}"
    return f"{where}, to which {_name_ranks(behind)} never came" if behind else where


def _name_ranks(ranks: list[int]) -> str:
    named = ", ".join(str(rank) for rank in ranks[:NAMED_RANKS])
    more = f" and {len(ranks) - NAMED_RANKS} more" if len(ranks) > NAMED_RANKS else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {named}{more}"


presence = PresenceRecord()
"""That of this process."""
