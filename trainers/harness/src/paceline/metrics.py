"""The metric table: every name a document may carry, with its unit and its better direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher"]
Kind = Literal["time", "rate", "memory", "utilization", "counter", "quality"]


@dataclass(frozen=True, slots=True)
class Metric:
    """The meaning of a name. `per_phase` says whether values with a phase path exist beside the whole."""

    name: str
    unit: str
    better: Better
    kind: Kind
    description: str
    per_phase: bool = False


_TABLE = (
    Metric(
        "throughput", "steps/s", "higher", "rate", "Steps of the measured window per second of step time."
    ),
    Metric(
        "step_time", "s", "lower", "time", "Mean time of one step of the measured window; phases sum to it."
    ),
    Metric("step_time_p99", "s", "lower", "time", "Time that 99 % of the steps stay below."),
    Metric(
        "phase_time",
        "s",
        "lower",
        "time",
        "Mean time per step inside the phase, the phases nested in it included.",
        per_phase=True,
    ),
    Metric(
        "phase_self_time",
        "s",
        "lower",
        "time",
        "Mean time per step inside the phase, the phases nested in it excluded.",
        per_phase=True,
    ),
    Metric(
        "phase_device_time",
        "s",
        "lower",
        "time",
        "Mean time per step that the CUDA device spent between the phase's two ends.",
        per_phase=True,
    ),
    Metric(
        "peak_memory",
        "bytes",
        "lower",
        "memory",
        "Largest resident memory of the measured process and its children, until the window's end.",
    ),
    Metric(
        "peak_memory_pss",
        "bytes",
        "lower",
        "memory",
        "Largest proportional memory of the tree that was read in the window: shared pages count once.",
    ),
    Metric(
        "memory_growth",
        "bytes/1000 steps",
        "lower",
        "memory",
        "Robust slope of the measured process's resident memory over the measured window.",
    ),
    Metric(
        "phase_memory",
        "bytes",
        "lower",
        "memory",
        "Net growth of resident memory inside the phase itself, in the counting repetition and its warm-up; "
        "(setup) is everything before the first step.",
        per_phase=True,
    ),
    Metric(
        "device_memory",
        "bytes",
        "lower",
        "memory",
        "Largest memory allocated on the CUDA device until the window's end; of several the fullest.",
    ),
    Metric(
        "device_memory_reserved",
        "bytes",
        "lower",
        "memory",
        "Largest memory that PyTorch held reserved on the CUDA device, allocated or not.",
    ),
    Metric(
        "device_memory_unused",
        "bytes",
        "lower",
        "memory",
        "Reserved memory at its largest, less allocated memory at its largest.",
    ),
    Metric(
        "device_memory_split",
        "bytes",
        "lower",
        "memory",
        "Largest memory in free parts of blocks that are partly in use: what fragmentation holds.",
    ),
    Metric(
        "cpu_utilization",
        "%",
        "higher",
        "utilization",
        "Processor time of the whole process tree during the window, in per cent of one core.",
    ),
    Metric(
        "gpu_utilization",
        "%",
        "higher",
        "utilization",
        "Time-weighted mean utilization, in the window, of the busiest device in use.",
    ),
    Metric(
        "model_flops_utilization",
        "%",
        "higher",
        "utilization",
        "Time that the device needs at least for the model's operations, by its peak for their types, in per "
        "cent of a step.",
    ),
    Metric(
        "energy",
        "J/step",
        "lower",
        "utilization",
        "Energy of the devices in use during the window, by their own counters.",
    ),
    Metric(
        "energy_per_sample",
        "J/sample",
        "lower",
        "utilization",
        "That energy by the samples that the code counts itself, as `count.samples`.",
    ),
    Metric(
        "rank_spread",
        "1",
        "lower",
        "time",
        "Own work of the slowest rank over the median of the others': 1.05 is 5 % more. Own work is the step "
        "without the time blocked in collectives and messages.",
    ),
    Metric(
        "rank_wait_time",
        "s",
        "lower",
        "time",
        "Time per step that a rank waits at collectives for later ranks, mean over the ranks.",
    ),
    Metric(
        "communication_time",
        "s",
        "lower",
        "time",
        "Time per step that a rank is blocked in collectives and messages, without waiting for later ranks; "
        "mean over the ranks.",
    ),
    Metric(
        "communication_overlap",
        "%",
        "higher",
        "utilization",
        "Share of the time of collectives that went on beside computing, mean over the ranks.",
    ),
    Metric(
        "collectives",
        "collectives/step",
        "lower",
        "counter",
        "Collectives and messages that a rank takes part in, mean over the ranks.",
    ),
    Metric(
        "collective_bytes",
        "bytes/step",
        "lower",
        "counter",
        "Bytes that a rank gives to them, mean over the ranks.",
    ),
    Metric(
        "loader_wait_time",
        "s",
        "lower",
        "time",
        "Time per step that the loop waits for batches of DataLoaders with workers.",
    ),
    Metric(
        "loader_fetch_time",
        "s",
        "lower",
        "time",
        "Mean time that a worker of a DataLoader takes to make a batch.",
    ),
    Metric(
        "function_calls",
        "calls/step",
        "lower",
        "counter",
        "Calls of Python and built-in functions, the harness's own excluded.",
        per_phase=True,
    ),
    Metric(
        "tensor_operations",
        "operations/step",
        "lower",
        "counter",
        "Tensor operations that PyTorch dispatched, those of the backward pass included.",
        per_phase=True,
    ),
    Metric(
        "host_device_copies",
        "copies/step",
        "lower",
        "counter",
        "Tensor copies between the host and a device, in either direction.",
        per_phase=True,
    ),
    Metric(
        "copied_bytes",
        "bytes/step",
        "lower",
        "counter",
        "Bytes that the host-device copies moved.",
        per_phase=True,
    ),
    Metric(
        "scalar_reads",
        "reads/step",
        "lower",
        "counter",
        "Reads of tensor elements as Python numbers: item(), float(), int(), bool(), `in`, tolist().",
        per_phase=True,
    ),
    Metric(
        "synchronisations",
        "synchronisations/step",
        "lower",
        "counter",
        "Operations that made the host wait for a device.",
        per_phase=True,
    ),
    Metric(
        "tensors_allocated",
        "tensors/step",
        "lower",
        "counter",
        "Tensors with memory of their own that operations made; views and writes in place make none.",
        per_phase=True,
    ),
    Metric(
        "allocated_bytes",
        "bytes/step",
        "lower",
        "counter",
        "Bytes of that memory.",
        per_phase=True,
    ),
    Metric(
        "model_flops",
        "FLOP/step",
        "lower",
        "counter",
        "Floating-point operations of matrix products, convolutions and attention.",
        per_phase=True,
    ),
    Metric(
        "optimizer_steps",
        "steps/step",
        "lower",
        "counter",
        "Steps that optimizers took.",
        per_phase=True,
    ),
    Metric(
        "unused_gradient_operations",
        "operations/step",
        "lower",
        "counter",
        "Operations that autograd recorded in modules for a backward pass that never came.",
        per_phase=True,
    ),
    Metric(
        "graph_breaks",
        "breaks/step",
        "lower",
        "counter",
        "Times that compiled code was left at a graph break and gone on with behind it.",
        per_phase=True,
    ),
    Metric(
        "recompilations",
        "compilations/step",
        "lower",
        "counter",
        "Functions that PyTorch's compiler compiled after the warm-up.",
        per_phase=True,
    ),
    Metric(
        "scaling_exponent",
        "1",
        "lower",
        "time",
        "Exponent of the loop's time over the swept parameter: 1 is proportional, 2 is quadratic.",
        per_phase=True,
    ),
    Metric(
        "scaling_exponent_step_time",
        "1",
        "lower",
        "time",
        "Exponent of the time per step over the swept parameter: 0 where a step costs the same throughout.",
    ),
    Metric(
        "scaling_exponent_steps",
        "1",
        "lower",
        "time",
        "Exponent of the number of steps over the swept parameter.",
    ),
    Metric(
        "projected_time",
        "s",
        "lower",
        "time",
        "Time that the manifest's full job would take, from the measured rate or the scaling fit.",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}

# What may raise a suspicion where the manifest names nothing else; those that a run lacks are left out.
DEFAULT_HEADLINE: tuple[str, ...] = (
    "throughput",
    "step_time",
    "peak_memory",
    "device_memory",
    "memory_growth",
)
HEADLINE_LIMIT = 6

# Metrics whose names begin so may have either sign.
_SIGNED = ("memory_growth", "quality.", "gauge.")
_REPORTED = {
    "count.": Metric(
        "count.*", "count/step", "lower", "counter", "A number that the measured code counted itself."
    ),
    "gauge.": Metric(
        "gauge.*", "1", "lower", "utilization", "The mean of the values that the measured code set."
    ),
    "quality.": Metric("quality.*", "1", "higher", "quality", "How well the measured code learned."),
}


def phase_problem(spelling: str) -> str | None:
    """Return the problem with the phase in `step_time`, `phase_time:learn` and the like, or None.

    The metric itself is one that `describe_metric` knows.
    """
    name, _, phase = spelling.partition(":")
    metric = METRICS.get(name)
    if phase and metric is not None and not metric.per_phase:
        return f"{name} has no phases"
    if not phase and name.startswith("phase_"):
        return f"{name} needs a phase, write {name}:PHASE"
    return None


def is_signed(name: str) -> bool:
    """Whether a metric of this name is described by differences, since it may have either sign."""
    return name.startswith(_SIGNED)


def describe_metric(name: str) -> Metric | None:
    """Return the table's row for a metric name, reported names (`count.NAME` ...) included, or None."""
    if name in METRICS:
        return METRICS[name]
    for prefix, row in _REPORTED.items():
        if name.startswith(prefix) and len(name) > len(prefix):
            return Metric(name, row.unit, row.better, row.kind, row.description)
    return None
