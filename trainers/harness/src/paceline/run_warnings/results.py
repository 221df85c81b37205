"""Warnings about the results: counters, learning, limits, the sweep and the job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import metrics
from ..document_building import counters
from ..document_building.learning_guards import DIVERGED, MISSING, VIOLATED, diverged_names, values_by_seed
from ..document_building.reported_numbers import COUNTS, GAUGES, unusable_numbers
from ..manifest.benchmarks import Benchmark
from ..measured.processor import CONTENTION_SHARE
from ..measurement import TimedRepetition
from ..phase_names import spell_metric
from ..statistics import mean
from ..units import format_amount, format_count
from ..watching.measurement_errors import TooFewStepsError
from .warning import Raw, WarningRows, make_warning

MOST_NAMES = 10
UNCERTAIN_WIDTH = 0.5  # of an exponent: the difference between linear and n log n, or worse


def result_warnings(
    raw: Raw, timed: Sequence[TimedRepetition], counted: Sequence[Raw], benchmark: Benchmark
) -> WarningRows:
    """Yield what the run's results leave open, and what they cross."""
    yield from _inexact_counters(counted)
    yield from _guard_warnings(raw, diverged_names(row.result["quality"] for row in timed), benchmark)
    yield from _unusable_numbers(timed)
    yield from _dropped_phases(timed)
    yield from _several_threads(timed)
    yield from _several_owners(timed, benchmark)
    yield from _unlearned_steps(raw, timed, benchmark)
    yield from _limit_warnings(raw)
    yield from _scaling_warnings(raw)
    if benchmark.job is not None and "job" not in raw:
        yield from _job_not_projected(benchmark.job.unit)


def counting_warnings(uncounted: TooFewStepsError | None) -> WarningRows:
    """Yield why nothing was counted, where the loop was too short for that alone."""
    if uncounted is not None:
        yield make_warning("nothing_counted", f"nothing was counted: {uncounted.seen}", uncounted.advice)


def _inexact_counters(counted: Sequence[Raw]) -> WarningRows:
    names = counters.inexact_counters(counted)
    if names:
        yield make_warning(
            "counters_inexact",
            f"two countings differ in {', '.join(names)}",
            "seed every random generator, and look for work that depends on time or on threads",
        )


def _guard_warnings(raw: Raw, diverged: Sequence[str], benchmark: Benchmark) -> WarningRows:
    """What was learned is out of a guard's bounds, or isn't known."""
    guarded = set()
    place = "in the loop: an unmarked script is ended after its steps" if benchmark.auto else "after the loop"
    for row in raw.get("guards", ()):
        name, state = row["quality"], row["state"]
        guarded.add(name)
        if state == DIVERGED:
            yield _divergence_warning(name, taints=True)
        elif state == MISSING:
            yield make_warning(
                "quality_missing",
                f"the benchmark has a guard on {name} but never reported it",
                f'call paceline.quality("{name}", value) {place}',
                taints=True,
            )
        elif state == VIOLATED:
            by_seed = values_by_seed(name, raw) or {}
            yield make_warning(
                "quality_below_guard",
                f"{name} is {_describe_learned(by_seed)}, its guard is {_describe_bound(row)}",
                "a speed that is reached without learning is no speed: look at what changed",
                taints=True,
            )
    for name in diverged:
        if name not in guarded:
            yield _divergence_warning(name, taints=False)


def _divergence_warning(name: str, *, taints: bool) -> dict[str, Any]:
    return make_warning(
        "quality_diverged",
        f"training diverged: {name} is no finite number",
        "look for a step that is too large, a division by nothing, or a type that overflows",
        taints=taints,
    )


def _describe_learned(by_seed: Mapping[int, float]) -> str:
    text = f"{mean(list(by_seed.values())):.4g}"
    if len(by_seed) == 1:
        return text
    each = ", ".join(f"{value:.4g} with seed {seed}" for seed, value in by_seed.items())
    return f"{text} on average ({each})"


def _describe_bound(row: Mapping[str, Any]) -> str:
    """The bound of a guard that a value lies beyond."""
    below = row["minimum"] is not None and row["value"] < row["minimum"]
    return f"at least {row['minimum']:g}" if below else f"at most {row['maximum']:g}"


def _unusable_numbers(timed: Sequence[TimedRepetition]) -> WarningRows:
    """What the code reported that no document can hold: which numbers, how often, and what became of them."""
    found = unusable_numbers(repetition.result for repetition in timed)
    descriptions = [
        _describe_unusable(member, name, readings) for (member, name), readings in sorted(found.items())
    ]
    if descriptions:
        rest = len(descriptions) - MOST_NAMES
        yield make_warning(
            "number_left_out",
            "; ".join(descriptions[:MOST_NAMES]) + (f"; and {rest} more" if rest > 0 else ""),
            "a gradient's norm is infinite at first with fp16 and a GradScaler; elsewhere look for a "
            "division by nothing, or a type that overflows",
        )


def _describe_unusable(member: str, name: str, readings: int) -> str:
    times = format_count(readings, "reading")
    if member == GAUGES:
        return f"gauge {name} leaves out {times}: no finite number"
    whose = "count" if member == COUNTS else "a helper's count"
    return f"{whose} {name} is left out: no finite number was added to it, {times}"


def _dropped_phases(timed: Sequence[TimedRepetition]) -> WarningRows:
    if any(repetition.result["dropped_phases"] for repetition in timed):
        yield make_warning(
            "too_many_phases",
            "the code has more phases than are kept apart; the others' time is in the phases around them",
            "name phases by kind of work, not by data",
        )


def _several_threads(timed: Sequence[TimedRepetition]) -> WarningRows:
    if any(repetition.result.get("several_threads") for repetition in timed):
        yield make_warning(
            "steps_of_several_threads",
            "more than one thread took the steps: their phases are summed as those of main, and how long "
            "they waited for a processor isn't known",
            "take the steps in one thread, where these shares don't add up or the machine is busy",
        )


def _several_owners(timed: Sequence[TimedRepetition], benchmark: Benchmark) -> WarningRows:
    found = [step for step in (repetition.step for repetition in timed) if step and "succeeded_after" in step]
    latest = max(found, key=lambda step: int(step["succeeded_after"]), default=None)
    if latest is None or latest["succeeded_after"] < benchmark.warmup_steps:
        return
    if latest["alternates"]:
        yield make_warning(
            "steps_of_several_kinds",
            f"the window holds steps of {latest['succeeded']} and of {latest['owner']}, which take turns",
            "a longer warm-up holds both too: end a step with a round of them, by "
            "`for batch in paceline.steps(batches):`, or with each batch (--step batch)",
        )
    else:
        yield make_warning(
            "steps_of_several_kinds",
            f"the window holds steps of {latest['succeeded']} and of {latest['owner']}, which took over "
            f"after {latest['succeeded_after']}",
            f"warm up for more than {latest['succeeded_after']} steps, or choose what ends a step",
        )


def _unlearned_steps(raw: Raw, timed: Sequence[TimedRepetition], benchmark: Benchmark) -> WarningRows:
    """Warn where an environment was stepped in the window, or from its begin on, and no optimizer was."""
    # It isn't said where another framework may have learned.
    steps = [row.step for row in timed if row.step and "learned_after" in row.step]
    if not steps:
        return
    learned_after = max(step["learned_after"] or 0 for step in steps)
    if not any("optimizer" in row["path"].split("/") for row in raw["phases"]):
        yield make_warning(
            "nothing_learned",
            "no optimizer of PyTorch stepped in the window: it holds the environment's steps alone",
            "where the script learns after a number of them, measure several times as many (--steps)",
        )
    elif learned_after >= max(benchmark.warmup_steps, 1):
        yield make_warning(
            "nothing_learned",
            f"the first optimizer step came after {learned_after} steps, within the window: "
            "until then nothing was learned",
            f"warm up for more than {learned_after} steps (--warmup-steps)",
        )


def _limit_warnings(raw: Raw) -> WarningRows:
    on_device = raw["environment"]["path"] == "cuda"
    for row in raw["limits"]:
        name = spell_metric(row["metric"], row["phase"])
        if row["crossed"]:
            below = row["minimum"] is not None and row["value"] < row["minimum"]
            metric = metrics.describe_metric(row["metric"])
            unit = metric.unit if metric else "1"
            bound = format_amount(row["minimum" if below else "maximum"], unit)
            yield make_warning(
                "limit_crossed",
                f"{name} is {format_amount(row['value'], unit)}, "
                f"its limit is at {'least' if below else 'most'} {bound}",
                "look at what changed; if this is right now, move the limit in the manifest",
            )
        elif row["value"] is None and (
            on_device or not name.startswith(("gpu_", "device_", "phase_device_"))
        ):
            yield make_warning(
                "limit_not_measured",
                f"there is a limit on {name}, which wasn't measured",
                "check the name of the metric and of its phase, and that the code reports it",
            )


def _scaling_warnings(raw: Raw) -> WarningRows:
    names = {row["name"] for row in raw.get("scaling", {}).get("exponents", ())}
    if "scaling" in raw and "scaling_exponent" not in names:
        shortest = min(row["seconds"] for row in raw["scaling"]["points"])
        yield make_warning(
            "scaling_too_short",
            f"the sweep's shortest loop took {shortest * 1000:.2g} ms, too little to be timed",
            "sweep over larger values",
        )
    yield from _sweep_contention(raw.get("scaling", {}).get("points", ()))
    for row in raw.get("scaling", {}).get("exponents", ()):
        of_loop = (row["name"], row["phase"]) == ("scaling_exponent", None)
        if of_loop and row["high"] - row["low"] > UNCERTAIN_WIDTH:
            yield make_warning(
                "scaling_uncertain",
                f"the scaling exponent lies anywhere between {row['low']:.2f} and {row['high']:.2f}",
                "sweep over more values, larger ones, with more repetitions, on a quieter machine",
            )


def _sweep_contention(points: Sequence[Raw]) -> WarningRows:
    """Warn where the fastest repetition of a value, the one that counts, waited for a processor."""
    fastest: dict[float, Raw] = {}
    for point in points:
        if point["seconds"] < fastest.get(point["value"], {"seconds": math.inf})["seconds"]:
            fastest[point["value"]] = point
    waited = {value: point.get("waited", 0.0) for value, point in fastest.items()}
    worst = max(waited, key=lambda value: waited[value], default=None)
    if worst is not None and waited[worst] > CONTENTION_SHARE:
        yield make_warning(
            "scaling_contention",
            f"the sweep's loop with {worst:g} waited for a processor for {waited[worst]:.0%} of its time",
            "end other work on the machine while it measures",
        )


def _job_not_projected(unit: str) -> WarningRows:
    yield make_warning(
        "job_not_projected",
        f"the full job isn't projected: nothing said how many {unit} a second are done",
        f'report them by paceline.count("{unit}"), or sweep over that parameter',
    )
