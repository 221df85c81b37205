"""The parts that look at where time and energy go: planted idle time, known products, energy, fragments."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import defaultdict
from pathlib import Path

from ..document import Document
from ..document_rows import DeviceProfile
from ..timeline.idle_gaps import DATA, HOST, SYNCHRONISATION
from ..timeline.trace_events import PHASE_PREFIX
from ..units import format_amount
from .findings import Finding, LeftOutError, compare_with
from .workbench import Workbench, metric_value

# What `planted_time` does in a step, in seconds.
PRODUCTS, DATA_SECONDS, THINK_SECONDS = 4, 0.003, 0.002
LEAST_EXPLAINED = 0.9
# One look has a few dozen steps: other work on the host can lengthen most of them.
MOST_LOOKS = 3
SUM_TOLERANCE = 0.01
# What `fragmented_memory` leaves between the blocks that it keeps.
FRAGMENTS = 32 * 3 * 2**19
MOST_FRAGMENTS = 2 * FRAGMENTS
ENERGY_STEPS = 600
ENERGY_TOLERANCE = 0.1
PRODUCT_SIZE = {"cpu": 256, "cuda": 8192}
LEAST_UTILIZATION = 5.0


def check_timeline(bench: Workbench) -> list[Finding]:
    """Kernels, idle time by its cause, and the trace, of a step in which all of it was planted.

    A look that shows something else is followed by another, for other work may have shown in it.
    """
    for _ in range(MOST_LOOKS):
        findings = look_at_planted_time(bench)
        if not any(finding.right is False for finding in findings):
            break
    return findings


def look_at_planted_time(bench: Workbench) -> list[Finding]:
    """What one measurement of the planted step shows."""
    device = "cuda" if bench.has_cuda else "cpu"
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        path = Path(folder, "trace.json.gz")
        measured = bench.measure("planted_time", 100, warmup_steps=20, countings=1, trace=path, device=device)
        if measured.device_profile is None:
            why = [row.message for row in measured.warnings if row.code.startswith("device_prof")]
            return [Finding("profile", "; ".join(why) or "none", "one of the device", False)]
        return [*timeline_findings(measured.device_profile), *trace_findings(path, on_device=bench.has_cuda)]


def timeline_findings(profile: DeviceProfile) -> list[Finding]:
    """What the profile says beside what was planted."""
    on_device = profile.device == "cuda"
    idle: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in profile.idle:
        idle[row.cause, row.phase] += row.seconds
    # A read of a value comes before the thinking: on a device that wait is the cause.
    behind = SYNCHRONISATION if on_device else HOST
    kernels = [row for row in profile.rows if row.phase == "products" and row.kind in ("kernel", "operation")]
    products = [row for row in kernels if "mm" in (row.operation or row.name)]
    whole = profile.busy_seconds + sum(row.seconds for row in profile.idle)
    findings = [
        compare_with("products a step", sum(row.count for row in products), PRODUCTS, 0),
        planted_seconds("waiting for data", idle[DATA, "data_loading"], DATA_SECONDS, profile),
        planted_seconds("Python behind a read", idle[behind, "think"], THINK_SECONDS, profile),
        compare_with("the rows' sum", whole, profile.step_seconds, SUM_TOLERANCE, " s"),
        Finding(
            "explained",
            f"{profile.explained:.1%}",
            f"at least {LEAST_EXPLAINED:.0%}",
            profile.explained >= LEAST_EXPLAINED,
        ),
    ]
    if on_device:
        late = idle[HOST, "small"]
        findings.append(
            Finding("small kernels wait for the host", format_amount(late, "s"), "some", late > 0)
        )
    heaviest = ", ".join(f"{row.name} {format_amount(row.seconds, 's')}" for row in profile.rows[:3])
    return [*findings, Finding("heaviest", heaviest)]


def planted_seconds(what: str, found: float, planted: float, profile: DeviceProfile) -> Finding:
    """A time that can't be shorter than what was planted, nor hold what was planted elsewhere.

    How much longer a sleep takes than it was asked is the host's affair.
    """
    least, most = 0.9 * planted, profile.step_seconds - (DATA_SECONDS + THINK_SECONDS - planted)
    wanted = f"{format_amount(least, 's')} to {format_amount(most, 's')}"
    return Finding(what, format_amount(found, "s"), wanted, least <= found <= most)


def trace_findings(path: Path, *, on_device: bool) -> list[Finding]:
    """What the exported trace holds: our phases, and on a device its kernels."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    phases = sum(str(event.get("name", "")).startswith(PHASE_PREFIX) for event in events)
    kernels = sum(event.get("cat") == "kernel" for event in events)
    rows = [Finding("trace", f"{len(events)} events, {phases} of phases", "phases", phases > 0)]
    return [*rows, Finding("kernels in the trace", str(kernels), "some", kernels > 0)] if on_device else rows


def check_flops(bench: Workbench) -> list[Finding]:
    """The operations of known products, counted exactly, and on a device the share of its peak."""
    device = "cuda" if bench.has_cuda else "cpu"
    size, number_type = PRODUCT_SIZE[device], "bfloat16" if bench.has_cuda else "float32"
    measured = bench.measure(
        "known_product", 100, warmup_steps=20, countings=2, device=device, size=size, type=number_type
    )
    flops = metric_value(measured, "model_flops")
    rows = [compare_with("FLOPs a step", flops, float(PRODUCTS * 2 * size**3), 0)]
    return [*rows, *utilization_findings(measured)]


def utilization_findings(measured: Document) -> list[Finding]:
    """How much of the device's peak known products reach: large ones reach much, none more than all."""
    if measured.device_use is None:
        return [Finding("model FLOPs utilization", "left out, there is no CUDA device")]
    share = metric_value(measured, "model_flops_utilization")
    flops = measured.device_use["flops"]
    if share is None:
        # A device that the table lacks says so; a count beyond its peak is wrong.
        right = False if flops["status"] == "impossible" else None
        return [Finding("model FLOPs utilization", f"{flops['status']}, {flops['device']}", "", right)]
    wanted = f"{LEAST_UTILIZATION:.0f} to 100 %"
    return [Finding("model FLOPs utilization", f"{share:.1f} %", wanted, LEAST_UTILIZATION <= share <= 100)]


def check_energy(bench: Workbench) -> list[Finding]:
    """The device's counter of energy beside its sampled power, over seconds of products."""
    bench.need_cuda()
    return energy_findings(bench.measure("device_work", ENERGY_STEPS, warmup_steps=20))


def energy_findings(measured: Document) -> list[Finding]:
    energy = (measured.device_use or {}).get("energy", {})
    if energy.get("step") is None:
        raise LeftOutError("the device counts no energy, or its counter can't be read")
    step = metric_value(measured, "step_time") or 0.0
    rows = [Finding("energy a step", format_amount(energy["step"], "J"))]
    if step:
        rows.append(Finding("power", format_amount(energy["step"] / step, "W")))
    if energy["sampled"] is None:
        return [*rows, Finding("sampled power", "the window is too short to compare")]
    return [
        *rows,
        compare_with("beside sampled power", energy["step"], energy["sampled"], ENERGY_TOLERANCE, " J"),
    ]


def check_fragments(bench: Workbench) -> list[Finding]:
    """Memory of which every second block was given back: the allocator holds what lies between."""
    bench.need_cuda()
    return fragment_findings(bench.measure("fragmented_memory", 50, warmup_steps=10))


def fragment_findings(measured: Document) -> list[Finding]:
    split = metric_value(measured, "device_memory_split")
    unused = metric_value(measured, "device_memory_unused") or 0.0
    if split is None:
        raise LeftOutError("this allocator tells nothing of its fragments")
    wanted = f"{format_amount(FRAGMENTS, 'bytes')} to {format_amount(MOST_FRAGMENTS, 'bytes')}"
    right = FRAGMENTS <= split <= MOST_FRAGMENTS
    return [
        Finding("fragments", format_amount(split, "bytes"), wanted, right),
        Finding("reserved and unused at the peak", format_amount(unused, "bytes")),
    ]
