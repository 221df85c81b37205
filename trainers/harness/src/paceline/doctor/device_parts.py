"""The parts that need a CUDA device: its time beside Kineto's, its memory beside NVML's, neighbours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..document import Document
from ..units import format_amount
from ..watching import nvml
from .findings import Finding, LeftOutError, compare_with
from .workbench import WORKLOADS, Workbench, metric_value, visible_devices

STEPS, WARMUP_STEPS = 60, 20
PHASES = ("short", "long")
# Events lie at the borders of phases, Kineto's times at those of kernels.
TIME_TOLERANCE = 0.02
KEPT, BRIEF = 2**30, 2**28
# What the driver keeps of a device beside PyTorch's memory: a context and its kernels.
MOST_CONTEXT = 2**31


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
    with running_neighbour() as pid:
        beside = bench.measure("device_work", STEPS, warmup_steps=WARMUP_STEPS)
        is_known = knows_process(pid)
    return neighbour_findings(alone, beside, is_known=is_known)


def neighbour_findings(alone: Document, beside: Document, *, is_known: bool) -> list[Finding]:
    """What a run tells of a neighbour; nothing is wanted of it where NVML has no id of ours for it."""
    slower = (metric_value(beside, "step_time") or 0.0) / (metric_value(alone, "step_time") or 1.0)
    codes = {warning.code for warning in beside.warnings}
    warning_codes = ", ".join(sorted(codes)) or "nothing"
    wanted = "co_tenant" if is_known else "nothing: NVML's process ids aren't those of this container"
    return [
        Finding("a step beside it", f"{slower:.2f} times as long", "over 1.2", slower > 1.2),
        Finding("the run warns of", warning_codes, wanted, "co_tenant" in codes if is_known else None),
        Finding(
            "kept out of judgement",
            "yes" if beside.tainted else "no",
            "yes" if is_known else "",
            beside.tainted if is_known else None,
        ),
        Finding(
            "alone it warns of", ", ".join(sorted(w.code for w in alone.warnings if w.taints)) or "nothing"
        ),
    ]


def knows_process(pid: int) -> bool:
    """Whether NVML tells a process on a device by the id that it has here."""
    devices, seen = visible_devices(), nvml.CoTenants()
    try:
        devices.note_co_tenants(seen, {pid}, 0.0)
    finally:
        devices.close()
    return bool(seen.own_devices)


@contextmanager
def running_neighbour() -> Iterator[int]:
    """Run it for the block, whose value is its process id."""
    command = [sys.executable, str(WORKLOADS / "neighbour.py")]
    # Its first device must be that of what is measured.
    environment = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **os.environ}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
    try:
        assert process.stdout  # noqa: S101
        if process.stdout.readline().strip() != "ready":
            raise LeftOutError("the neighbour didn't start")
        yield process.pid
    finally:
        process.kill()
        process.communicate()
