"""Measures the check's own workloads through the protocol, as any benchmark is measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from .. import document, metrics, protocol
from ..document import Document
from ..manifest.benchmarks import Benchmark, QuickSettings, make_case
from ..manifest.toml_table import Scalar
from ..measurement import MeasurementRequest
from ..protocol import process_environment
from ..watching import nvml
from .findings import LeftOutError

WORKLOADS = Path(__file__).parent / "workloads"
TIME_LIMIT = 120
# Of a phase's metrics those that its row doesn't tell.
PHASE_METRICS = frozenset({"host_device_copies", "synchronisations", "scalar_reads"})


@dataclass(slots=True)
class Workbench:
    """What the parts share: until when they may run, whether there is a device, what was measured so far.

    `begin_until` is when a part's share of the time ends: what it began before may end later.
    """

    deadline: float
    folder: Path
    has_cuda: bool = False
    begin_until: float = math.inf
    documents: list[dict[str, Any]] = field(default_factory=list)

    def seconds_left(self) -> float:
        return self.deadline - perf_counter()

    def is_over(self) -> bool:
        """Whether the check's own end cut short what was being measured: limits are whole seconds."""
        return self.seconds_left() < 1

    def may_begin(self, seconds: float) -> bool:
        """Whether so much time is left, and some of the part's share."""
        return self.seconds_left() >= seconds and perf_counter() < self.begin_until

    def need_cuda(self) -> None:
        if not self.has_cuda:
            raise LeftOutError("there is no CUDA device, or torch can't use it")

    def measure(
        self,
        workload: str,
        steps: int,
        *,
        warmup_steps: int,
        countings: int = 0,
        auto: bool = False,
        processes: int = 1,
        trace: Path | None = None,
        **params: Scalar,
    ) -> Document:
        """Measure a file of `workloads` in one repetition; raises MeasurementError.

        Where its trace is to be kept it is also profiled. Ranks are seen as in any script.
        """
        benchmark = make_workload(workload, steps, warmup_steps, countings)
        limit = int(min(TIME_LIMIT, max(self.seconds_left(), 1)))
        benchmark = replace(benchmark, auto=auto or processes > 1, processes=processes, time_limit=limit)
        request = MeasurementRequest(benchmark, make_case(params), WORKLOADS, quick=True)
        return self.measure_request(replace(request, profile_device=trace is not None, trace=trace))

    def measure_request(self, request: MeasurementRequest) -> Document:
        """Measure and keep what counts of the document."""
        raw = protocol.measure_case(request, _ignore_progress)
        measured = document.read_document(json.dumps(raw))
        self.documents.append(shorten_document(raw))
        return measured


def make_workload(name: str, steps: int, warmup_steps: int, countings: int) -> Benchmark:
    """A workload as a benchmark of one repetition."""
    case = make_case({})
    return Benchmark(
        name=name,
        version=1,
        script=f"{name}.py",
        cases=(case,),
        params={},
        warmup_steps=warmup_steps,
        steps=steps,
        counting_steps=min(10, steps),
        counting_warmup_steps=min(5, warmup_steps),
        countings=countings,
        repetitions=1,
        seed=0,
        threads=1,
        time_limit=TIME_LIMIT,
        headline=metrics.DEFAULT_HEADLINE,
        guard={},
        auto=False,
        quick=QuickSettings(),
    )


def visible_devices() -> nvml.Devices:
    """The devices that a measured process would see; the caller closes them."""
    return nvml.probe_devices(process_environment.child_environment(make_workload("known_work", 1, 0, 0)))


def shorten_document(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A document without what is long and tells nothing about the host, such as series and histograms."""
    kept = {
        name: raw[name]
        for name in (
            *("benchmark", "protocol", "environment", "metrics", "phases", "warnings"),
            *("device_profile", "device_use", "ranks"),
        )
        if name in raw
    }
    kept["environment"] = {name: value for name, value in kept["environment"].items() if name != "packages"}
    kept["metrics"] = [
        {name: row[name] for name in ("name", "phase", "unit", "value", "low", "high", "exact")}
        for row in raw["metrics"]
        if row["phase"] is None or row["name"] in PHASE_METRICS
    ]
    kept["telemetry"] = [
        {name: row[name] for name in ("channel", "device", "unit", "mean", "peak", "idle_share")}
        for row in raw["telemetry"]
    ]
    profile = raw.get("profile")
    if profile:
        kept["functions"] = profile["functions"][:10]
        kept["operations"] = [
            {name: row[name] for name in ("name", "count", "seconds") if name in row}
            for row in profile["operations"][:10]
        ]
    return kept


def metric_value(measured: Document, name: str, phase: str | None = None) -> float | None:
    found = measured.metric(name, phase)
    return None if found is None else found.value


def _ignore_progress(_fraction: float, _text: str) -> None:
    """Each part says itself when it is done."""
