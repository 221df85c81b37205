"""Tests claims: measures two cases in turn, A B B A, and judges their paired ratios.

Every measurement is one fresh process through the protocol, so that a claim is judged by the same numbers as
a run. The order cancels what drifts: a machine that warms up slows both sides down alike.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import document, metrics, process_environment, protocol
from .benchmarks import Benchmark, Case, case_key
from .claims import SECONDS_PER, TOLERANCE, Claim, ClaimResult, Estimate, shows_no_difference
from .document import Document
from .limits import SWEEP_METRICS
from .measurement import MeasurementRequest
from .statistics import median, median_interval
from .toml_table import Scalar
from .units import format_count
from .watching import nvml
from .watching.process import MeasurementError

RELIABLE_PAIRS = 3
"""Pairs below which a verdict about a ratio is in doubt."""

PrintMessage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ClaimBench:
    """Measures claims about a benchmark, each by so many pairs.

    `documents` and `counted_documents` keep what was measured, for the next claim about the same cases.
    """

    benchmark: Benchmark
    folder: Path
    quick: bool
    pairs: int
    print_message: PrintMessage
    documents: dict[str, list[list[Document]]] = field(default_factory=dict)
    counted_documents: dict[str, Document] = field(default_factory=dict)

    def measure_in_turn(self, claim: Claim, cases: Sequence[Mapping[str, Scalar]]) -> list[list[Document]]:
        """Measure the cases in turn, A B B A; return each one's documents, in the order of the pairs."""
        pairs = 1 if _is_measured_once(claim.metric) else self.pairs
        key = self.cache_key(claim, cases)
        if key not in self.documents:
            measured: list[list[Document]] = [[] for _ in cases]
            for pair in range(pairs):
                # What drifts over a pair drifts the other way over the next one.
                order = range(len(cases)) if pair % 2 == 0 else reversed(range(len(cases)))
                for side in order:
                    self.print_message(f"{claim.key}: {pair + 1} of {pairs}, {case_key(cases[side])}")
                    measured[side].append(self.measure_for_claim(claim, cases[side]))
            self.documents[key] = measured
        return self.documents[key]

    def cache_key(self, claim: Claim, cases: Sequence[Mapping[str, Scalar]]) -> str:
        """Return the key in `documents` for what was measured for a claim about these cases."""
        window = claim.warmup_steps, claim.steps
        kind = needs_counting(claim), _is_measured_once(claim.metric), _needs_sweep(claim)
        return repr((*map(case_key, cases), *window, *kind))

    def measure_for_claim(self, claim: Claim, params: Mapping[str, Scalar]) -> Document:
        """Measure a case for a claim; it is counted once, whichever claim asks for that."""
        if not needs_counting(claim):
            return self.measure_case(claim, params, False)
        counted = self.counted_documents.get(case_key(params))
        if counted is not None:
            return counted if _is_measured_once(claim.metric) else self.measure_case(claim, params, False)
        self.counted_documents[case_key(params)] = self.measure_case(claim, params, True)
        return self.counted_documents[case_key(params)]

    def counter_value(
        self, spelling: str, measurement: Document, params: Mapping[str, Scalar]
    ) -> float | None:
        """Return a counter of a case, from its document or from the one of it that was counted."""
        value = _metric_value(spelling, measurement)
        counted = self.counted_documents.get(case_key(params))
        return _metric_value(spelling, counted) if value is None and counted is not None else value

    def has_cuda(self) -> bool:
        """Return whether the measured process would see a device."""
        devices = nvml.probe_devices(process_environment.child_environment(self.benchmark))
        try:
            return bool(devices.visible)
        finally:
            devices.close()

    def conditions(self) -> str:
        """Return a sentence on the machine and the windows; empty where nothing was measured."""
        measured = [document for sides in self.documents.values() for side in sides for document in side]
        if not measured:
            return ""
        environment = measured[0].environment
        features = " ".join(environment.get("cpu_features") or ())
        names = [f"{environment['cpu_model']}{f' ({features})' if features else ''}"]
        names += sorted({str(gpu["name"]) for document in measured for gpu in document.environment["gpus"]})
        cores = format_count(len(environment["affinity"] or ()) or environment["cpu_count"], "core")
        windows = f"{'quick' if self.quick else 'standard'} windows where a claim has none"
        torch = f", torch {environment['torch']}" if environment["torch"] else ""
        return f"Measured on {' and '.join(names)}, {cores}{torch}, in {windows}."

    def measure_case(self, claim: Claim, params: Mapping[str, Scalar], counts: bool) -> Document:
        """Measure one case in one timed process, and, if it `counts`, in one that counts."""
        benchmark = replace(
            self.benchmark,
            warmup_steps=_value_or_default(claim.warmup_steps, self.benchmark.warmup_steps),
            steps=_value_or_default(claim.steps, self.benchmark.steps),
            repetitions=1,
            countings=int(counts),
            guard={},
            limits=(),
            scaling=self.benchmark.scaling if _needs_sweep(claim) else None,
            job=None,
        )
        request = MeasurementRequest(benchmark, self._case(params), self.folder, self.quick)
        # What so many processes print would bury the table; of one that fails the last lines are kept.
        with contextlib.redirect_stderr(io.StringIO()):
            raw = protocol.measure_case(request, _ignore_progress)
        return document.read_document(json.dumps(raw))

    def _case(self, params: Mapping[str, Scalar]) -> Case:
        quick = self.benchmark.quick.params if self.quick else None
        merged = {**self.benchmark.params, **(quick or {}), **params}
        return Case(merged, case_key(merged))


def judge_claim(claim: Claim, bench: ClaimBench) -> ClaimResult:
    """Measure a claim and judge it; a claim that can't be measured here gets a reason in place of figures."""
    if claim.untestable is not None or claim.after is None:
        return _untestable_result(claim, str(claim.untestable))
    if claim.needs_cuda and not bench.has_cuda():
        return _untestable_result(claim, "there is no CUDA device")
    try:
        if claim.before is None:
            return _judge_single_case(claim, bench, claim.after)
        return _judge_comparison(claim, bench, claim.before, claim.after)
    except MeasurementError as failure:
        # A case may be refused on this machine, as compiling is without a compiler: its last line says why.
        lines = failure.output.splitlines()
        return _untestable_result(claim, lines[-1] if lines else str(failure))


def _untestable_result(claim: Claim, reason: str) -> ClaimResult:
    return ClaimResult(claim, f"not testable here: {reason}")


def _judge_comparison(claim: Claim, bench: ClaimBench, *cases: Mapping[str, Scalar]) -> ClaimResult:
    before, after = bench.measure_in_turn(claim, cases)
    sides = [[_metric_value(claim.metric, measurement) for measurement in side] for side in (before, after)]
    if None in sides[0] or None in sides[1]:
        return _untestable_result(claim, f"{claim.metric} was not measured")
    estimate = _paired_ratio(sides[0], sides[1], _better_direction(claim.metric))
    if estimate is None:
        return _untestable_result(claim, f"{claim.metric} was 0")
    unsure = "?" if len(before) < RELIABLE_PAIRS and not _is_measured_once(claim.metric) else ""
    return ClaimResult(
        claim,
        judge_estimate(claim, estimate) + unsure,
        estimate,
        phase=_phase_ratio(claim, before, after),
        counter=_counter_values(claim, bench, zip(cases, (before[0], after[0]), strict=True)),
        measurements=len(before) + len(after),
        disturbed=_count_disturbed([*before, *after]),
    )


def _judge_single_case(claim: Claim, bench: ClaimBench, case: Mapping[str, Scalar]) -> ClaimResult:
    (documents,) = bench.measure_in_turn(claim, [case])
    first = documents[0].metric(*_split_spelling(claim.metric))
    values = [_metric_value(claim.metric, measurement) for measurement in documents]
    scaled = [value * claim.factor for value in values if value is not None]
    if len(scaled) < len(values):
        return _untestable_result(claim, f"{claim.metric} was not measured")
    estimate = _median_estimate(scaled)
    if len(scaled) == 1 and first is not None and first.low is not None and first.high is not None:
        estimate = Estimate(first.value, first.low, first.high)
    counter = bench.counter_value(claim.counter, documents[0], case) if claim.counter else None
    return ClaimResult(
        claim,
        judge_estimate(claim, estimate),
        estimate,
        unit=claim.unit or (first.unit if first is not None else "s"),
        counter=None if counter is None else (counter, None),
        measurements=len(documents),
        disturbed=_count_disturbed(documents),
    )


def judge_estimate(claim: Claim, estimate: Estimate) -> str:
    """Judge a measurement by its claim: holds, smaller, larger, none or opposite.

    A claim about one case that names no number is `measured`.
    """
    low, high = claim.low, claim.high
    if claim.before is None:
        return _judge_value(estimate, low, high)
    if claim.direction == "same":
        assert high is not None  # noqa: S101  # the file of claims was checked
        return _judge_sameness(estimate, high)
    if claim.direction == "worse":
        estimate = Estimate(1 / estimate.value, 1 / estimate.high, 1 / estimate.low)
    if shows_no_difference(estimate):
        return "none"
    if estimate.value < 1:
        return "opposite"
    if low is None or estimate.value >= 1 + (low - 1) * (1 - TOLERANCE) or estimate.high >= low:
        return "holds"
    return "smaller"


def _judge_value(estimate: Estimate, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "measured"
    if estimate.high < low - TOLERANCE * abs(low):
        return "smaller"
    return "larger" if estimate.low > high + TOLERANCE * abs(high) else "holds"


def _judge_sameness(estimate: Estimate, bound: float) -> str:
    if estimate.low > bound:
        return "larger"
    return "opposite" if estimate.high < 1 / bound else "holds"


def _split_spelling(spelling: str) -> tuple[str, str | None]:
    name, _, phase = spelling.partition(":")
    return name, phase or None


def _better_direction(spelling: str) -> str:
    metric = metrics.describe_metric(_split_spelling(spelling)[0])
    return metric.better if metric is not None else "lower"


def _is_measured_once(spelling: str) -> bool:
    """Return whether a single measurement is enough: of a counter, or a sweep with its own repetitions."""
    metric = metrics.describe_metric(_split_spelling(spelling)[0])
    if metric is None or spelling.startswith("count."):
        return False
    return metric.kind == "counter" or metric.name.startswith(SWEEP_METRICS)


def _needs_sweep(claim: Claim) -> bool:
    return claim.metric.startswith(SWEEP_METRICS)


def needs_counting(claim: Claim) -> bool:
    """Return whether a claim needs a case to be counted."""
    names = [spelling for spelling in (claim.metric, claim.counter) if spelling]
    return any(_is_measured_once(spelling) and not spelling.startswith(SWEEP_METRICS) for spelling in names)


def _metric_value(spelling: str, measurement: Document) -> float | None:
    """Return a metric's value; a counter that a phase has nothing of is 0."""
    name, phase = _split_spelling(spelling)
    if name.startswith(SECONDS_PER):
        count = measurement.metric(f"count.{name.removeprefix(SECONDS_PER)}")
        step = measurement.metric("step_time")
        return step.value / count.value if step is not None and count is not None and count.value else None
    value = measurement.metric(name, phase)
    if value is None and phase is not None and measurement.metric(name) is not None:
        return 0.0
    return None if value is None else value.value


def _paired_ratio(
    before: Sequence[float | None], after: Sequence[float | None], better: str
) -> Estimate | None:
    """Return how many times better `after` is, pair by pair; None where a side is not above 0."""
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a is not None and b is not None]
    if any(a <= 0 or b <= 0 for a, b in pairs):
        return None
    return _median_estimate([b / a if better == "higher" else a / b for a, b in pairs])


def _median_estimate(values: Sequence[float]) -> Estimate:
    low, high = median_interval(values) or (min(values), max(values))
    return Estimate(median(values), low, high)


def _phase_ratio(claim: Claim, before: Sequence[Document], after: Sequence[Document]) -> Estimate | None:
    if claim.phase is None:
        return None
    spelling = f"phase_time:{claim.phase}"
    sides = [[_metric_value(spelling, measurement) for measurement in side] for side in (before, after)]
    return None if None in sides[0] or None in sides[1] else _paired_ratio(sides[0], sides[1], "lower")


def _counter_values(
    claim: Claim, bench: ClaimBench, sides: Iterable[tuple[Mapping[str, Scalar], Document]]
) -> tuple[float, float] | None:
    if claim.counter is None:
        return None
    values = [bench.counter_value(claim.counter, measurement, case) for case, measurement in sides]
    return None if values[0] is None or values[1] is None else (values[0], values[1])


def _count_disturbed(documents: Sequence[Document]) -> int:
    return sum(
        any(warning.code == "processor_contention" for warning in measurement.warnings)
        for measurement in documents
    )


def _value_or_default(value: int | None, default: int) -> int:
    return default if value is None else value


def _ignore_progress(fraction: float, text: str) -> None:
    """Take the protocol's progress, in whose place the claims print their own."""
