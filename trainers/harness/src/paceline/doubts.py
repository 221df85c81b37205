"""Doubts about a run, told as warnings: what was seen, and what to do about it.

A warning that taints keeps the run out of judgement, so the thresholds for tainting are wide: a machine
that is merely busy makes a point less certain, and its interval already says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import counters, warmup
from .manifest import Benchmark, Guard
from .measured.processor import CONTENTION
from .statistics import mean, median
from .watching import nvml, usage

if TYPE_CHECKING:
    from .protocol import Timed

UNSTABLE, VERY_UNSTABLE = 0.15, 0.25
DRIFT, HEAVY_DRIFT = 0.15, 1.0
WARMUP_EXCESS = 0.15
FEW_STEPS = 30
SHORT_WINDOW = 0.5
MEMORY_PRESSURE = 0.9
COARSE_STEP = 20e-6
UNCERTAIN = 0.5  # of an exponent: the difference between linear and n log n, or worse

Raw = Mapping[str, Any]


def find(
    raw: Raw, timed: Sequence[Timed], counted: Sequence[Raw], benchmark: Benchmark
) -> list[dict[str, Any]]:
    """Return the document's warnings, those that taint first."""
    found = [
        *_unstable(raw["repetitions"]),
        *_drift(raw["repetitions"]),
        *_contention(raw),
        *_warmup(raw["repetitions"]),
        *_too_few(raw["repetitions"]),
        *_pressure(raw),
        *_inexact(counted),
        *_guards(raw["repetitions"], benchmark.guard),
        *_devices(raw, timed),
        *_dropped(timed),
        *_without_psutil(),
        *_limits(raw),
        *_scaling(raw, benchmark),
    ]
    return sorted(found, key=lambda warning: not warning["taints"])


def _warning(code: str, message: str, advice: str, *, taints: bool = False) -> dict[str, Any]:
    return {"code": code, "message": message, "advice": advice, "taints": taints}


def _unstable(repetitions: Sequence[Raw]) -> Iterator[dict[str, Any]]:
    rates = [row["throughput"] for row in repetitions]
    spread = (max(rates) - min(rates)) / median(rates)
    # One odd repetition doesn't move the median, half of them do.
    typical = median([abs(rate - median(rates)) for rate in rates]) / median(rates)
    if spread > UNSTABLE:
        yield _warning(
            "unstable_repetitions",
            f"throughput differs by {spread:.0%} between the repetitions",
            "measure on a quieter machine, or with longer windows",
            taints=typical > VERY_UNSTABLE,
        )


def _drift(repetitions: Sequence[Raw]) -> Iterator[dict[str, Any]]:
    loops = [row[name] for row in repetitions for name in ("calibration_before", "calibration_after")]
    drift = max(loops) / min(loops) - 1
    if drift > DRIFT:
        yield _warning(
            "calibration_drift",
            f"the same calibration loop took up to {drift:.0%} longer during this run",
            "look for other work on the machine, or for a clock that was lowered",
            taints=median(loops) / min(loops) - 1 > HEAVY_DRIFT,
        )


def _contention(raw: Raw) -> Iterator[dict[str, Any]]:
    aside = raw["set_aside"]
    if aside:
        worst = max(row["waited"] for row in aside)
        yield _warning(
            "repetitions_set_aside",
            f"{len(aside)} more than asked for {'was' if len(aside) == 1 else 'were'} measured, and the most "
            "disturbed set aside: other work had kept their thread from its processor for up to "
            f"{worst:.0%} of the window",
            "end other work on the machine while it measures",
        )
    share = median([row["waited"] for row in raw["repetitions"]])
    if share > CONTENTION:
        yield _warning(
            "processor_contention",
            f"the measured thread waited for a processor for {share:.0%} of the window",
            "end other work on the machine while it measures",
            # The time waited is in every step, and the caches were shared as well.
            taints=True,
        )


def _warmup(repetitions: Sequence[Raw]) -> Iterator[dict[str, Any]]:
    excesses = [
        excess
        for row in repetitions
        if (excess := warmup.excess(row["step_times"]["thinned"]["values"])) is not None
    ]
    if not excesses:
        return
    slower, faster = min(excesses) > WARMUP_EXCESS, max(excesses) < -WARMUP_EXCESS
    if slower or faster:
        yield _warning(
            "warmup_never_ended",
            f"the window's first tenth was {abs(median(excesses)):.0%} {'slower' if slower else 'faster'} "
            "than what follows it, in every repetition",
            "raise warmup_steps",
            taints=True,
        )


def _too_few(repetitions: Sequence[Raw]) -> Iterator[dict[str, Any]]:
    steps, seconds = repetitions[0]["steps"], median([row["seconds"] for row in repetitions])
    if len(repetitions) < 3 or steps < FEW_STEPS or seconds < SHORT_WINDOW:
        yield _warning(
            "too_few_samples",
            f"{len(repetitions)} repetitions of {steps} steps in {seconds:.2f} s say little about the noise",
            f"measure at least 3 repetitions, {FEW_STEPS} steps and {SHORT_WINDOW} s",
        )
    if seconds / steps < COARSE_STEP:
        yield _warning(
            "clock_resolution",
            f"a step takes {seconds / steps * 1e6:.1f} us, close to what measuring it costs",
            "let one step do more work",
        )


def _pressure(raw: Raw) -> Iterator[dict[str, Any]]:
    peaks = [row["peak_memory"] for row in raw["repetitions"] if row["peak_memory"] is not None]
    available = raw["environment"]["memory_bytes"]
    if peaks and available and max(peaks) > MEMORY_PRESSURE * available:
        yield _warning(
            "memory_pressure",
            f"the benchmark needed {max(peaks) / available:.0%} of the machine's memory",
            "measure it on a machine with more memory",
            taints=True,
        )
    held = [row["device_memory"]["reserved"] for row in raw["repetitions"] if row["device_memory"]]
    sizes = [gpu["memory_bytes"] for gpu in raw["environment"]["gpus"] if gpu["memory_bytes"]]
    if held and sizes and max(held) > MEMORY_PRESSURE * max(sizes):
        yield _warning(
            "memory_pressure",
            f"PyTorch held {max(held) / max(sizes):.0%} of the device's memory",
            "measure it on a device with more memory, or with smaller batches",
            taints=True,
        )


def _inexact(counted: Sequence[Raw]) -> Iterator[dict[str, Any]]:
    names = counters.inexact(counted)
    if names:
        yield _warning(
            "counters_inexact",
            f"two countings differ in {', '.join(names)}",
            "seed every random generator, and look for work that depends on time or on threads",
        )


def _guards(repetitions: Sequence[Raw], guards: Mapping[str, Guard]) -> Iterator[dict[str, Any]]:
    for name, guard in guards.items():
        values = [row["quality"][name] for row in repetitions if name in row["quality"]]
        if not values:
            yield _warning(
                "quality_missing",
                f"the benchmark has a guard on {name} but never reported it",
                f'call paceline.quality("{name}", value) after the loop',
                taints=True,
            )
        elif (bound := _violated(guard, mean(values))) is not None:
            yield _warning(
                "quality_below_guard",
                f"{name} is {mean(values):.4g}, its guard is {bound}",
                "a speed that is reached without learning is no speed: look at what changed",
                taints=True,
            )


def _violated(guard: Guard, value: float) -> str | None:
    if guard.minimum is not None and value < guard.minimum:
        return f"at least {guard.minimum:g}"
    if guard.maximum is not None and value > guard.maximum:
        return f"at most {guard.maximum:g}"
    return None


def _devices(raw: Raw, timed: Sequence[Timed]) -> Iterator[dict[str, Any]]:
    if raw["environment"]["path"] != "cuda":
        return
    reasons = sorted({reason for one in timed for _, reason in one.sampler.throttling})
    if reasons:
        yield _warning(
            "throttling",
            f"a device held its clock down: {', '.join(reasons)}",
            "check its cooling and power limit",
            # At full load many devices are at their power limit all the time. Were they only now and then,
            # the clock would change.
            taints=reasons != [nvml.POWER_CAP],
        )
    lost = sorted({index for one in timed for index in one.sampler.lost})
    if lost:
        yield _warning(
            "device_lost",
            f"the driver lost device {', '.join(map(str, lost))}, its readings end there",
            "look for its error in the system's log, and restart the machine",
            taints=True,
        )
    strangers = sorted({pid for one in timed for _, pid in one.sampler.tenancy.strangers})
    if strangers:
        yield _warning(
            "co_tenant",
            f"{len(strangers)} other processes computed on the device",
            "measure on a device of its own",
            taints=True,
        )
    clocks = [
        row["mean"]
        for row in raw["telemetry"]
        if row["channel"] == "gpu_sm_clock" and row["mean"] is not None
    ]
    if clocks and max(clocks) > min(clocks) * (1 + DRIFT):
        yield _warning(
            "clock_change",
            f"the device's clock was between {min(clocks):.0f} and {max(clocks):.0f} MHz",
            "lock the device's clocks while measuring",
            taints=True,
        )


def _dropped(timed: Sequence[Timed]) -> Iterator[dict[str, Any]]:
    if any(one.result["dropped_phases"] for one in timed):
        yield _warning(
            "too_many_phases",
            "the code has more phases than are kept apart; the others' time is in the phases around them",
            "name phases by kind of work, not by data",
        )


def _without_psutil() -> Iterator[dict[str, Any]]:
    if not (usage.HAS_PROC or usage.HAS_PSUTIL):
        yield _warning(
            "psutil_missing",
            "this system has no /proc and the harness's environment no psutil: processes aren't read",
            "install psutil there",
        )


def _limits(raw: Raw) -> Iterator[dict[str, Any]]:
    on_device = raw["environment"]["path"] == "cuda"
    for row in raw["limits"]:
        name = f"{row['metric']}:{row['phase']}" if row["phase"] else row["metric"]
        if row["crossed"]:
            below = row["minimum"] is not None and row["value"] < row["minimum"]
            bound = f"at least {row['minimum']:g}" if below else f"at most {row['maximum']:g}"
            yield _warning(
                "limit_crossed",
                f"{name} is {row['value']:.4g}, its limit is {bound}",
                "look at what changed; if this is right now, move the limit in the manifest",
            )
        elif row["value"] is None and (
            on_device or not name.startswith(("gpu_", "device_", "phase_device_"))
        ):
            yield _warning(
                "limit_not_measured",
                f"there is a limit on {name}, which wasn't measured",
                "check the name of the metric and of its phase, and that the code reports it",
            )


def _scaling(raw: Raw, benchmark: Benchmark) -> Iterator[dict[str, Any]]:
    names = {row["name"] for row in raw.get("scaling", {}).get("exponents", ())}
    if "scaling" in raw and "scaling_exponent" not in names:
        shortest = min(row["seconds"] for row in raw["scaling"]["points"])
        yield _warning(
            "scaling_too_short",
            f"the sweep's shortest loop took {shortest * 1000:.2g} ms, too little to be timed",
            "sweep over larger values",
        )
    for row in raw.get("scaling", {}).get("exponents", ()):
        if (row["name"], row["phase"]) == ("scaling_exponent", None) and row["high"] - row["low"] > UNCERTAIN:
            yield _warning(
                "scaling_uncertain",
                f"the scaling exponent lies anywhere between {row['low']:.2f} and {row['high']:.2f}",
                "sweep over more values, larger ones, with more repetitions, on a quieter machine",
            )
    if benchmark.job is not None and "job" not in raw:
        yield _warning(
            "job_not_projected",
            f"the full job isn't projected: nothing said how many {benchmark.job.unit} a second are done",
            f'report them by paceline.count("{benchmark.job.unit}"), or sweep over that parameter',
        )
