"""Records a timed repetition: step times, phases and memory of the measured window.

Whatever the harness does between two steps is outside both: a step ends before it and the next starts
after it. All arrays are made before the window, so that measuring adds nothing to the memory's growth.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from itertools import chain
from operator import sub
from time import perf_counter
from typing import Any, TypeVar

from .. import statistics
from . import cuda_device, garbage_collection, processor, resident_memory
from .collective_log import log as collective_log
from .helper_records import HelperTotals, helper_rows
from .loader_log import log as loader_log
from .mark_recorder import MarkRecorder
from .other_work import OtherWork
from .phase_rows import TimedPhaseNode, TimedWindow, own_step_times, phase_rows
from .step_loop import StepLoop
from .turns import Turns

SERIES_LIMIT = 20_000
MEMORY_SAMPLES = 64
WARMUP_SAMPLES = 500
# Steps whose times are put into the arrays at once.
PENDING_STEPS = 64

_Item = TypeVar("_Item")
Children = dict[int, HelperTotals]


class TimingRecorder(MarkRecorder[TimedPhaseNode]):
    """The recorder of a timed repetition."""

    def __init__(
        self,
        warmup_steps: int,
        steps: int,
        report: Callable[[int], None],
        turns: Turns | None = None,
        node_class: type[TimedPhaseNode] = TimedPhaseNode,
        read_children: Callable[[], Children] = dict,
        harness: int = 0,
    ) -> None:
        super().__init__(node_class)
        self.other_work = OtherWork(harness)
        self.read_children = read_children
        self._series_length = min(steps, SERIES_LIMIT)
        self.device = cuda_device.PhaseEvents()
        self.loop = _TimedStepLoop(self, warmup_steps, steps, report, turns)

    def steps(self, iterable: Iterable[_Item]) -> Iterable[_Item]:
        """Iterate until the window is complete."""
        return self.loop.iterate(iterable)

    def time_device(self) -> None:
        """Time the main thread's phases on the device too, if the code uses one by now."""
        if self.device.start(self.loop.steps):
            for node in self.nodes(self.main):
                if node not in self.main.open_nodes():
                    self._bind_node(node)

    def prepare_node(self, node: TimedPhaseNode) -> None:
        """Give a node of the main thread room for its series; only its phases are split at step borders."""
        if node.state is self.main:
            if not node.series:
                node.series = array("d", bytes(8 * self._series_length))
                self.loop.begin_rows()
            if self.device.every:
                cuda_device.record_phase_events(node, self.device)

    def _make_lap_mark(self) -> Callable[[str], None]:
        # A lap is only noted, and billed when its phase or its step ends. Appending is atomic. Threads that
        # take no steps have a sink that keeps nothing: looking it up costs a third of asking for the thread.
        # A deque keeps its memory when it is cleared.
        self.laps: deque[tuple[str, float]] = deque()
        self._lap_sink: ContextVar[Callable[[Any], object]] = ContextVar("paceline.laps", default=len)
        sink = self._lap_sink.get

        def lap(name: str) -> None:
            sink()((name, perf_counter()))

        return lap

    def accept_laps(self, accepted: bool) -> None:
        """Accept this thread's lap marks from now on, or no longer."""
        self._lap_sink.set(self.laps.append if accepted else len)

    def flush(self) -> None:
        """Bill the laps that were noted since the last border of a phase or step."""
        state, laps = self.main, self.laps
        if not laps:
            return
        # Phases without borders for laps may lie between the first laps: these stay unattributed.
        billed = state.laps or not state.nodes
        if not state.laps:
            self.enable_laps(state)
        if billed:
            for name, ended in laps:
                self.bill_lap(state.node, name, ended)
        laps.clear()

    def all_nodes(self) -> list[TimedPhaseNode]:
        """Return the nodes of all threads."""
        return [node for state in list(self.states) for node in self.nodes(state)]

    def result(self) -> dict[str, Any]:
        """Return the repetition as plain data; call it once the window is complete."""
        loop = self.loop
        return {
            "steps": loop.steps,
            "seconds": loop.seconds,
            "first_step": loop.first_step,
            "warmup_seconds": loop.warmup_seconds,
            "step_times": _step_times(loop.times),
            "step_time": {"mean": loop.seconds / loop.steps, **statistics.quantile_summary(loop.times)},
            "warmup_times": loop.warmup_times(),
            "window": {"start": loop.opened, "end": loop.closed},
            "memory": loop.memory_points,
            "peak_memory": loop.peak_memory,
            "device_memory": loop.device_memory,
            "devices": loop.devices,
            "device_ids": cuda_device.device_identities(loop.devices),
            "phases": phase_rows(self.all_nodes(), loop.timed_window()),
            "phase_times": self.own_step_times() if loop.takes_turns else None,
            "dropped_phases": self.dropped_phases,
            "waited": loop.waited / (loop.closed - loop.opened - loop.paused),
            "stolen": self.other_work.stolen,
            "counts": {name: value / loop.steps for name, value in loop.window_counts.items()},
            "gauges": loop.window_gauges,
            "unusable": loop.unusable,
            "several_threads": loop.thread_changes > 0,
            "quality": dict(self.qualities),
            "collectives": collective_log.result(loop.steps),
            "loaders": loader_log.result(loop.children_before, loop.children_after, loop.steps, loop.seconds),
            "helpers": helper_rows(loop.children_before, loop.children_after, loop.steps),
            "device": cuda_device.device_name(),
        }

    def own_step_times(self) -> dict[str, Any]:
        """Return the phases' own times in single steps, which the other side's are compared with."""
        return own_step_times(self.nodes(self.main), self.main.root, self.loop.timed_window())


class _TimedStepLoop(StepLoop):
    def __init__(
        self,
        timing: TimingRecorder,
        warmup_steps: int,
        steps: int,
        report: Callable[[int], None],
        turns: Turns | None,
    ) -> None:
        super().__init__(timing)
        self._timing = timing
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
        self.devices: list[int] = []
        self.window_counts: dict[str, float] = {}
        self.window_gauges: dict[str, float] = {}
        self.unusable: dict[str, dict[str, int]] = {}
        self.totals: dict[int, tuple[float, int]] = {}
        self.children_before: Children = {}
        self.children_after: Children = {}
        self._stride = math.ceil(steps / SERIES_LIMIT)
        # Rows of steps that are in no array yet: a step's time, and the totals of these nodes at its end.
        self._pending: list[float] = []
        self._pending_nodes: list[TimedPhaseNode] = []
        self._report_every = max(1, steps // MEMORY_SAMPLES)
        self._warmup_every = max(1, math.ceil(warmup_steps / WARMUP_SAMPLES))
        self._warmup_sums = array("d", bytes(8 * (warmup_steps // self._warmup_every + 1)))
        self.waited = self._waited_before = 0.0
        self.paused = self._paused_before = 0.0
        self._resident = resident_memory.ResidentMemory()
        self._laps = timing.laps
        self._main = timing.main
        self._root = timing.main.root
        self._nodes = timing.nodes(timing.main)
        self._entered_before = 0
        self._is_open = False

    def begin(self) -> None:
        self._main, self._root = self._timing.main, self._timing.main.root
        self._nodes = self._timing.nodes(self._main)
        self.begin_rows()
        now = perf_counter()
        self._split_open_phases(now, now)
        if not self.first_step:
            self.first_step = now
            if self._turns is not None:
                self._turns.begin()
            self._entered_before = sum(node.count for node in self._nodes)
            self._timing.time_device()
            for node in self._timing.nodes(self._main):
                self._timing.prepare_node(node)
            if self.warmup_steps == 0:
                self._open()
        self._timing.accept_laps(not self.complete)
        self.end_step = self._make_step_end()  # type: ignore[method-assign]
        self._root.start = self._root.lap_start = perf_counter()
        self._split_open_phases(now, self._root.start)

    def _make_step_end(self) -> Callable[[], bool]:
        """Return the function that ends a step; the root's `start` is that of the step.

        What it needs lies in cells: a step later all of it has left the processor's caches, and to find it
        through `self` takes twice as long.
        """
        main, root, laps, turns, is_in_window = self._main, self._root, self._laps, self._turns, self._is_open
        append, nodes, has_rows = self._pending.append, self._pending_nodes, self._stride == 1
        work_at = 0

        def end_step() -> bool:
            nonlocal work_at
            now, complete = perf_counter(), False
            if laps:
                self._timing.flush()
            is_split = main.node is not root
            if is_split:
                self._split_open_phases(now, now)
            if not is_in_window:
                self._end_warmup_step(now)
            else:
                append(now - root.start)
                if has_rows:
                    for node in nodes:
                        append(node.total)
                else:
                    self._sample_totals()
                self.done = done = self.done + 1
                if done >= work_at:
                    work_at = self._do_periodic_work(done, now)
                    complete = self.complete
            if turns is not None:
                turns.end_step(complete)
            root.start = root.lap_start = perf_counter()
            if is_split:
                self._split_open_phases(now, root.start)
            return complete

        return end_step

    def end(self) -> None:
        self._timing.accept_laps(False)

    def _split_open_phases(self, ended: float, begins: float) -> None:
        """Bill the open phases to the step that ended, and let them go on in the next one."""
        for node in self._main.open_nodes():
            node.split(ended, begins)

    @property
    def taken(self) -> int:
        """Steps so far, the warm-up's included."""
        return self.warmup_steps + self.done if self._is_open else self.done

    @property
    def takes_turns(self) -> bool:
        """Whether the steps alternate with those of another process."""
        return self._turns is not None

    def warmup_times(self) -> dict[str, Any] | None:
        """Return the warm-up's step times, thinned; None where there was none."""
        kept = self.warmup_steps // self._warmup_every
        values = [total / self._warmup_every for total in self._warmup_sums[:kept]]
        return {"every": self._warmup_every, "values": values} if values else None

    def timed_window(self) -> TimedWindow:
        """Return the complete window's times."""
        sampled = self.times[:: self._stride]
        return TimedWindow(self.steps, self.seconds, sampled, self.totals, self._timing.device)

    def _end_warmup_step(self, now: float) -> None:
        took = now - self._root.start
        self._warmup_sums[self.done // self._warmup_every] += took
        self.warmup_seconds += took
        self.done += 1
        if self.done % self._report_every == 0:
            self._report(self.done)
        if self.done == self.warmup_steps - 1:
            self._prepare_window()
        if self.done == self.warmup_steps:
            self._open()

    def _prepare_window(self) -> None:
        """Do what takes long before the warm-up's last step, where there is one.

        Ranks take unlike times for it: those that are ready wait in a collective for the others, and that
        step belongs to no window then.
        """
        garbage_collection.prepare_garbage_collector()
        self._timing.other_work.begin()

    def _open(self) -> None:
        if self.warmup_steps < 2:
            self._prepare_window()
        self._is_open = True
        self.end_step = self._make_step_end()  # type: ignore[method-assign]
        self.done = 0
        self._timing.time_device()
        for node in self._timing.all_nodes():
            node.base_total = node.sampled_total = node.total
            node.base_count = node.count
        with self._timing._lock:
            self.window_counts = dict(self._timing.counts)
            self.window_gauges = _gauge_means(self._timing.gauges)
            self._timing.gauges.clear()
            self._timing.unusable.clear()
        self._timing.device.create_events(len(self._main.nodes), self._phases_per_second())
        self.devices = cuda_device.used_devices()
        cuda_device.synchronize_device(self.devices)
        self._timing.device.next_step(0)
        collective_log.open_window()
        loader_log.open_window()
        self.children_before = self._timing.read_children()
        self.thread_changes = 0
        # Last: what the thread waits for until here is no part of the window.
        self._waited_before, self._paused_before = self._processor_wait(), self._turn_pause()
        self.opened = perf_counter()

    def _phases_per_second(self) -> float | None:
        """Return how many phases the warm-up's steps entered in a second, None without a warm-up.

        Without its first tenth, in which steps load what the others use.
        """
        warmup = self.warmup_times()
        if warmup is None:
            return None
        later = warmup["values"][len(warmup["values"]) // 10 :]
        seconds = math.fsum(later) / len(later)
        entered = sum(node.count for node in self._nodes) - self._entered_before
        return entered / self.warmup_steps / seconds if seconds > 0 else None

    def _sample_totals(self) -> None:
        """Keep what the phases took in one of many steps."""
        if self.done % self._stride == 0:
            sample = self.done // self._stride
            for node in self._nodes:
                total = node.total
                node.series[sample] = total - node.sampled_total
                node.sampled_total = total
        elif (self.done + 1) % self._stride == 0:
            for node in self._nodes:
                node.sampled_total = node.total

    def begin_rows(self) -> None:
        """Put the pending steps into the arrays; the rows that follow are of the nodes that are there now.

        After a step, appending to a list costs half as much as setting items of arrays.
        """
        nodes, pending = self._pending_nodes, self._pending
        width = 1 + len(nodes)
        steps = len(pending) // width
        if steps:
            taken = slice(self.done - steps, self.done)
            self.times[taken] = array("d", pending[::width])
            for place, node in enumerate(nodes, 1):
                totals = pending[place::width]
                node.series[taken] = array("d", map(sub, totals, chain((node.sampled_total,), totals)))
                node.sampled_total = totals[-1]
            pending.clear()
        nodes[:] = self._nodes if self._stride == 1 else []

    def _do_periodic_work(self, done: int, now: float) -> int:
        """Do what isn't done after every step, and return the step for the next time."""
        events = self._timing.device
        events.next_step(done)
        if done % PENDING_STEPS == 0 or done == self.steps:
            self.begin_rows()
        if done % self._report_every == 0 or done == self.steps:
            self._report(self.warmup_steps + done)
        if done % self._report_every == 0 and (resident := self._resident.read()):
            self.memory_points.append((done, resident))
        if done == self.steps:
            self._close(now)
        next_report = done - done % self._report_every + self._report_every
        next_rows = done - done % PENDING_STEPS + PENDING_STEPS
        return done + 1 if events.every else min(next_report, next_rows, self.steps)

    def _close(self, last_step_ended: float) -> None:
        # Found when it was opened: to look for them takes longer than to wait for one that is idle.
        cuda_device.synchronize_device(self.devices)
        # What the device still had to do when the last step returned is part of the window.
        waited = perf_counter() - last_step_ended if cuda_device.is_device_used() else 0.0
        self.closed = perf_counter()
        # Of several threads none has waited for all of the steps, and the kernel counts each apart.
        waiting = 0.0 if self.thread_changes else self._processor_wait() - self._waited_before
        self._timing.other_work.end()
        self.waited = self._timing.other_work.bound_waiting(waiting)
        self.paused = self._turn_pause() - self._paused_before
        self.seconds = math.fsum(self.times) + waited
        self.complete = True
        collective_log.close_window()
        loader_log.close_window()
        self.children_after = self._timing.read_children()
        self._timing.accept_laps(False)
        self._timing.device.read_pairs()
        self.peak_memory = resident_memory.peak_resident_bytes()
        self.device_memory = cuda_device.peak_device_memory()
        self.devices = cuda_device.used_devices()
        with self._timing._lock:
            before = self.window_counts
            self.window_counts = {name: n - before.get(name, 0) for name, n in self._timing.counts.items()}
            # A gauge that nobody set during the window keeps what it showed before.
            self.window_gauges |= _gauge_means(self._timing.gauges)
            self._leave_out_unusable()
        # Totals are frozen here: what follows the loop (an evaluation) has phases too.
        self.totals = {
            id(node): (node.total - node.base_total, node.count - node.base_count)
            for node in self._timing.all_nodes()
        }

    def _leave_out_unusable(self) -> None:
        """Keep no count that lacks what was added, and no gauge that only showed what is no number."""
        for (kind, name), readings in self._timing.unusable.items():
            self.unusable.setdefault(kind, {})[name] = readings
            if kind == "counts":
                self.window_counts.pop(name, None)
            elif not self._timing.gauges[name][1]:
                self.window_gauges.pop(name, None)

    def _processor_wait(self) -> float:
        return processor.processor_wait_seconds() - (self._turns.waited if self._turns is not None else 0.0)

    def _turn_pause(self) -> float:
        return self._turns.paused if self._turns is not None else 0.0


def _gauge_means(gauges: dict[str, tuple[float, int]]) -> dict[str, float]:
    return {name: total / readings for name, (total, readings) in gauges.items() if readings}


def _step_times(times: array[float]) -> dict[str, Any]:
    return {"histogram": statistics.histogram(times), "thinned": statistics.thin_values(times)}
