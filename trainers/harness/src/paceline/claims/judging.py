"""Judges a claim by what the bench measured: the paired ratios or the one case's values, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..document import Document
from ..statistics import median, median_interval
from ..watching.measurement_errors import MeasurementError, TimeLimitError
from .bench import ClaimBench
from .claim import Claim, ClaimResult, Comparison, Estimate, Params
from .readings import better_direction, is_derived, read_metric, reading_unit, split_spelling
from .verdicts import DOUBT, judge_estimate

RELIABLE_PAIRS = 3
"""Pairs below which a verdict about a ratio is in doubt."""


def judge_claim(claim: Claim, bench: ClaimBench) -> ClaimResult:
    """Judge a claim, measuring what the bench doesn't have yet.

    One that can't be measured here gets a reason in place of figures.
    """
    if claim.untestable is not None:
        return _untestable_result(claim, claim.untestable)
    if claim.needs_cuda and not bench.has_cuda():
        return _untestable_result(claim, "there is no CUDA device")
    try:
        if claim.before is None:
            return _judge_single_case(claim, bench)
        return _judge_counted(claim, bench) if claim.is_counted else _judge_comparison(claim, bench)
    except TimeLimitError as failure:
        return replace(_untestable_result(claim, str(failure)), too_slow=True)
    except MeasurementError as failure:
        # A case may be refused on this machine, as compiling is without a compiler: its last line says why.
        lines = failure.output.splitlines()
        return _untestable_result(claim, lines[-1] if lines else str(failure))


def _untestable_result(claim: Claim, reason: str) -> ClaimResult:
    return ClaimResult(claim, f"not testable here: {reason}")


def _judge_comparison(claim: Claim, bench: ClaimBench) -> ClaimResult:
    comparison = claim.main_comparison
    before, after = bench.measure_in_turn(comparison, claim.key)
    result = _judge_sides(claim, before, after)
    if result.measured is None:
        return result
    kind = "sweep" if comparison.sweeps else "seeds" if claim.seeds else "pairs"
    unsure = DOUBT if kind != "sweep" and len(before) < RELIABLE_PAIRS else ""
    equal, equal_documents = _equal_training_ratio(claim, bench)
    return replace(
        result,
        verdict=result.verdict + unsure,
        phase=_phase_ratio(claim, before, after),
        equal_training=equal,
        counter=_counter_values(claim, bench, (before[0], after[0])),
        evidence=bench.evidence(kind, len(before), [*before, *after, *equal_documents]),
    )


def _judge_counted(claim: Claim, bench: ClaimBench) -> ClaimResult:
    before, after = ([bench.count_case(case)] for case in claim.cases)
    result = _judge_sides(claim, before, after)
    if result.measured is None:
        return result
    counter = _counter_values(claim, bench, (before[0], after[0]))
    return replace(result, counter=counter, evidence=bench.evidence("counted", 1, [*before, *after]))


def _judge_sides(claim: Claim, before: Sequence[Document], after: Sequence[Document]) -> ClaimResult:
    sides = [[_metric_value(claim.metric, measured) for measured in side] for side in (before, after)]
    if None in sides[0] or None in sides[1]:
        return _untestable_result(claim, f"{claim.metric} was not measured")
    estimate = _paired_ratio(sides[0], sides[1], better_direction(claim.metric))
    if estimate is None:
        return _untestable_result(claim, f"{claim.metric} was 0")
    return ClaimResult(claim, judge_estimate(claim, estimate), estimate)


def _judge_single_case(claim: Claim, bench: ClaimBench) -> ClaimResult:
    comparison = claim.main_comparison
    kind = "counted" if claim.is_counted else "sweep" if comparison.sweeps else "runs"
    documents = _single_case_documents(claim, bench)
    values = [_metric_value(claim.metric, measured) for measured in documents]
    scaled = [value * claim.factor for value in values if value is not None]
    if len(scaled) < len(values):
        return _untestable_result(claim, f"{claim.metric} was not measured")
    first = None if is_derived(claim.metric) else documents[0].metric(*_name_and_phase(claim.metric))
    estimate = _median_estimate(scaled)
    if len(scaled) == 1 and first is not None and first.low is not None and first.high is not None:
        estimate = Estimate(scaled[0], first.low * claim.factor, first.high * claim.factor)
    counted = _counter_value(claim, bench, comparison.cases[0], documents[0])
    return ClaimResult(
        claim,
        judge_estimate(claim, estimate),
        estimate,
        unit=claim.unit or (first.unit if first is not None else reading_unit(claim.metric)),
        counter=None if counted is None else (counted, None),
        evidence=bench.evidence(kind, len(documents), documents),
    )


def _single_case_documents(claim: Claim, bench: ClaimBench) -> list[Document]:
    """Return the case's measurements: those of other claims' pairs in the same window, or its own."""
    comparison = claim.main_comparison
    if claim.is_counted:
        return [bench.count_case(comparison.cases[0])]
    found = bench.documents_of(comparison)
    if len(found) >= bench.rounds(comparison):
        return found
    return bench.measure_in_turn(comparison, claim.key)[0]


def _equal_training_ratio(claim: Claim, bench: ClaimBench) -> tuple[Estimate | None, list[Document]]:
    """Return the ratio between two cases with the same training, and what it rests on."""
    comparison: Comparison | None = claim.equal_comparison
    if comparison is None:
        return None, []
    before, after = bench.measure_in_turn(comparison, f"{claim.key}, same training")
    sides = [[_metric_value(claim.metric, measured) for measured in side] for side in (before, after)]
    ratio = _paired_ratio(sides[0], sides[1], better_direction(claim.metric))
    return ratio, [*before, *after]


def _name_and_phase(spelling: str) -> tuple[str, str | None]:
    name, phases = split_spelling(spelling)
    return name, phases[0] if phases else None


def _metric_value(spelling: str, measurement: Document) -> float | None:
    """Return a metric's value as claims spell it."""

    def find_value(name: str, phase: str | None) -> float | None:
        metric = measurement.metric(name, phase)
        return None if metric is None else metric.value

    return read_metric(spelling, find_value)


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
    sides = [[_metric_value(spelling, measured) for measured in side] for side in (before, after)]
    return None if None in sides[0] or None in sides[1] else _paired_ratio(sides[0], sides[1], "lower")


def _counter_values(
    claim: Claim, bench: ClaimBench, measured: tuple[Document, Document]
) -> tuple[float, float] | None:
    before, after = (
        _counter_value(claim, bench, case, own) for case, own in zip(claim.cases, measured, strict=True)
    )
    return None if before is None or after is None else (before, after)


def _counter_value(claim: Claim, bench: ClaimBench, case: Params, measured: Document) -> float | None:
    """Return the claim's counter of a case: as the code reports it in this document, or as it was counted."""
    if claim.counter is None:
        return None
    value = _metric_value(claim.counter, measured)
    return value if value is not None else _metric_value(claim.counter, bench.count_case(case))
