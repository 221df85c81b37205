"""The parts that need a CUDA device: its time beside Kineto's, its memory beside NVML's, neighbours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..document import Document
from ..units import format_amount
from .findings import Finding, LeftOutError, compare_with
from .workbench import WORKLOADS, Workbench, metric_value

STEPS, WARMUP_STEPS = 60, 20
PHASES = ("short", "long")
# Events lie at the borders of phases, Kineto's times at those of kernels.
TIME_TOLERANCE = 0.02
KEPT, BRIEF = 2**30, 2**28
# What the driver keeps of a device beside PyTorch's memory: a context and its kernels.
MOST_CONTEXT = 2**31
START_SECONDS = 60


def check_device_time(bench: Workbench) -> list[Finding]:
    """Each phase's device time from events, beside the time of its kernels that Kineto tells."""
    bench.need_cuda()
    return time_findings(bench.measure("device_work", STEPS, warmup_steps=WARMUP_STEPS))


def check_graph(bench: Workbench) -> list[Finding]:
    """The same of a captured graph, which was captured inside an open phase."""
    bench.need_cuda()
    return time_findings(bench.measure("device_work", STEPS, warmup_steps=WARMUP_STEPS, how="graph"))


def time_findings(measured: Document) -> list[Finding]:
    rows = []
    for phase in PHASES:
        found = metric_value(measured, "phase_device_time", phase)
        kernels = metric_value(measured, f"quality.kineto_{phase}") or 0.0
        rows.append(compare_with(f"device time of {phase}", found, kernels, TIME_TOLERANCE, " s"))
    return rows


def check_streams(bench: Workbench) -> list[Finding]:
    """Two phases in streams of their own run beside each other: each takes its time alone, or longer."""
    bench.need_cuda()
    measured = bench.measure("device_work", STEPS, warmup_steps=WARMUP_STEPS, how="streams")
    step = metric_value(measured, "step_time") or 0.0
    rows = []
    for phase in PHASES:
        found = metric_value(measured, "phase_device_time", phase) or 0.0
        alone = metric_value(measured, f"quality.kineto_{phase}") or 0.0
        between = f"{format_amount(alone, 's')} to {format_amount(step, 's')}"
        right = alone * (1 - TIME_TOLERANCE) <= found <= step * (1 + TIME_TOLERANCE)
        rows.append(Finding(f"device time of {phase}", format_amount(found, "s"), between, right))
    return rows


def check_memory(bench: Workbench) -> list[Finding]:
    """PyTorch's peak beside what was allocated, and NVML's reading beside what PyTorch reserved."""
    bench.need_cuda()
    measured = bench.measure("device_memory", 100, warmup_steps=10)
    reserved = metric_value(measured, "device_memory_reserved") or 0.0
    peaks = [row.peak for row in measured.telemetry if row.channel == "gpu_memory" and row.peak is not None]
    rows = [
        compare_with("device memory", metric_value(measured, "device_memory"), KEPT + BRIEF, 0.01, " bytes"),
        Finding("reserved by PyTorch", format_amount(reserved, "bytes")),
    ]
    if not peaks:
        return [*rows, Finding("NVML's memory", "not read", "a reading", False)]
    beside = max(peaks) - reserved
    wanted = f"0 to {format_amount(MOST_CONTEXT, 'bytes')}"
    right = 0 <= beside <= MOST_CONTEXT
    return [*rows, Finding("NVML tells beside that", format_amount(beside, "bytes"), wanted, right)]


def check_neighbour(bench: Workbench) -> list[Finding]:
    """Another program computes on the device: the run must say so, and be kept out of judgement."""
    bench.need_cuda()
    alone = bench.measure("device_work", STEPS, warmup_steps=WARMUP_STEPS)
    with running_neighbour():
        beside = bench.measure("device_work", STEPS, warmup_steps=WARMUP_STEPS)
    slower = (metric_value(beside, "step_time") or 0.0) / (metric_value(alone, "step_time") or 1.0)
    codes = {warning.code for warning in beside.warnings}
    told = ", ".join(sorted(codes)) or "nothing"
    return [
        Finding("a step beside it", f"{slower:.2f} times as long", "over 1.2", slower > 1.2),
        Finding("the run warns of", told, "co_tenant", "co_tenant" in codes),
        Finding("kept out of judgement", "yes" if beside.tainted else "no", "yes", beside.tainted),
        Finding(
            "alone it warns of", ", ".join(sorted(w.code for w in alone.warnings if w.taints)) or "nothing"
        ),
    ]


@contextmanager
def running_neighbour() -> Iterator[None]:
    command = [sys.executable, str(WORKLOADS / "neighbour.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout  # noqa: S101
        if process.stdout.readline().strip() != "ready":
            raise LeftOutError("the neighbour didn't start")
        yield
    finally:
        process.kill()
        process.communicate()
