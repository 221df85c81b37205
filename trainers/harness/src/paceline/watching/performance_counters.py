"""Tensor cores and memory bandwidth in use, from the counters that NVML's GPM reads (Hopper and later).

They need no profiler and no administrator, and cost nothing that a kernel would notice. A reading is the
difference of two samples, which must lie more than a tenth of a second apart.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

LEAST_INTERVAL = 0.15
# The channels, and the names of NVML's metrics.
COUNTERS = {
    "gpu_tensor_utilization": "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
    "gpu_memory_bandwidth": "NVML_GPM_METRIC_DRAM_BW_UTIL",
}
UNITS = dict.fromkeys(COUNTERS, "%")
KNOWN, NO_NVML, NOT_SUPPORTED, DIVIDED, FAILED = "known", "no_nvml", "not_supported", "divided", "failed"

# Of a run: they can be read, and the window was too short for a reading.
SHORT_WINDOW = "short_window"
# Seconds that surely hold one.
SHORTEST_WINDOW = 0.5

Values = dict[str, float | None]


@dataclass(slots=True)
class _Samples:
    before: Any
    taken: float | None = None
    spare: Any = None


@dataclass(slots=True)
class PerformanceCounters:
    """Reads the counters of devices; `status` says why they can't be read."""

    api: Any = None
    clock: Callable[[], float] = perf_counter
    status: str = NO_NVML
    _samples: dict[int, _Samples] = field(default_factory=dict)

    def read_counters(self, index: int, handle: Any, *, divided: bool) -> Values:
        """Return the means since the reading before, None where there was none or it is too near."""
        nothing: Values = dict.fromkeys(COUNTERS)
        if self.api is None or not hasattr(self.api, "nvmlGpmSampleGet"):
            return nothing
        if divided:
            self.status = DIVIDED
            return nothing
        try:
            return self._read_since_before(index, handle) or nothing
        except self.api.NVMLError as error:
            # An older driver, or a virtual device.
            absent = self.api.NVMLError_NotSupported, self.api.NVMLError_FunctionNotFound
            self.status = NOT_SUPPORTED if isinstance(error, absent) else FAILED
            return nothing

    def _read_since_before(self, index: int, handle: Any) -> Values | None:
        samples = self._samples.get(index)
        if samples is None:
            samples = self._samples[index] = _Samples(None)
            if not self.api.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                self.status = NOT_SUPPORTED
                return None
            samples.before, samples.spare = self.api.nvmlGpmSampleAlloc(), self.api.nvmlGpmSampleAlloc()
        now = self.clock()
        if samples.before is None or (samples.taken is not None and now - samples.taken < LEAST_INTERVAL):
            return None
        self.api.nvmlGpmSampleGet(handle, samples.spare)
        samples.before, samples.spare = samples.spare, samples.before
        first, samples.taken = samples.taken is None, now
        return None if first else self._compare_samples(samples)

    def _compare_samples(self, samples: _Samples) -> Values:
        asked = self.api.c_nvmlGpmMetricsGet_t()
        asked.version = self.api.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(COUNTERS)
        asked.sample1, asked.sample2 = samples.spare, samples.before
        for place, name in enumerate(COUNTERS.values()):
            asked.metrics[place].metricId = getattr(self.api, name)
        self.api.nvmlGpmMetricsGet(asked)
        self.status = KNOWN
        return {channel: _read_metric(asked.metrics[place]) for place, channel in enumerate(COUNTERS)}

    def close(self) -> None:
        """Free the samples."""
        for samples in self._samples.values():
            for sample in (samples.before, samples.spare):
                if sample is not None:
                    with contextlib.suppress(self.api.NVMLError):
                        self.api.nvmlGpmSampleFree(sample)
        self._samples.clear()


def _read_metric(metric: Any) -> float | None:
    """Return the value; None where NVML has none, or says so by a value that is no number."""
    value = float(metric.value)
    return value if metric.nvmlReturn == 0 and math.isfinite(value) else None
