"""How many processes of a case fit side by side: by the memory that one of them took, of devices and host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..document_building.device_use import device_rows
from ..measurement import TimedRepetition

# Of a device's or the host's memory; the rest is for what isn't seen here.
USABLE_SHARE = 0.9
# What a process holds of a device beside PyTorch's memory: the driver's context, kernels and libraries.
CONTEXT_BYTES = 3 * 2**29


def count_fitting(timed: Sequence[TimedRepetition], wanted: int) -> int:
    """Return how many of `wanted` processes may run at once, 1 at least, as the repetitions tell."""
    fitting = (share for repetition in timed for share in _memory_shares(repetition))
    return max(1, int(min((wanted, *fitting))))


def _memory_shares(repetition: TimedRepetition) -> Iterator[float]:
    """Yield how many times what the repetition took fits into each kind of memory."""
    environment = repetition.environment
    resident = repetition.sampler.peak(repetition.window[1])
    if resident and environment["memory_bytes"]:
        yield USABLE_SHARE * environment["memory_bytes"] / resident
    if environment["path"] == "cuda":
        smallest = min((gpu["memory_bytes"] for gpu in environment["gpus"]), default=0)
        taken = _device_bytes(repetition)
        yield USABLE_SHARE * smallest / taken if taken else 1.0


def _device_bytes(repetition: TimedRepetition) -> float | None:
    """Return the most that was taken of one device, others' memory there included; None if unknown."""
    held = [result["device_memory"] for result in repetition.ranks or (repetition.result,)]
    if None in held:
        return None
    read = [row["peak"] for row in device_rows(repetition, "gpu_memory") if row["peak"] is not None]
    return float(max([*(memory["reserved"] + CONTEXT_BYTES for memory in held), *read]))
