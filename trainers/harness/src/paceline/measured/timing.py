"""The timed repetition: step times, phases and memory of the measured window.

Whatever the harness does between two steps is outside both: a step ends before it and the next starts
after it. All arrays are made before the window, so that measuring adds nothing to the memory's growth.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

from .. import statistics
from ..document import UNATTRIBUTED
from . import collector, device, memory, processor
from .marks import Marks, Node, StepLoop, ThreadState
from .turns import Turns

SERIES_LIMIT = 20_000
MEMORY_SAMPLES = 64
WARMUP_SAMPLES = 500

_Item = TypeVar("_Item")


class TimedNode(Node):
    """A node that keeps its time in each sampled step of the window."""

    __slots__ = ("base_count", "base_total", "mark", "series")

    def __init__(self, name: str, parent: Node | None, state: ThreadState) -> None:
        super().__init__(name, parent, state)
        self.base_count = 0
        self.base_total = 0.0
        self.mark = 0.0
        self.series = array("d")


class Timing(Marks[TimedNode]):
    """The recorder of a timed repetition."""

    def __init__(
        self, warmup_steps: int, steps: int, report: Callable[[int], None], turns: Turns | None = None
    ) -> None:
        super().__init__(TimedNode)
        self._series_length = min(steps, SERIES_LIMIT)
        self.device = device.Events()
        self.loop = _TimedLoop(self, warmup_steps, steps, report, turns)

    def steps(self, iterable: Iterable[_Item]) -> Iterable[_Item]:
        """Iterate until the window is complete."""
        return self.loop.iterate(iterable)

    def use_device(self) -> None:
        """Time the main thread's phases on the device too, if the code uses one by now."""
        if self.device.start(self.loop.steps):
            for node in self.nodes(self.main):
                if node not in self.main.open_nodes():
                    self._bind(node)

    def prepare(self, node: TimedNode) -> None:
        """Give a node of the main thread room for its series; only that thread is cut at step borders."""
        if node.state is self.main:
            if not node.series:
                node.series = array("d", bytes(8 * self._series_length))
            if self.device.every:
                device.watch(node, self.device)

    def _lap_mark(self) -> Callable[[str], None]:
        # A lap is only noted, and billed when its phase or its step ends. Atomic, and the note of no one in
        # the threads that don't take the steps: looking that up costs a third of asking for the thread.
        # A deque keeps its memory when it is cleared.
        self.laps: deque[tuple[str, float]] = deque()
        self._note: ContextVar[Callable[[Any], object]] = ContextVar("paceline.laps", default=len)
        noted = self._note.get

        def lap(name: str) -> None:
            noted()((name, perf_counter()))

        return lap

    def take_laps(self, taken: bool) -> None:
        """Take this thread's lap marks from now on, or no longer."""
        self._note.set(self.laps.append if taken else len)

    def flush(self) -> None:
        """Bill the laps that were noted since the last border of a phase or step."""
        state, laps = self.main, self.laps
        if not laps:
            return
        # Phases that took no account of laps yet may lie between the first ones: they stay unattributed.
        billed = state.laps or not state.nodes
        if not state.laps:
            self.allow_laps(state)
        if billed:
            for name, ended in laps:
                self.bill_lap(state.node, name, ended)
        laps.clear()

    def result(self) -> dict[str, Any]:
        """Return the repetition as plain data; call it once the window is complete."""
        loop = self.loop
        return {
            "steps": loop.steps,
            "seconds": loop.seconds,
            "first_step": loop.first_step,
            "warmup_seconds": loop.warmup_seconds,
            "step_times": _step_times(loop.times),
            "step_time": {"mean": loop.seconds / loop.steps, **statistics.quantiles(loop.times)},
            "warmup_times": loop.warmup_times(),
            "window": {"start": loop.opened, "end": loop.closed},
            "memory": loop.memory_points,
            "peak_memory": loop.peak_memory,
            "device_memory": loop.device_memory,
            "phases": _phases(self, loop),
            "dropped_phases": self.dropped_phases,
            "waited": loop.waited / (loop.closed - loop.opened - loop.paused),
            "counts": {name: value / loop.steps for name, value in loop.window_counts.items()},
            "gauges": loop.window_gauges,
            "quality": dict(self.qualities),
        }


class _TimedLoop(StepLoop):
    def __init__(
        self,
        marks: Timing,
        warmup_steps: int,
        steps: int,
        report: Callable[[int], None],
        turns: Turns | None,
    ) -> None:
        super().__init__(marks)
        self._timing = marks
        self._turns = turns
        self._report = report
        self.warmup_steps = warmup_steps
        self.steps = steps
        self.times = array("d", bytes(8 * steps))
        self.seconds = 0.0
        self.first_step = self.warmup_seconds = self.opened = self.closed = 0.0
        self.done = 0
        self.memory_points: list[tuple[int, int]] = []
        self.peak_memory: int | None = None
        self.device_memory: dict[str, int] | None = None
        self.window_counts: dict[str, float] = {}
        self.window_gauges: dict[str, float] = {}
        self.totals: dict[int, tuple[float, int]] = {}
        self._stride = math.ceil(steps / SERIES_LIMIT)
        self._report_every = max(1, steps // MEMORY_SAMPLES)
        self._warmup_every = max(1, math.ceil(warmup_steps / WARMUP_SAMPLES))
        self._warmup_sums = array("d", bytes(8 * (warmup_steps // self._warmup_every + 1)))
        self.waited = self._waited_before = 0.0
        self.paused = self._paused_before = 0.0
        self._resident = memory.ResidentMemory()
        self._laps = marks.laps
        self._main = marks.main
        self._root = marks.main.root
        self._nodes = marks.nodes(marks.main)
        self._due = 0
        self._start = 0.0
        self._end: Callable[[float], bool] = self._end_warmup_step

    def begin(self) -> None:
        self._main, self._root = self._timing.main, self._timing.main.root
        self._nodes = self._timing.nodes(self._main)
        now = perf_counter()
        self._cut(now, now)
        if not self.first_step:
            self.first_step = now
            if self._turns is not None:
                self._turns.begin()
            self._timing.use_device()
            for node in self._timing.nodes(self._main):
                self._timing.prepare(node)
            if self.warmup_steps == 0:
                self._open()
        self._timing.take_laps(not self.complete)
        self._start = self._root.lapped = perf_counter()
        self._cut(now, self._start)

    def end_step(self) -> bool:
        now = perf_counter()
        if self._laps:
            self._timing.flush()
        is_open = self._main.node is not self._root
        if is_open:
            self._cut(now, now)
        complete = self._end(now)
        if self._turns is not None:
            self._turns.end_step(complete)
        self._start = self._root.lapped = perf_counter()
        if is_open:
            self._cut(now, self._start)
        return complete

    def end(self) -> None:
        self._timing.take_laps(False)

    def _cut(self, ended: float, begins: float) -> None:
        """Bill the open phases to the step that ended, and let them go on in the next one."""
        for node in self._main.open_nodes():
            node.cut(ended, begins)

    @property
    def taken(self) -> int:
        """Steps so far, the warm-up's included."""
        return self.done if self._end == self._end_warmup_step else self.warmup_steps + self.done

    def warmup_times(self) -> dict[str, Any] | None:
        """Return the warm-up's step times, thinned; None where there was none."""
        kept = self.warmup_steps // self._warmup_every
        values = [total / self._warmup_every for total in self._warmup_sums[:kept]]
        return {"every": self._warmup_every, "values": values} if values else None

    def _end_warmup_step(self, now: float) -> bool:
        took = now - self._start
        self._warmup_sums[self.done // self._warmup_every] += took
        self.warmup_seconds += took
        self.done += 1
        if self.done % self._report_every == 0:
            self._report(self.done)
        if self.done == self.warmup_steps:
            self._open()
        return False

    def _open(self) -> None:
        self._end = self._end_window_step
        self.done = 0
        self._timing.use_device()
        for state in list(self._timing.states):
            for node in self._timing.nodes(state):
                node.base_total = node.mark = node.total
                node.base_count = node.count
        with self._timing._lock:
            self.window_counts = dict(self._timing.counts)
            self.window_gauges = _means(self._timing.gauges)
            self._timing.gauges.clear()
        self._timing.device.prepare(len(self._main.nodes))
        collector.prepare()
        device.synchronize()
        self._timing.device.next_step(0)
        self._waited_before, self._paused_before = self._waited(), self._paused()
        self.opened = perf_counter()

    def _end_window_step(self, now: float) -> bool:
        done = self.done
        self.times[done] = now - self._start
        if self._stride == 1 or done % self._stride == 0:
            at = done // self._stride
            for node in self._nodes:
                total = node.total
                node.series[at] = total - node.mark
                node.mark = total
        elif (done + 1) % self._stride == 0:
            for node in self._nodes:
                node.mark = node.total
        self.done = done = done + 1
        return done >= self._due and self._attend(done, now)

    def _attend(self, done: int, now: float) -> bool:
        """Do what isn't done after every step, and tell when to come again."""
        events = self._timing.device
        events.next_step(done)
        if done % self._report_every == 0:
            self._report(self.warmup_steps + done)
            if self._resident.available:
                self.memory_points.append((done, self._resident.read()))
        if done == self.steps:
            self._close(now)
        next_report = done - done % self._report_every + self._report_every
        self._due = done + 1 if events.every else min(next_report, self.steps)
        return self.complete

    def _close(self, last_step_ended: float) -> None:
        device.synchronize()
        # What the device still had to do when the last step returned is part of the window.
        waited = perf_counter() - last_step_ended if device.used() else 0.0
        self.closed = perf_counter()
        self.waited = self._waited() - self._waited_before
        self.paused = self._paused() - self._paused_before
        self.seconds = math.fsum(self.times) + waited
        self.complete = True
        self._timing.take_laps(False)
        self._timing.device.resolve()
        self.peak_memory = memory.peak()
        self.device_memory = device.memory()
        with self._timing._lock:
            before = self.window_counts
            self.window_counts = {name: n - before.get(name, 0) for name, n in self._timing.counts.items()}
            # A gauge that nobody set during the window keeps what it showed before.
            self.window_gauges |= _means(self._timing.gauges)
        # Totals are frozen here: what follows the loop (an evaluation) has phases too.
        self.totals = {
            id(node): (node.total - node.base_total, node.count - node.base_count)
            for state in list(self._timing.states)
            for node in self._timing.nodes(state)
        }

    def _waited(self) -> float:
        return processor.waited() - (self._turns.waited if self._turns is not None else 0.0)

    def _paused(self) -> float:
        return self._turns.paused if self._turns is not None else 0.0


def _means(gauges: dict[str, tuple[float, int]]) -> dict[str, float]:
    return {name: total / readings for name, (total, readings) in gauges.items()}


def _step_times(times: array[float]) -> dict[str, Any]:
    return {"histogram": statistics.histogram(times), "thinned": statistics.thinned(times)}


def _phases(timing: Timing, loop: _TimedLoop) -> list[dict[str, Any]]:
    """Return one row per path and thread name; threads of one name, as in a pool, are summed."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for state in list(timing.states):
        for node in timing.nodes(state):
            # One that was open all along was left in no step, and took its time all the same.
            if any(loop.totals.get(id(node), (0.0, 0))):
                row = _phase(node, timing, loop)
                rows[node.path, state.name] = _merged(rows.get((node.path, state.name)), row)
    return [*rows.values(), _unattributed(timing, loop)]


def _merged(before: dict[str, Any] | None, row: dict[str, Any]) -> dict[str, Any]:
    if before is None:
        return row
    larger = max(before, row, key=lambda found: float(found["total"]))
    return {**larger, **{name: before[name] + row[name] for name in ("count", "total", "self")}}


def _phase(node: TimedNode, timing: Timing, loop: _TimedLoop) -> dict[str, Any]:
    total, count = loop.totals[id(node)]
    nested = math.fsum(loop.totals.get(id(child), (0.0, 0))[0] for child in node.children.values())
    quantiles = statistics.quantiles(node.series) if node.series else {"p50": None, "p90": None, "p99": None}
    return {
        "path": node.path,
        "thread": node.state.name,
        "count": count / loop.steps,
        "total": total / loop.steps,
        "self": max(0.0, total - nested) / loop.steps,
        **quantiles,
        "device_total": timing.device.seconds_per_step(node.path) if node.series else None,
    }


def _unattributed(timing: Timing, loop: _TimedLoop) -> dict[str, Any]:
    outermost = [node for node in timing.nodes(timing.main) if node.parent is timing.main.root]
    sampled = loop.times[:: loop._stride]
    rest = [
        max(0.0, took - math.fsum(node.series[at] for node in outermost)) for at, took in enumerate(sampled)
    ]
    covered = math.fsum(loop.totals.get(id(node), (0.0, 0))[0] for node in outermost)
    uncovered = max(0.0, loop.seconds - covered) / loop.steps
    return {
        "path": UNATTRIBUTED,
        "thread": "main",
        "count": 1.0,
        "total": uncovered,
        "self": uncovered,
        **statistics.quantiles(rest),
        "device_total": None,
    }
