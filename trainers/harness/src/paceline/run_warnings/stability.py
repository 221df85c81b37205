"""Warnings about how evenly the steps ran: between repetitions, within the window, beside other work."""

from __future__ import annotations

from collections.abc import Sequence

from ..measured.processor import CONTENTION_SHARE
from ..statistics import median
from ..units import format_count
from . import warmup
from .warning import Raw, WarningRows, make_warning

UNSTABLE, VERY_UNSTABLE = 0.15, 0.25
DRIFT, HEAVY_DRIFT = 0.15, 1.0
WARMUP_EXCESS = 0.15
# Of all processors' time in a window.
MUCH_STOLEN = 0.05
FEW_STEPS = 30
SHORT_WINDOW = 0.5
COARSE_STEP = 20e-6


def stability_warnings(raw: Raw) -> WarningRows:
    """Yield what makes the times of this run uncertain."""
    yield from _unstable_repetitions(raw["repetitions"])
    yield from _calibration_drift(raw["repetitions"])
    yield from _processor_contention(raw)
    yield from _stolen_processors(raw)
    yield from _unfinished_warmup(raw["repetitions"])
    yield from _too_few_samples(raw["repetitions"])


def _unstable_repetitions(repetitions: Sequence[Raw]) -> WarningRows:
    rates = [row["throughput"] for row in repetitions]
    spread = (max(rates) - min(rates)) / median(rates)
    # One odd repetition doesn't move the median, half of them do.
    typical = median([abs(rate - median(rates)) for rate in rates]) / median(rates)
    if spread > UNSTABLE:
        yield make_warning(
            "unstable_repetitions",
            f"throughput differs by {spread:.0%} between the repetitions",
            "measure on a quieter machine, or with longer windows",
            taints=typical > VERY_UNSTABLE,
        )


def _calibration_drift(repetitions: Sequence[Raw]) -> WarningRows:
    loops = [row[name] for row in repetitions for name in ("calibration_before", "calibration_after")]
    drift = max(loops) / min(loops) - 1
    if drift > DRIFT:
        yield make_warning(
            "calibration_drift",
            f"the same calibration loop took up to {drift:.0%} longer during this run",
            "look for other work on the machine, or for a clock that was lowered",
            taints=median(loops) / min(loops) - 1 > HEAVY_DRIFT,
        )


def _processor_contention(raw: Raw) -> WarningRows:
    aside = raw["set_aside"]
    if aside:
        worst = max(row["waited"] for row in aside)
        yield make_warning(
            "repetitions_set_aside",
            f"{len(aside)} more than asked for {'was' if len(aside) == 1 else 'were'} measured, and the most "
            "disturbed set aside: other work had kept their thread from its processor for up to "
            f"{worst:.0%} of the window",
            "end other work on the machine while it measures",
        )
    share = median([row["waited"] for row in raw["repetitions"]])
    if share > CONTENTION_SHARE:
        yield make_warning(
            "processor_contention",
            f"other work kept the measured thread from a processor for {share:.0%} of the window "
            "in the median repetition",
            "end other work on the machine while it measures",
            # The time waited is in every step, and the caches were shared as well.
            taints=True,
        )


def _stolen_processors(raw: Raw) -> WarningRows:
    """A thread whose processor the host takes away waits for none: no other warning knows."""
    share = median([row.get("stolen") or 0.0 for row in (*raw["repetitions"], *raw["set_aside"])])
    if share > MUCH_STOLEN:
        yield make_warning(
            "processor_stolen",
            f"the host of this virtual machine gave {share:.0%} of its processors' time to others",
            "measure on a machine with processors of its own: nothing on this one can end that",
        )


def _unfinished_warmup(repetitions: Sequence[Raw]) -> WarningRows:
    excesses = [
        excess
        for row in repetitions
        if (excess := warmup.warmup_excess(row["step_times"]["thinned"]["values"])) is not None
    ]
    if not excesses:
        return
    slower, faster = min(excesses) > WARMUP_EXCESS, max(excesses) < -WARMUP_EXCESS
    if slower or faster:
        yield make_warning(
            "warmup_never_ended",
            f"the window's first tenth was {abs(median(excesses)):.0%} {'slower' if slower else 'faster'} "
            "than what follows it, in every repetition",
            "raise warmup_steps",
            taints=True,
        )


def _too_few_samples(repetitions: Sequence[Raw]) -> WarningRows:
    steps, seconds = repetitions[0]["steps"], median([row["seconds"] for row in repetitions])
    if len(repetitions) < 3 or steps < FEW_STEPS or seconds < SHORT_WINDOW:
        yield make_warning(
            "too_few_samples",
            f"{format_count(len(repetitions), 'repetition')} of {format_count(steps, 'step')} "
            f"in {seconds:.2f} s {'says' if len(repetitions) == 1 else 'say'} little about the noise",
            f"measure at least 3 repetitions, {FEW_STEPS} steps and {SHORT_WINDOW} s",
        )
    if seconds / steps < COARSE_STEP:
        yield make_warning(
            "clock_resolution",
            f"a step takes {seconds / steps * 1e6:.1f} us, close to what measuring it costs",
            "let one step do more work",
        )
