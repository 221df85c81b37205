"""The counting repetition: what repeats exactly, from a process that no one times.

After the warm-up come two windows of the same length. The first counts function calls, the second tensor
operations: a dispatch mode runs Python code for every operation, which would count as calls. Resident
memory is read at every border of the main thread's phases, from the start of the process on.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ..document import SETUP, UNATTRIBUTED
from ..measured import device, memory
from ..measured.marks import Marks, Node, StepLoop, ThreadState
from . import functions

if TYPE_CHECKING:
    from .operations import OperationMode, Tally

_Item = TypeVar("_Item")


class CountedNode(Node):
    """A node at whose borders the growth of resident memory is billed."""

    __slots__ = ("growth", "meter")

    def __init__(self, name: str, parent: Node | None, state: ThreadState) -> None:
        super().__init__(name, parent, state)
        self.growth = 0
        self.meter: Meter | None = None

    def __enter__(self) -> None:
        if self.meter is not None:
            self.meter.bill()
        super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.meter is not None:
            self.meter.bill()
        super().__exit__(kind, error, trace)


class Meter:
    """Bills each change of resident memory to the phase in which it happened."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._resident = memory.ResidentMemory()
        self._before = 0
        self.setup: int | None = None

    def bill(self) -> None:
        """Bill what grew since the last border to the phase that is being left or interrupted."""
        now = self._resident.read()
        if self.setup is not None:
            node = self._counting.main.node
            node.growth += now - self._before  # type: ignore[attr-defined]  # every node is a CountedNode
        self._before = now

    def begin(self) -> None:
        """Close the set-up: all that is resident now was there before the first step."""
        self.setup = self._before = self._resident.read()

    def growths(self) -> dict[str, int]:
        """Return bytes by phase path, the set-up and what no phase covers included."""
        if not self._resident.available or self.setup is None:
            return {}
        found: defaultdict[str, int] = defaultdict(int)
        found[SETUP] = self.setup
        for node in [self._counting.main.root, *self._counting.main.nodes]:
            found[node.path or UNATTRIBUTED] += node.growth  # type: ignore[attr-defined]
        return dict(found)


class Counting(Marks[CountedNode]):
    """The recorder of a counting repetition."""

    def __init__(self, warmup_steps: int, steps: int, report: Callable[[int], None]) -> None:
        super().__init__(CountedNode)
        self.meter = Meter(self)
        self.switch = functions.Switch()
        self.operations_on = False
        self.profiles: dict[int, functions.ThreadProfile] = {}
        self.modes: list[OperationMode] = []
        self.loop = _CountedLoop(self, warmup_steps, steps, report)
        # A hook that stands from the start reaches every thread that the code will start.
        threading.setprofile(self._first_event)

    def steps(self, iterable: Iterable[_Item]) -> Iterable[_Item]:
        """Iterate until both windows are complete."""
        return self.loop.iterate(iterable)

    def prepare(self, node: CountedNode) -> None:
        """Let a node of the main thread bill its memory; growth can't be told apart between threads."""
        if node.state is self.main:
            node.meter = self.meter

    def profile(self) -> functions.ThreadProfile:
        """Return the calling thread's profile."""
        ident = threading.get_ident()
        if ident not in self.profiles:
            state = self.main if ident == self.main_ident else self._other_state()
            self.profiles[ident] = functions.ThreadProfile(state, self.switch)
        return self.profiles[ident]

    def add_mode(self) -> OperationMode | None:
        """Count the calling thread's tensor operations, if the code uses torch at all."""
        if "torch" not in sys.modules:
            return None
        from .operations import OperationMode

        state = self.main if threading.get_ident() == self.main_ident else self._other_state()
        mode = OperationMode(state, lambda: self.operations_on)
        self.modes.append(mode)
        mode.__enter__()
        return mode

    def _first_event(self, _frame: FrameType, _event: str, _arg: Any) -> None:
        sys.setprofile(None)
        profile = self.profile()
        self.add_mode()
        sys.setprofile(profile.callback)

    def result(self, folder: Path) -> dict[str, Any]:
        """Return the counters as plain data, per step; call it once both windows are complete."""
        return {
            "steps": self.loop.steps,
            "functions": _functions(self, folder),
            "calls": _calls(self),
            "operations": _operations(self),
            "memory": self.meter.growths(),
        }


class _CountedLoop(StepLoop):
    def __init__(
        self, counting: Counting, warmup_steps: int, steps: int, report: Callable[[int], None]
    ) -> None:
        super().__init__(counting)
        self._counting = counting
        self._report = report
        self.warmup_steps = warmup_steps
        self.steps = steps
        self.done = 0
        self._mode: OperationMode | None = None

    @property
    def taken(self) -> int:
        """Steps so far, the warm-up's included."""
        return self.done

    def begin(self) -> None:
        if self.done == 0:
            self._counting.meter.begin()
            if self.warmup_steps == 0:
                self._count_functions()

    def end_step(self) -> bool:
        self._counting.meter.bill()
        self.done += 1
        if self.done % 50 == 0:
            self._report(self.done)
        window = self.done - self.warmup_steps
        if window == 0:
            self._count_functions()
        elif window == self.steps:
            self._count_operations()
        elif window == 2 * self.steps:
            self._finish()
        return self.complete

    def _count_functions(self) -> None:
        gc.collect()
        sys.setprofile(self._counting.profile().callback)
        self._counting.switch.on = True

    def _count_operations(self) -> None:
        self._counting.switch.on = False
        sys.setprofile(None)
        for profile in list(self._counting.profiles.values()):
            profile.finish()
        self._mode = self._counting.add_mode()
        if self._mode is not None and device.used():
            self._mode.count_synchronize()
        if self._mode is None:
            # Nothing to count without torch: the second window would only take time.
            self.complete = True
        self._counting.operations_on = True

    def _finish(self) -> None:
        self._counting.operations_on = False
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
        self.complete = True


def _functions(counting: Counting, folder: Path) -> list[dict[str, Any]]:
    """Return one row per function: calls by phase, own and cumulative seconds, all per step."""
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    for profile in counting.profiles.values():
        for (key, path), row in profile.rows.items():
            place = functions.place(key, folder)
            found = rows.setdefault(place, {"calls": defaultdict(float), "self": 0.0, "cumulative": 0.0})
            found["calls"][path or UNATTRIBUTED] += row.calls / counting.loop.steps
            found["self"] += row.own / counting.loop.steps
            found["cumulative"] += row.cumulative / counting.loop.steps
    return [{"function": f, "file": file, "line": line, **row} for (f, file, line), row in rows.items()]


def _calls(counting: Counting) -> dict[str, float]:
    calls: defaultdict[str, int] = defaultdict(int)
    for profile in counting.profiles.values():
        for (_, path), row in profile.rows.items():
            calls[path or UNATTRIBUTED] += row.calls
    return {path: number / counting.loop.steps for path, number in calls.items() if number}


def _operations(counting: Counting) -> dict[str, dict[str, Any]] | None:
    """Return each phase's tallies per step, or None where the code doesn't use torch."""
    if not counting.modes:
        return None
    tallies: defaultdict[str, list[Tally]] = defaultdict(list)
    for mode in counting.modes:
        for path, tally in mode.tallies.items():
            tallies[path or UNATTRIBUTED].append(tally)
    return {path: _sum(found, counting.loop.steps) for path, found in tallies.items()}


def _sum(tallies: list[Tally], steps: int) -> dict[str, Any]:
    kinds: defaultdict[str, float] = defaultdict(float)
    for tally in tallies:
        for name, number in tally.operations.items():
            kinds[name] += number
    return {
        "kinds": {name: number / steps for name, number in kinds.items()},
        "host_device_copies": sum(tally.copies for tally in tallies) / steps,
        "copied_bytes": sum(tally.copied_bytes for tally in tallies) / steps,
        "synchronisations": sum(tally.synchronisations for tally in tallies) / steps,
    }
