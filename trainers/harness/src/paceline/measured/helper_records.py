"""What helpers leave of themselves, in a file each that is up to date at every moment.

A helper is a process that the measured one forks or spawns and that takes no steps. It may be killed at any
time, and doesn't know when the measured window opens and closes: it only keeps totals, in memory that it
shares with the measured process, which reads them at both ends of its window.
"""

from __future__ import annotations

import mmap
import os
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

from .mark_recorder import stable_thread_name
from .phase_nodes import PhaseNode
from .processor import processor_seconds
from .shared_memory import share_memory

PHASE, COUNT = "phase", "count"
SLOTS = 60
NAME_BYTES = 160
# Numbers before those of the slots: processor seconds, slots in use, whether it is a rank; and of a
# DataLoader's worker its batches and their seconds, plain and squared.
HEAD = 6
CPU, USED, IS_RANK, BATCHES, FETCH, FETCH_SQUARED = range(HEAD)
SIZE = 8 * (HEAD + SLOTS) + NAME_BYTES * (SLOTS + 1)
UNNAMED = "helper"
LOADER_WORKER = "DataLoader worker"


@dataclass(slots=True)
class HelperTotals:
    """The totals of one helper: seconds of processor and of phases, counts, batches of a DataLoader."""

    name: str = UNNAMED
    cpu: float | None = 0.0
    is_rank: bool = False
    batches: float = 0.0
    fetch: float = 0.0
    fetch_squared: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)


class HelperRecord:
    """This process's own record. `numbers` is shared memory: what is stored there needs no writing."""

    def __init__(self, folder: Path) -> None:
        path = folder / f"helper-{os.getppid()}-{os.getpid()}"
        # Where there is no room a helper goes on, and nobody learns of it.
        self._map = share_memory(path, SIZE) or mmap.mmap(-1, SIZE)
        self.numbers: Any = memoryview(self._map)[: 8 * (HEAD + SLOTS)].cast("d")
        self._counts: dict[str, int] = {}

    def keep_name(self, name: str) -> None:
        """Keep the name of this process, without its number."""
        self._write_text(0, stable_thread_name(name))

    def add_slot(self, kind: str, name: str) -> int | None:
        """Return the index of a number for this phase or count, None where there is no more room."""
        used = int(self.numbers[USED])
        if used == SLOTS:
            return None
        self._write_text(used + 1, f"{kind} {name}")
        # Its name stands before it counts.
        self.numbers[USED] = used + 1
        return HEAD + used

    def add_count(self, name: str, number: float) -> None:
        """Add to a count of the code's own."""
        slot = self._counts.get(name) or self.add_slot(COUNT, name)
        if slot is not None:
            self._counts[name] = slot
            self.numbers[slot] += number

    def add_batch(self, seconds: float) -> None:
        """Add a batch that this worker of a DataLoader made."""
        if not self.numbers[BATCHES]:
            self._write_text(0, LOADER_WORKER)
        self.numbers[BATCHES] += 1
        self.numbers[FETCH] += seconds
        self.numbers[FETCH_SQUARED] += seconds * seconds

    def mark_rank(self) -> None:
        """Note that this process is a rank, with a result of its own."""
        self.numbers[IS_RANK] = 1.0

    def close_record(self) -> None:
        """Keep what the system won't say once this process is gone."""
        self.numbers[CPU] = process_time()

    def _write_text(self, place: int, text: str) -> None:
        start = 8 * (HEAD + SLOTS) + place * NAME_BYTES
        self._map[start : start + NAME_BYTES] = text.encode()[:NAME_BYTES].ljust(NAME_BYTES, b"\0")


class SharedTotal:
    """Mirrors a phase's total into its slot, whenever the phase is left."""

    __slots__ = ("numbers", "slot")

    def __init__(self, record: HelperRecord, node: PhaseNode) -> None:
        slot = record.add_slot(PHASE, node.path)
        self.numbers = record.numbers if slot is not None else [0.0]
        self.slot = slot or 0


def read_records(folder: Path, parent: int) -> dict[int, HelperTotals]:
    """Return the totals of all helpers below a process so far, by process id; not those below ranks."""
    children: dict[int, list[tuple[int, Path]]] = {}
    for path in folder.glob("helper-*"):
        _, above, own = path.name.split("-")
        children.setdefault(int(above), []).append((int(own), path))
    found: dict[int, HelperTotals] = {}
    waiting = [parent]
    while waiting:
        for pid, path in children.get(waiting.pop(), ()):
            found[pid] = _read_record(pid, path)
            if not found[pid].is_rank:
                waiting.append(pid)
    return found


def _read_record(pid: int, path: Path) -> HelperTotals:
    data = path.read_bytes().ljust(SIZE, b"\0")
    numbers = array("d", data[: 8 * (HEAD + SLOTS)])
    texts = [
        data[start : start + NAME_BYTES].rstrip(b"\0").decode(errors="ignore")
        for start in range(8 * (HEAD + SLOTS), SIZE, NAME_BYTES)
    ]
    totals = HelperTotals(
        name=texts[0] or UNNAMED,
        cpu=numbers[CPU] or processor_seconds(pid),
        is_rank=bool(numbers[IS_RANK]),
        batches=numbers[BATCHES],
        fetch=numbers[FETCH],
        fetch_squared=numbers[FETCH_SQUARED],
    )
    for place in range(int(numbers[USED])):
        kind, _, name = texts[place + 1].partition(" ")
        members = totals.phases if kind == PHASE else totals.counts
        members[name] = members.get(name, 0.0) + numbers[HEAD + place]
    return totals


def helper_rows(
    before: dict[int, HelperTotals], after: dict[int, HelperTotals], steps: int
) -> list[dict[str, Any]]:
    """Return what helpers of each name did between two readings, per step; ranks aren't among them."""
    rows: dict[str, dict[str, Any]] = {}
    for pid, totals in after.items():
        earlier = before.get(pid, HelperTotals())
        if totals.is_rank:
            continue
        empty = {"name": totals.name, "count": 0, "cpu_time": 0.0, "phases": {}, "counts": {}}
        row = rows.setdefault(totals.name, empty)
        row["count"] += 1
        row["cpu_time"] = _add_cpu_time(row["cpu_time"], totals.cpu, earlier.cpu, steps)
        for member, now, then in (
            ("phases", totals.phases, earlier.phases),
            ("counts", totals.counts, earlier.counts),
        ):
            for name, value in now.items():
                added = (value - then.get(name, 0.0)) / steps
                if added:
                    row[member][name] = row[member].get(name, 0.0) + added
    return sorted(rows.values(), key=lambda row: str(row["name"]))


def _add_cpu_time(total: float | None, now: float | None, before: float | None, steps: int) -> float | None:
    """Return the sum, None where a helper is gone that didn't keep its time."""
    return None if total is None or now is None or before is None else total + (now - before) / steps
