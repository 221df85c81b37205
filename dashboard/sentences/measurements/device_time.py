"""What a device's time went into, in words: kernels, idle time by its cause, what isn't known and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.models import Regression
from dashboard.sentences.formatting import numbers

MOST_LINES = 3
IDLE_CAUSES = {
    "collectives": "waits in collectives",
    "data": "waits for data",
    "copy": "copies, and computes nothing beside it",
    "synchronisation": "waits after a synchronisation of the host",
    "host": "waits for the host to launch something",
    "launch": "between two queued kernels",
    "unexplained": "unexplained",
}
# Without a device: what the thread of the steps did beside operations.
HOST_CAUSES = {
    "data": "waits for data",
    "dataset": "Python of the dataset, which this process runs itself",
    "collectives": "in collectives: waits for other ranks, and transfer",
    "host": "Python between operations",
    "unexplained": "asleep or waiting, unexplained",
}
FLOPS_REASONS = {
    "none": "the run counted none",
    "not_counted": "the run counted nothing",
    "compiled": "operations of compiled code can't be counted one by one",
    "unknown_device": "the device's peak isn't in the harness's table",
    "unknown_type": "the device's peak for one of the number types isn't in the harness's table",
    "impossible": "more was counted than the device can do, so the count is wrong",
}
COUNTER_REASONS = {
    "no_nvml": "the measuring environment has no NVML",
    "not_supported": "the device has no such counters, which Hopper brought",
    "short_window": "the window is shorter than half a second",
    "divided": "of a part of a divided device they aren't read",
    "failed": "the driver refused",
}


def describe_new_kernels(regression: Regression) -> str:
    """`2 new kernels, 1.20 ms: index_put in learn/push`; empty where none is new."""
    new = [row for row in regression.device.get("kernels", ()) if is_new_kernel(row)]
    if not new:
        return ""
    seconds = numbers.format_quantity(sum(row["seconds_after"] for row in new), "s")
    first = max(new, key=lambda row: row["seconds_after"])
    count = f"{len(new)} new kernel{'s' if len(new) > 1 else ''}"
    return f"{count}, {seconds}: {kernel_label(first)}{place_words(first)}"


def kernel_label(row: Mapping[str, Any]) -> str:
    """`index_put`: the operation that launched the kernel, else the kernel."""
    return str(row["operation"].rpartition("::")[2].rstrip("_") or row["kernel"])


def place_words(row: Mapping[str, Any]) -> str:
    return f" in {row['phase']}" if row["phase"] else ""


def is_new_kernel(row: Mapping[str, Any]) -> bool:
    return not row["count_before"]


def kernel_lines(regression: Regression) -> list[str]:
    """`index_put_kernel in learn/push is new, 12 times per step, and takes 1.2 ms`, for the first ones."""
    return [
        f"{row['kernel']}{place_words(row)} {describe_kernel_change(row)}"
        for row in regression.device.get("kernels", ())[:MOST_LINES]
    ]


def describe_kernel_change(row: Mapping[str, Any]) -> str:
    after = numbers.format_quantity(row["seconds_after"], "s")
    number = row["count_after"]
    times = "once" if number == 1 else f"{numbers.format_number(number)} times"
    if is_new_kernel(row):
        return f"is new, {times} per step, and takes {after}"
    before = numbers.format_quantity(row["seconds_before"], "s")
    often = "" if row["count_before"] == row["count_after"] else f", {times} per step"
    return f"takes {after} per step instead of {before}{often}"


def describe_idle_growth(regression: Regression) -> str:
    """`1.2 ms more in which the device waits for data, mostly in learn`; empty where none grew by a tenth."""
    rows: Sequence[Mapping[str, Any]] = regression.device.get("idle", ())
    step = regression.device.get("step") or [0.0, 0.0]
    lost = step[1] - step[0]
    first = next(iter(rows), None)
    if first is None or lost <= 0:
        return ""
    growth = first["seconds_after"] - first["seconds_before"]
    if growth < lost / 10:
        return ""
    longer = numbers.format_quantity(growth, "s")
    cause = IDLE_CAUSES.get(first["cause"], first["cause"])
    if first["cause"] == "unexplained":
        return f"{longer} of the device's idle time has no known cause"
    # The growth is that of all phases.
    mostly = ", mostly" if first["phase"] and first.get("spread") else ""
    return f"{longer} more in which the device {device_clause(cause)}{mostly}{place_words(first)}"


def device_clause(cause: str) -> str:
    """A cause as the verb of a sentence about the device."""
    return f"is {cause}" if cause.startswith("between") else cause
