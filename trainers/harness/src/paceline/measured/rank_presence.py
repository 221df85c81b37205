"""Where each rank stands, in a file that is up to date at every moment: for a training that hangs.

A rank that waits in a collective can't say so any more. It keeps how many it has come to and left, and the
kind of the last, in memory that it shares with the harness.
"""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .collective_log import KINDS
from .rank_identity import find_rank
from .shared_memory import share_memory

FIELDS = 4
RANK, ARRIVED, LEFT, KIND = range(FIELDS)
NAMED_RANKS = 5
# Of a file's name, with the number of its process.
PREFIX = "presence-"


@dataclass(frozen=True, slots=True)
class RankPresence:
    """How many collectives a rank has come to and left, and the kind of the last."""

    rank: int
    arrived: int
    left: int
    kind: str


class PresenceRecord:
    """This process's own record; until it comes to a collective, and without a folder, it is kept nowhere."""

    __slots__ = ("_arrived", "_folder", "_left", "_numbers")

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._numbers: Any = array("q", bytes(8 * FIELDS))
        self._arrived = self._left = 0

    def keep_in(self, folder: Path) -> None:
        """Begin anew, in a file of this folder once there is something to keep."""
        self._folder = folder
        self._numbers = array("q", bytes(8 * FIELDS))
        self._arrived = self._left = 0

    def arrive_at(self, kind: int) -> None:
        """Note that this rank has come to a collective or message of the kind with this number."""
        if self._folder is not None:
            self._share_numbers(self._folder)
        self._arrived += 1
        self._numbers[KIND] = kind
        self._numbers[ARRIVED] = self._arrived

    def leave(self) -> None:
        """Note that it goes on."""
        self._left += 1
        self._numbers[LEFT] = self._left

    def _share_numbers(self, folder: Path) -> None:
        self._folder = None
        # The harness and its folder may be gone, while its script goes on.
        shared = share_memory(folder / f"{PREFIX}{os.getpid()}", 8 * FIELDS)
        if shared is not None:
            self._numbers = memoryview(shared).cast("q")
            identity = find_rank()
            self._numbers[RANK] = identity.rank if identity is not None else 0


def read_presence(folder: Path) -> list[RankPresence]:
    """Return where all ranks stand, by rank."""
    found = []
    for path in folder.glob(f"{PREFIX}*"):
        numbers = array("q", path.read_bytes().ljust(8 * FIELDS, b"\0")[: 8 * FIELDS])
        rank, arrived, left, kind = numbers
        found.append(RankPresence(rank, arrived, left, KINDS[kind]))
    return sorted(found, key=lambda presence: presence.rank)


def present_pids(folder: Path) -> list[int]:
    """Return the processes that have come to a collective; some may have ended."""
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
