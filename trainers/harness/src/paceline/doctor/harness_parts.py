"""The parts that any host can run: what it is, whether counters are exact, what marks cost."""

from __future__ import annotations

import importlib.util
import os
import sys
from statistics import median

from ..document import Document
from ..measured.fingerprint import processor_features
from ..units import format_amount
from ..watching import calibration, nvml
from .findings import Finding, compare_with
from .workbench import Workbench, metric_value, visible_devices

UPLOADS, MEBIBYTE = 3, 2**20
# 64 x 64 numbers of four bytes come back.
DOWNLOADED = 64 * 64 * 4
MARKS = 5
STEPS = {"cpu": 4000, "cuda": 2000}
# A phase may cost so much, on a device with the events of its sampled steps.
MOST_PER_PHASE = {"cpu": 5e-6, "cuda": 20e-6}
CALIBRATIONS = 9
# Two calibrations that differ by more were disturbed.
STEADY = 0.1


def look_at_host(bench: Workbench) -> list[Finding]:
    """Processors, packages and devices, and how steadily the same work takes the same time."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    times = sorted(calibration.measure_calibration() for _ in range(CALIBRATIONS))
    spread = (times[-2] - times[1]) / median(times)
    return [
        Finding("Python", sys.version.split()[0]),
        Finding("processor features", " ".join(processor_features()) or "none that count"),
        Finding("processors", str(usable)),
        Finding(
            "calibration",
            f"spread {spread:.1%}",
            "" if spread <= STEADY else "the same arithmetic doesn't take the same time",
            matters=spread > STEADY,
        ),
        *(
            _package_finding(name, why)
            for name, why in (("torch", "to train"), ("psutil", "where there is no /proc"))
        ),
        *_device_findings(bench),
    ]


def _package_finding(name: str, why: str) -> Finding:
    there = importlib.util.find_spec(name) is not None
    return Finding(name, "installed" if there else "missing", f"installed, {why}", there or name != "torch")


def _device_findings(bench: Workbench) -> list[Finding]:
    devices = visible_devices()
    try:
        if not devices.visible:
            why = "there is none"
            if bench.has_cuda:
                why = "torch computes on one"
                why += (
                    "" if importlib.util.find_spec("pynvml") else ": install nvidia-ml-py, which reads them"
                )
            return [Finding("devices of NVML", f"none, {why}", "as torch sees", not bench.has_cuda)]
        rows = [Finding("driver", str(devices.driver))]
        for device, (index, readings) in zip(devices.visible, devices.read(), strict=True):
            # NVML tells no utilization of a divided device, whose other parts are somebody else's.
            unavailable = {"gpu_utilization"} if device.is_divided else set()
            missing = {name for name, value in readings.items() if value is None} - unavailable
            shown = ", ".join(f"{name} {value:,.0f}" for name, value in readings.items() if value is not None)
            rows.append(Finding(f"device {index}", shown, "all readings", not missing))
        held = sorted({reason for _, reason in devices.throttling()})
        rows.append(
            Finding(
                "clocks held down", ", ".join(held) or "no", "no or by power", held in ([], [nvml.POWER_CAP])
            )
        )
        return rows
    finally:
        devices.close()


def check_counters(bench: Workbench) -> list[Finding]:
    """Copies, waits and reads of a step in which they are known, in two countings that must agree."""
    device = "cuda" if bench.has_cuda else "cpu"
    measured = bench.measure("known_work", 100, warmup_steps=20, countings=2, device=device)
    return counter_findings(measured, on_cuda=bench.has_cuda)


def counter_findings(measured: Document, *, on_cuda: bool) -> list[Finding]:
    """The counts of `known_work` beside what it does: its uploads are copies only to a device."""
    copies = UPLOADS + 1 if on_cuda else 0
    wanted = {
        "host_device_copies": copies,
        "copied_bytes": UPLOADS * MEBIBYTE + DOWNLOADED if on_cuda else 0,
        # The copies, from memory that isn't pinned, and the two numbers that are read.
        "synchronisations": copies + 2 if on_cuda else 0,
        "scalar_reads": 2,
    }
    rows = [
        compare_with(f"{name} a step", metric_value(measured, name), value, 0)
        for name, value in wanted.items()
    ]
    exact = {row.name: row.exact for row in measured.metrics if row.kind == "counter" and row.phase is None}
    inexact = sorted(name for name, same in exact.items() if not same)
    return [*rows, Finding("two countings", ", ".join(inexact) or "agree", "agree", not inexact)]


def check_overhead(bench: Workbench) -> list[Finding]:
    """What the phases of a step cost in the mean, from steps with and without them in turn."""
    device = "cuda" if bench.has_cuda else "cpu"
    measured = bench.measure("many_marks", STEPS[device], warmup_steps=50, device=device)
    bare = metric_value(measured, "quality.without_phases") or 0.0
    added = (metric_value(measured, "quality.with_phases") or 0.0) - bare
    per_phase, most = added / MARKS, MOST_PER_PHASE[device]
    allowed = f"at most {format_amount(most, 's')}"
    return [
        Finding("a step without phases", format_amount(bare, "s")),
        Finding(f"{MARKS} phases add", f"{format_amount(added, 's')}, {added / bare if bare else 0:+.2%}"),
        Finding("a phase", format_amount(per_phase, "s"), allowed, per_phase <= most),
    ]
