"""What runs cost, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.sentences.formatting import numbers

# A part that a later harness tells keeps its own name.
PART_LABELS = {
    "waiting": "Waiting for a machine",
    "checkout": "Checkout",
    "environment": "Environment",
    "data": "Data",
    "box": "Box and launch",
    "start": "Starts of the script",
    "warmup": "Warm-up",
    "window": "Measured steps",
    "after": "The script after its steps",
    "calibration": "Calibration loops",
    "disturbed": "Disturbed repetitions, measured again",
    "sweep": "Sweep",
    "counting start": "Counting: starts of the script",
    "counting warmup": "Counting: warm-up",
    "counting window": "Counting: counted steps",
    "counting after": "Counting: the script after its steps",
    "learning": "Learning with other seeds",
    "profiled": "Profiled repetition",
    "harness": "The harness itself",
}
STARTS = ("start", "counting start")
MEASURED = "window"


def part_label(part: str) -> str:
    return PART_LABELS.get(part, part)


def seconds_text(seconds: float) -> str:
    """Tenths where they tell: `4.1 s`, `38 s`, `2 min 5 s`."""
    return numbers.format_quantity(seconds, "s") if seconds < 10 else numbers.format_duration(seconds)


def cost_of_run_sentence(parts: Sequence[tuple[str, float]]) -> str:
    """`38 s of machine time for 4.1 s of measured steps. The starts and twice ...`; empty without parts.

    `parts` are those of the machine, with their seconds.
    """
    seconds: Mapping[str, float] = dict(parts)
    total, measured = sum(seconds.values()), seconds.get(MEASURED, 0.0)
    if not total:
        return ""
    due = sum(seconds.get(part, 0.0) for part in STARTS) + 2 * measured
    sentence = f"{seconds_text(total)} of machine time for {seconds_text(measured)} of measured steps."
    beyond = total - due
    if beyond <= 0:
        return f"{sentence} That is no more than its starts and twice its measured steps."
    others = [(value, part) for part, value in parts if part not in (*STARTS, MEASURED)]
    most, part = max(others, default=(0.0, ""))
    # It may be more than what lies beyond: of twice the measured steps a part wasn't spent.
    largest = f" The largest other part: {part_label(part).lower()} ({seconds_text(most)})." if part else ""
    return (
        f"{sentence} Its starts and twice its measured steps are {seconds_text(due)}; "
        f"{seconds_text(beyond)} more were spent.{largest}"
    )


def gpu_time_sentence(seconds: float, gpu_seconds: float) -> str:
    """How many of a project's machine-hours are GPU-hours; a machine's hour counts once, whatever it has."""
    total, on_gpu = (numbers.format_hours(value / 3600) for value in (seconds, gpu_seconds))
    if not gpu_seconds:
        return f"{total} machine-hours: no machine that measured has a GPU."
    if gpu_seconds >= seconds:
        return f"{on_gpu} GPU-hours: every machine that measured has a GPU."
    return f"{total} machine-hours, {on_gpu} of them GPU-hours: on machines that have a GPU."
