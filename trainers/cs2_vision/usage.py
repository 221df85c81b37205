"""How busy the vision service is: shares of short slices of time, its processor's and its GPU's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import torch

SLICE, GPU_SLICE = 0.01, 0.2
"""Seconds of a slice. NVML's own figure is a mean over up to a second, so shorter ones say nothing new."""

KEPT = 50_000
"""Slices that are kept at most, where nobody asks for them."""


class Slices:
    """A thread that reads a share in per cent once for each slice."""

    def __init__(self, read: Callable[[], float], seconds: float) -> None:
        self.read = read
        self.seconds = seconds
        self.shares: list[float] = []
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            time.sleep(self.seconds)
            if len(self.shares) < KEPT:
                self.shares.append(round(self.read(), 1))

    def take(self) -> list[float]:
        """The slices since the last time."""
        taken, self.shares = self.shares, []
        return taken


class ProcessorShare:
    """Reads how much of one processor this process used since the last time, in per cent."""

    def __init__(self) -> None:
        self.used, self.at = time.process_time(), time.perf_counter()

    def __call__(self) -> float:
        used, at = time.process_time(), time.perf_counter()
        share = 100 * (used - self.used) / max(1e-9, at - self.at)
        self.used, self.at = used, at
        return share


def watch(device: torch.device) -> dict[str, Slices]:
    """The slices of this process's processor, and of the GPU where there are one and the package of NVML."""
    found = {"service": Slices(ProcessorShare(), SLICE)}
    if device.type == "cuda":
        try:
            torch.cuda.utilization()
        except ModuleNotFoundError:
            return found
        found["gpu"] = Slices(lambda: float(torch.cuda.utilization()), GPU_SLICE)
    return found
