"""Labels and short texts: one module, so that a thing has the same name everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from paceline.metrics import describe_metric

from dashboard.measured_kinds import is_exact_counter
from dashboard.metric_scale import NamedScale
from dashboard.models import (
    Change,
    Delivery,
    Experiment,
    ExperimentPair,
    Metric,
    Project,
    Regression,
    Run,
    Series,
    Trigger,
)
from dashboard.repositories import hide_password
from dashboard.sentences import numbers

WHOLE_HASH = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{30}(?:[0-9a-f]{24})?\b")

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


def series_label(series: Series) -> str:
    return metric_label(series.metric.name, series.phase)


def series_and_case(series: Series) -> str:
    return f"{series_label(series)} of {series.case}"


def is_worse(change: Change) -> bool:
    return change.direction == Change.Direction.REGRESSION


def shown_change(change: Change) -> Regression | Change:
    """What says the size of a change: in the regression's own series the regression, whose size pairs may
    have found, so that a step has one size everywhere."""
    regression = change.regression
    if regression is None or regression.series_id != change.series_id:
        return change
    regression.series = change.series
    return regression


def is_small_step(change: Change) -> bool:
    """True for one of several small steps of a counter of which its regression tells as one."""
    gradual = change.regression is not None and change.regression.came_gradually
    return gradual and is_exact_counter(change.series)


def shown_step(change: Change) -> Regression | Change:
    """What says the size of a step at its own commit."""
    return change if is_small_step(change) else shown_change(change)


# What was measured by pairs, or found in a series.
Paired = Experiment | ExperimentPair
Sized = Regression | Change | Paired


def metric_of(item: Sized) -> Metric:
    if isinstance(item, ExperimentPair):
        return item.experiment.metric
    return item.metric if isinstance(item, Experiment) else item.series.metric


def format_change(item: Sized) -> str:
    """`+38 % [35, 41]`, or from what to what where the old level was 0; of an exponent `+0.42 [0.38, 0.45]`.

    Of pairs of values without ratios `+12.3 kB/1000 steps [10.1, 14.5]`, of levels that may be 0 or less
    `+12.3 kB/1000 steps`. The interval of what repeats exactly has no width and is left out.
    """
    if is_shown_as_difference(item):
        return format_change_size(item)
    if item.ratio is None:
        return _format_measured_difference(item) if isinstance(item, Paired) else format_levels(item)
    if metric_of(item).is_exponent:
        interval = numbers.format_exponent_interval(item.low, item.high)
    else:
        interval = numbers.format_percent_interval(item.low, item.high)
        if interval == numbers.format_percent_interval(item.ratio, item.ratio):
            interval = ""
    return f"{format_change_size(item)} {interval}".strip()


def _format_measured_difference(item: Paired) -> str:
    """Empty where the pairs don't tell yet."""
    if item.difference is None:
        return ""
    if isinstance(item, Experiment) and item.learning.get("unreported"):
        # What counts as lost is no number that was measured.
        seeds = numbers.format_count(item.learning["seeds"], "seed")
        return f"none reported in {item.learning['unreported']} of {seeds}"
    unit = metric_of(item).unit
    text = numbers.format_signed_quantity(item.difference, unit)
    if item.difference_low == item.difference_high:
        return text
    ends = (item.difference_low, item.difference_high)
    return f"{text} {numbers.format_interval(*ends, unit)}".strip()


def experiment_metric_label(experiment: Experiment) -> str:
    """`Step time`, `Own time in learn/push`."""
    return metric_label(experiment.metric.name, experiment.phase)


def format_change_size(item: Sized) -> str:
    """`+38 %`, or `+0.42` of an exponent: its size without the interval; of a quality its levels."""
    if is_shown_as_difference(item):
        before, after = shown_levels(item)
        return numbers.format_signed_quantity(after - before, item.series.metric.unit)
    if metric_of(item).is_exponent and item.ratio is not None:
        return numbers.format_exponent_difference(item.ratio)
    if item.ratio is None and isinstance(item, Regression | Change) and item.before:
        return format_levels(item)
    return numbers.format_percent_change(item.ratio)


def is_shown_as_difference(item: Sized) -> TypeGuard[Regression | Change]:
    """True of what may be 0 or less, such as the growth of memory; a quality is described by its levels."""
    metric = metric_of(item)
    return isinstance(item, Regression | Change) and metric.has_sign and not metric.is_quality


def describe_movement(metric: str, unit: str, before: float, after: float) -> str:
    """From one value to another: `+3.1 %`; of an exponent, and of what may be 0 or less, the difference."""
    scale = NamedScale(metric)
    if scale.lacks_ratio(before, after):
        return numbers.format_signed_quantity(after - before, unit)
    ratio = scale.ratio(before, after)
    if scale.is_exponent and ratio is not None:
        return numbers.format_exponent_difference(ratio)
    return numbers.format_percent_change(ratio)


def format_levels(item: Regression | Change) -> str:
    """`1.23 ms → 1.70 ms`: from which level to which; of a quality that isn't reported `9.3 → none`."""
    unit, (before, after) = item.series.metric.unit, shown_levels(item)
    if item.is_unreported:
        return f"{numbers.format_quantity(before, unit)} → none"
    return f"{numbers.format_quantity(before, unit)} → {numbers.format_quantity(after, unit)}"


def shown_levels(item: Regression | Change) -> tuple[float, float]:
    """The levels before and after that agree with the size that is reported: of a regression that pairs sized
    theirs, else those of the points."""
    if isinstance(item, Regression):
        return item.level_before, item.level_after
    return item.before, item.after


def metric_words(series: Series) -> str:
    """`step time`, `own time in learn/push`: a series' metric inside a sentence."""
    return lower_first(series_label(series))


def lower_first(text: str) -> str:
    """Unless it begins with an abbreviation: `CPU utilization` stays."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def upper_first(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def join_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; empty of none."""
    *first, last = names or [""]
    return f"{', '.join(first)} and {last}" if first else last


def format_difference(difference: Sequence[str]) -> str:
    """`driver 550.1 → 560.2`: what differs, and what it was before and after."""
    name, before, after = difference
    return f"{name} {before} → {after}" if before or after else name


def describe_differences(differences: Iterable[Sequence[str]]) -> str:
    """`driver 550.1 → 560.2, torch 2.12.0 → 2.13.0`."""
    return ", ".join(format_difference(difference) for difference in differences)


def function_location(suspect: dict[str, Any]) -> str:
    """`replay.py:push`, with the folders that it lies in."""
    return ":".join(str(part) for part in (suspect.get("file"), suspect.get("function")) if part)


def is_called_in_step(suspect: dict[str, Any]) -> bool:
    """Whether a step calls it, before or after. What only the diff names has no calls and no time."""
    return any(suspect.get(side) != 0 for side in ("calls_before", "calls_after"))


def requested_revisions(trigger: Trigger) -> str:
    """What a trigger asked for: the newest commit, one commit, a range or the last so many, of a branch."""
    asked = describe_revisions(trigger.revisions)
    if trigger.schedule:
        return f"schedule {trigger.schedule}, {asked}"
    kind, _, name = trigger.ref.removeprefix("refs/").partition("/")
    return f"{'tag' if kind == 'tags' else 'branch'} {name}, {asked}" if name else asked


def describe_revisions(revisions: Mapping[str, Any]) -> str:
    if "commit" in revisions:
        return f"commit {shorten_hashes(revisions['commit'])}"
    if "range" in revisions:
        return f"range {shorten_hashes(revisions['range'])}"
    if "last" in revisions:
        return "last commit" if revisions["last"] == 1 else f"last {revisions['last']} commits"
    return "newest commit"


def shorten_hashes(revision: str) -> str:
    """Whole hashes, which hooks send, cut as commits are named everywhere."""
    return WHOLE_HASH.sub(r"\1", revision)


def triager_name(regression: Regression) -> str:
    """The user who decided last, also where the account is gone or one of a forge."""
    if regression.triaged_by:
        return regression.triaged_by.get_username()
    return getattr(regression, "triaged_account", "") or "a former account"


def run_state_label(run: Run) -> str:
    """`measuring`, `failed: crash`, or `requested for 14:05 UTC` where it waits for its time."""
    if run.is_postponed:
        return f"{run.state} for {run.not_before:%H:%M} UTC"
    return f"failed: {run.failure}" if run.state == Run.State.FAILED and run.failure else run.state


def repository_location(project: Project) -> str:
    """Where the code is, without the name and password that a URL may carry."""
    return hide_password(project.repository)


def repository_name(project: Project) -> str:
    """As `repository_location`; of a folder of the site's machine its name alone."""
    location = repository_location(project)
    if not location.startswith(("/", "file:")):
        return location
    return f"{location.rstrip('/').rpartition('/')[2]}, a folder of the site's machine"


def shown_errors(delivery: Delivery, in_full: bool) -> list[str]:
    """What went wrong; unless in full, without the address that a mail server's answer may quote."""
    address, masked = re.escape(delivery.channel.address), masked_address(delivery)
    if in_full or not address:
        return list(delivery.errors)
    return [re.sub(address, lambda _: masked, error, flags=re.IGNORECASE) for error in delivery.errors]


def masked_address(delivery: Delivery) -> str:
    """An address for those who are not signed in: enough to recognise it, too little to use it."""
    address = delivery.channel.address
    if "://" in address:
        scheme, rest = address.split("://", 1)
        return f"{scheme}://{rest.split('/', 1)[0].rsplit('@', 1)[-1]}/…"
    name, at, host = address.partition("@")
    return f"{name[:1]}…{at}{host}"
