"""Labels and short texts of the pages: one module, so that a thing has the same name on every page."""

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
    Limit,
    Project,
    Regression,
    Run,
    Series,
    SeriesLatest,
    Trigger,
)

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
    "peak_memory_pss": "Peak memory, shared pages once",
    "scaling_exponent_step_time": "Scaling exponent of the time per step",
    "scaling_exponent_steps": "Scaling exponent of the number of steps",
    "gc": "Garbage collection",
}
_PHASE_LABELS = {
    "phase_time": "Time",
    "phase_self_time": "Own time",
    "phase_device_time": "Device time",
    "phase_memory": "Memory growth",
}


def metric_label(metric: str, phase: str = "") -> str:
    """`step_time` -> `Step time`; with a phase `Own time in learn/push`; reported names stay as they are."""
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


def format_bounds(minimum: float | None, maximum: float | None, unit: str) -> str:
    """`at least 80 %`, `at most 10 ms`, or both."""
    bounds = [
        f"at {word} {units.format_quantity(value, unit)}"
        for word, value in (("least", minimum), ("most", maximum))
        if value is not None
    ]
    return " and ".join(bounds)


def format_limit(limit: Limit, unit: str) -> str:
    return format_bounds(limit.minimum, limit.maximum, unit)


def format_latest_limit(latest: SeriesLatest) -> str:
    """The limit of a series that has one, as its newest run found it."""
    return format_limit(latest.limit, latest.series.metric.unit) if latest.limit else ""


def series_label(series: Series) -> str:
    return metric_label(series.metric.name, series.phase)


def is_worse(change: Change) -> bool:
    return change.direction == Change.Direction.REGRESSION


def format_change(item: Regression | Change | Confirmation) -> str:
    """`+38 % [35, 41]`, or from what to what where the old level was 0; of an exponent `+0.42 [0.38, 0.45]`.

    The interval of what repeats exactly has no width and is left out.
    """
    if item.ratio is None:
        return format_levels(item)
    if item.series.metric.is_exponent:
        interval = units.format_exponent_interval(item.low, item.high)
    else:
        interval = units.format_percent_interval(item.low, item.high)
        if interval == units.format_percent_interval(item.ratio, item.ratio):
            interval = ""
    return f"{format_change_size(item)} {interval}".strip()


def format_change_size(item: Regression | Change | Confirmation) -> str:
    """`+38 %`, or `+0.42` of an exponent: its size without the interval."""
    if item.series.metric.is_exponent and item.ratio is not None:
        return units.format_exponent_difference(item.ratio)
    return units.format_percent_change(item.ratio)


def format_levels(item: Regression | Change | Confirmation) -> str:
    unit = item.series.metric.unit
    after = item.level_after if isinstance(item, Regression) else item.after
    return f"{units.format_quantity(item.before, unit)} → {units.format_quantity(after, unit)}"


def suspect_sentence(suspect: dict[str, Any], kind: str) -> str:
    """`is called 256 times per step instead of 1 and was changed in that commit`: as in alerts."""
    changed = "was changed in that commit" if suspect.get("changed") else ""
    parts = [text for text in (describe_function_change(suspect, kind), changed) if text]
    return " and ".join(parts) or "costs more than before"


def function_location(suspect: dict[str, Any]) -> str:
    """`replay.py:push`, with the folders that it lies in."""
    return ":".join(str(part) for part in (suspect.get("file"), suspect.get("function")) if part)


def is_called_in_step(suspect: dict[str, Any]) -> bool:
    """Whether a step calls it, before or after. What only the diff names has no calls and no time."""
    return any(suspect.get(side) != 0 for side in ("calls_before", "calls_after"))


def requested_revisions(trigger: Trigger) -> str:
    """What a trigger asked for: the newest commit, one commit, a range or the last so many."""
    revisions = trigger.revisions
    if "commit" in revisions:
        return f"commit {revisions['commit']}"
    if "range" in revisions:
        return f"range {revisions['range']}"
    if "last" in revisions:
        return f"last {revisions['last']} commits"
    return "newest commit"


def regression_state_label(regression: Regression) -> str:
    """What became of a regression, where something did, else its state.

    What people called no fault isn't told as recovered.
    """
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


def triager_name(regression: Regression) -> str:
    """The user who decided last, also where the account is gone."""
    return regression.triaged_by.get_username() if regression.triaged_by else "a former account"


def run_state_label(run: Run) -> str:
    return f"failed: {run.failure}" if run.state == Run.State.FAILED and run.failure else run.state


def repository_location(project: Project) -> str:
    """Where the code is, without the name and password that a URL may carry."""
    parts = urlsplit(project.repository)
    if not parts.scheme or "@" not in parts.netloc:
        return project.repository
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def masked_address(delivery: Delivery) -> str:
    """An address for those who are not signed in: enough to recognise it, too little to use it."""
    address = delivery.channel.address
    if "://" in address:
        scheme, rest = address.split("://", 1)
        return f"{scheme}://{rest.split('/', 1)[0].rsplit('@', 1)[-1]}/…"
    name, at, host = address.partition("@")
    return f"{name[:1]}…{at}{host}"
