"""A regression's device: the kernels and the idle time that differ, which add up to what the step lost."""

from __future__ import annotations

from typing import Any

from dashboard.models import Regression
from dashboard.sentences.measurements import device_time

Json = dict[str, Any]


def device_context(regression: Regression) -> Json:
    """The sentences of the first paragraph, and the table's rows; empty without a device on both sides."""
    if not regression.device:
        return {}
    return {
        "new_kernels": device_time.describe_new_kernels(regression),
        "idle_growth": device_time.describe_idle_growth(regression),
        "kernels": regression.device["kernels"],
        "kernel_rest": rest_of_kernels(regression.device),
        "idle": [
            {**row, "words": device_time.IDLE_CAUSES.get(row["cause"], row["cause"])}
            for row in regression.device["idle"]
        ],
        "device_step": regression.device["step"],
    }


def rest_of_kernels(device: Json) -> tuple[float, float]:
    """The seconds of the kernels that aren't listed, before and after.

    Kernels of streams that ran beside each other may add up to more than the device was busy.
    """
    sides = (
        busy - sum(row[side] for row in device["kernels"])
        for busy, side in zip(device["busy"], ("seconds_before", "seconds_after"), strict=True)
    )
    before, after = (max(seconds, 0.0) for seconds in sides)
    return before, after
