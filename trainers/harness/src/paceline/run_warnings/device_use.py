"""Warnings about what was seen of devices: the profiler, the energy, the operations of the model."""

from __future__ import annotations

from ..measurement import ProfiledRepetition
from ..units import format_amount
from .warning import Raw, WarningRows, make_warning

# The counter of energy and the sampled power may differ by so much.
ENERGY_TOLERANCE = 0.1
LITTLE_EXPLAINED = 0.9


def device_use_warnings(raw: Raw, profiled: ProfiledRepetition | None) -> WarningRows:
    """Yield what was left open, and what can't be right."""
    if profiled is not None:
        yield from _profile_warnings(profiled)
        yield from _trace_warnings(profiled)
    use = raw.get("device_use", {})
    yield from _energy_warnings(use.get("energy"))
    yield from _flops_warnings(use.get("flops"))


def _profile_warnings(profiled: ProfiledRepetition) -> WarningRows:
    if profiled.error is not None:
        name = f" ({profiled.error.name})" if profiled.error.name else ""
        yield make_warning(
            "device_profiler_locked",
            f"no kernel could be seen: {profiled.error.sentence}{name}",
            profiled.error.advice,
        )
    elif profiled.profile is None:
        yield make_warning(
            "device_profile_missing",
            f"the profiled repetition tells nothing: {profiled.problem}"[:2000],
            "nothing else of the run depends on it",
        )
    elif profiled.profile["device"] == "cuda" and profiled.profile["explained"] < LITTLE_EXPLAINED:
        yield make_warning(
            "device_profile_unexplained",
            f"{1 - profiled.profile['explained']:.0%} of the device's time in profiled steps isn't explained",
            "look at the trace that --trace writes, and mark the phases that wait",
        )


def _trace_warnings(profiled: ProfiledRepetition) -> WarningRows:
    if profiled.unwritten:
        yield make_warning(
            "trace_not_written",
            f"the trace could not be written: {profiled.unwritten}"[:2000],
            "make room there, or name another folder by --trace; nothing else of the run depends on it",
        )


def _energy_warnings(energy: Raw | None) -> WarningRows:
    if energy is None or energy["step"] is None or not energy["sampled"]:
        return
    ratio = energy["step"] / energy["sampled"]
    if abs(ratio - 1) > ENERGY_TOLERANCE:
        yield make_warning(
            "energy_disagrees",
            f"the device's counter tells {format_amount(energy['step'], 'J')} a step, its sampled power "
            f"{format_amount(energy['sampled'], 'J')}",
            "measure a longer window; on many devices the power is a mean over a second",
        )


def _flops_warnings(flops: Raw | None) -> WarningRows:
    if flops is not None and flops["status"] == "impossible":
        yield make_warning(
            "model_flops_impossible",
            "the model's operations would need more than the device can do in that time, "
            f"{format_amount(flops['step'], 'FLOP')} a step",
            "look for operations that were counted and not done, or a type that isn't the one computed with",
        )
