"""What metrics and the series of them are called: the same name everywhere."""

from __future__ import annotations

from paceline.metrics import describe_metric

from dashboard.models import Experiment, Series
from dashboard.sentences.formatting.english import lower_first

_LABELS = {
    "os": "Operating system",
    "cpu_model": "CPU",
    "cpu_count": "CPUs",
    "cuda": "CUDA",
    "path": "Measured on",
    "step_time_p99": "Step time, p99",
    "cpu_utilization": "CPU utilization",
    "gpu_utilization": "GPU utilization",
    "host_device_copies": "Host-device copies",
    "gpu_tensor_utilization": "Tensor cores busy",
    "gpu_memory_bandwidth": "GPU memory bandwidth",
    "model_flops": "Model FLOPs",
    "model_flops_utilization": "Model FLOPs utilization",
    "device_memory_unused": "Device memory, reserved and unused",
    "device_memory_split": "Device memory, fragmented",
    "peak_memory_pss": "Peak memory, shared pages once",
    "scaling_exponent_step_time": "Scaling exponent of the time per step",
    "scaling_exponent_steps": "Scaling exponent of the number of steps",
    "gc": "Garbage collection",
}
_PHASE_LABELS = {
    "phase_time": "Time",
    "phase_self_time": "Own time",
    "phase_device_time": "Device time",
    "phase_memory": "Memory kept",
}


def metric_label(metric: str, phase: str = "") -> str:
    """`step_time` -> `Step time`; with a phase `Own time in learn/push`; reported names stay as they are.

    `phase_self_time:learn/push`, as a manifest names it, says its phase by itself.
    """
    metric, _, named = metric.partition(":")
    phase = phase or named
    reported = metric.split(".", 1)
    if len(reported) == 2:
        return f"{reported[1]} ({reported[0]})" + (f" in {phase}" if phase else "")
    if phase:
        return f"{_PHASE_LABELS.get(metric, field_label(metric))} in {phase}"
    return field_label(metric)


def field_label(name: str) -> str:
    """`cpu_count` -> `CPUs`: of a metric, or of a member of a document."""
    return _LABELS.get(name, name.replace("_", " ").capitalize())


METRIC_ORDER = ("throughput", "step_time", "step_time_p99", "peak_memory", "device_memory", "memory_growth")


def metric_sort_key(metric: str, phase: str = "") -> tuple[int, str, str]:
    """Speed first, then memory, the rest by name."""
    first = metric in METRIC_ORDER and not phase
    return METRIC_ORDER.index(metric) if first else len(METRIC_ORDER), metric, phase


def metric_unit(metric: str) -> str:
    definition = describe_metric(metric)
    return definition.unit if definition else "1"


def metric_description(metric: str) -> str:
    """What the metric is, in a sentence; empty for a name that the table doesn't have."""
    definition = describe_metric(metric)
    return definition.description if definition else ""


def series_label(series: Series) -> str:
    return metric_label(series.metric.name, series.phase)


def series_and_case(series: Series) -> str:
    return f"{series_label(series)} of {series.case}"


def metric_words(series: Series) -> str:
    """`step time`, `own time in learn/push`: a series' metric inside a sentence."""
    return lower_first(series_label(series))


def experiment_metric_label(experiment: Experiment) -> str:
    """`Step time`, `Own time in learn/push`."""
    return metric_label(experiment.metric.name, experiment.phase)
