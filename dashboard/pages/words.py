"""Sentences and names of the pages: one place, so that a thing is called the same everywhere."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from paceline.metrics import describe_metric

from dashboard.alerts.sentences import describe_function_change
from dashboard.charts import units
from dashboard.models import (
    Change,
    Confirmation,
    Delivery,
    Project,
    Regression,
    Run,
    Series,
    SeriesLatest,
    Trigger,
)

_NAMES = {
    "os": "Operating system",
    "cpu_model": "CPU",
    "cpu_count": "CPUs",
    "cuda": "CUDA",
    "path": "Measured on",
    "step_time_p99": "Step time, p99",
    "cpu_utilization": "CPU utilization",
    "gpu_utilization": "GPU utilization",
    "host_device_copies": "Host-device copies",
    "peak_memory_pss": "Peak memory, shared pages once",
    "scaling_exponent_step_time": "Scaling exponent of the time per step",
    "scaling_exponent_steps": "Scaling exponent of the number of steps",
    "gc": "Garbage collection",
}
_IN_PHASE = {
    "phase_time": "Time",
    "phase_self_time": "Own time",
    "phase_device_time": "Device time",
    "phase_memory": "Memory growth",
}


def metric_name(metric: str, phase: str = "") -> str:
    """`step_time` -> `Step time`; with a phase `Own time in learn/push`; reported names stay as they are."""
    reported = metric.split(".", 1)
    if len(reported) == 2:
        return f"{reported[1]} ({reported[0]})" + (f" in {phase}" if phase else "")
    if phase:
        return f"{_IN_PHASE.get(metric, name_of(metric))} in {phase}"
    return name_of(metric)


def name_of(metric: str) -> str:
    return _NAMES.get(metric, metric.replace("_", " ").capitalize())


METRIC_ORDER = ("throughput", "step_time", "step_time_p99", "peak_memory", "device_memory", "memory_growth")


def metric_place(metric: str, phase: str = "") -> tuple[int, str, str]:
    """Sorts metrics as people ask for them: how fast, how large, the rest by name."""
    known = metric in METRIC_ORDER and not phase
    return METRIC_ORDER.index(metric) if known else len(METRIC_ORDER), metric, phase


def unit_of(metric: str) -> str:
    known = describe_metric(metric)
    return known.unit if known else "1"


def meaning(metric: str) -> str:
    """What the metric is, in a sentence; empty for a name that the table doesn't have."""
    known = describe_metric(metric)
    return known.description if known else ""


def bound(minimum: float | None, maximum: float | None, unit: str) -> str:
    """`at least 80 %`, `at most 10 ms`, or both: how a limit is said everywhere."""
    said = [
        f"at {word} {units.format_quantity(value, unit)}"
        for word, value in (("least", minimum), ("most", maximum))
        if value is not None
    ]
    return " and ".join(said)


def bound_of(latest: SeriesLatest) -> str:
    """The limit of a series that has one, as its newest run found it."""
    limit = latest.limit
    return bound(limit.minimum, limit.maximum, latest.series.metric.unit) if limit else ""


def series_name(series: Series) -> str:
    return metric_name(series.metric.name, series.phase)


def is_worse(change: Change) -> bool:
    return change.direction == Change.Direction.REGRESSION


def how_much(item: Regression | Change | Confirmation) -> str:
    """`+38 % [35, 41]`, or from what to what where the old level was 0; of an exponent `+0.42 [0.38, 0.45]`.

    What repeats exactly has an interval without width: it would only say the value again.
    """
    if item.ratio is None:
        return from_to(item)
    if item.series.metric.is_exponent:
        interval = units.format_exponent_interval(item.low, item.high)
    else:
        interval = units.format_percent_interval(item.low, item.high)
        if interval == units.format_percent_interval(item.ratio, item.ratio):
            interval = ""
    return f"{moved(item)} {interval}".strip()


def moved(item: Regression | Change | Confirmation) -> str:
    """`+38 %`, or `+0.42` of an exponent: its size without the interval."""
    if item.series.metric.is_exponent and item.ratio is not None:
        return units.format_exponent_difference(item.ratio)
    return units.format_percent_change(item.ratio)


def from_to(item: Regression | Change | Confirmation) -> str:
    unit = item.series.metric.unit
    after = item.level_after if isinstance(item, Regression) else item.after
    return f"{units.format_quantity(item.before, unit)} → {units.format_quantity(after, unit)}"


def suspect_sentence(suspect: dict[str, Any], kind: str) -> str:
    """`is called 256 times per step instead of 1 and was changed in that commit`: as a message says it."""
    changed = "was changed in that commit" if suspect.get("changed") else ""
    said = [text for text in (describe_function_change(suspect, kind), changed) if text]
    return " and ".join(said) or "costs more than before"


def place(suspect: dict[str, Any]) -> str:
    """`replay.py:push`, with the folders that it lies in."""
    return ":".join(str(part) for part in (suspect.get("file"), suspect.get("function")) if part)


def is_called(suspect: dict[str, Any]) -> bool:
    """Does a step call it, before or after? One that the diff alone names has no calls and no time."""
    return any(suspect.get(side) != 0 for side in ("calls_before", "calls_after"))


def asked(trigger: Trigger) -> str:
    """What a trigger asked for: the newest commit, one commit, a range or the last so many."""
    wanted = trigger.revisions
    if "commit" in wanted:
        return f"commit {wanted['commit']}"
    if "range" in wanted:
        return f"range {wanted['range']}"
    if "last" in wanted:
        return f"last {wanted['last']} commits"
    return "newest commit"


def regression_state(regression: Regression) -> str:
    """What became of it, before what is known of it: what isn't a fault can't be repaired."""
    if regression.withdrawn_at:
        return "withdrawn"
    if regression.triaged in (Regression.Triaged.INTENDED, Regression.Triaged.NOT_REAL):
        return regression.triaged
    if regression.recovered_by_id:
        return "recovered"
    if regression.is_away:
        return regression.triaged
    if regression.state == Regression.State.SUSPECTED and not (regression.names_commit or regression.proving):
        # A new driver or another machine: no two commits' runs could prove it.
        return "not blamed"
    return regression.state


def triaged_by(regression: Regression) -> str:
    """Who decided last: the name, or that the account is gone."""
    return regression.triaged_by.get_username() if regression.triaged_by else "a former account"


def run_state(run: Run) -> str:
    return f"failed: {run.failure}" if run.state == Run.State.FAILED and run.failure else run.state


def repository(project: Project) -> str:
    """Where the code is, without the name and password that a URL may carry."""
    parts = urlsplit(project.repository)
    if not parts.scheme or "@" not in parts.netloc:
        return project.repository
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def masked(delivery: Delivery) -> str:
    """An address for those who are not signed in: enough to recognise it, too little to use it."""
    address = delivery.channel.address
    if "://" in address:
        scheme, rest = address.split("://", 1)
        return f"{scheme}://{rest.split('/', 1)[0].rsplit('@', 1)[-1]}/…"
    name, at, host = address.partition("@")
    return f"{name[:1]}…{at}{host}"
