"""Claims put to the test: two cases measured in turn, A B B A, and what their paired ratios say.

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

from . import document, metrics, protocol, surroundings
from .benchmarks import Benchmark, Case, case_key
from .claims import PER, TOLERANCE, Claim, Measured, Trial, is_none
from .document import Document
from .fields import Scalar
from .limits import SWEPT
from .measurement import MeasurementRequest
from .statistics import median, median_interval
from .watching import nvml
from .watching.process import MeasurementError

FEW = 3
"""Pairs below which a verdict about a ratio is in doubt."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bench:
    """Where claims are measured: a benchmark with its folder, and how many pairs each.

    What was measured for one claim serves the next one about the same cases too.
    """

    benchmark: Benchmark
    folder: Path
    quick: bool
    pairs: int
    say: Say
    known: dict[str, list[list[Document]]] = field(default_factory=dict)
    counted: dict[str, Document] = field(default_factory=dict)

    def rounds(self, claim: Claim, cases: Sequence[Mapping[str, Scalar]]) -> list[list[Document]]:
        """Measure the cases in turn, A B B A; return each one's documents, in the order of the pairs."""
        once = _repeats(claim.metric)
        key = self.key(claim, cases)
        if key not in self.known:
            found: list[list[Document]] = [[] for _ in cases]
            for pair in range(1 if once else self.pairs):
                # What drifts over a pair drifts the other way over the next one.
                order = range(len(cases)) if pair % 2 == 0 else reversed(range(len(cases)))
                for side in order:
                    self.say(
                        f"{claim.key}: {pair + 1} of {1 if once else self.pairs}, {case_key(cases[side])}"
                    )
                    found[side].append(self.take(claim, cases[side]))
            self.known[key] = found
        return self.known[key]

    def key(self, claim: Claim, cases: Sequence[Mapping[str, Scalar]]) -> str:
        """Return under which key `known` has what was measured for a claim about these cases."""
        how = (claim.warmup_steps, claim.steps, is_counted(claim), _repeats(claim.metric), _sweeps(claim))
        return repr((*map(case_key, cases), *how))

    def take(self, claim: Claim, params: Mapping[str, Scalar]) -> Document:
        """Measure a case for a claim; it is counted once, whichever claim asks for that."""
        if not is_counted(claim):
            return self.measure(claim, params, False)
        counted = self.counted.get(case_key(params))
        if counted is not None:
            return counted if _repeats(claim.metric) else self.measure(claim, params, False)
        self.counted[case_key(params)] = self.measure(claim, params, True)
        return self.counted[case_key(params)]

    def count(self, spelling: str, found: Document, params: Mapping[str, Scalar]) -> float | None:
        """Return a counter of a case: what one of its documents says, or the one that was counted."""
        value = _read(spelling, found)
        counted = self.counted.get(case_key(params))
        return _read(spelling, counted) if value is None and counted is not None else value

    def has_cuda(self) -> bool:
        """Return whether the measured process would see a device."""
        devices = nvml.probe_devices(surroundings.child_environment(self.benchmark))
        try:
            return bool(devices.visible)
        finally:
            devices.close()

    def measure(self, claim: Claim, params: Mapping[str, Scalar], counts: bool) -> Document:
        """Measure one case in one timed process, and, if it `counts`, in one that counts."""
        benchmark = replace(
            self.benchmark,
            warmup_steps=_or(claim.warmup_steps, self.benchmark.warmup_steps),
            steps=_or(claim.steps, self.benchmark.steps),
            repetitions=1,
            countings=int(counts),
            guard={},
            limits=(),
            scaling=self.benchmark.scaling if _sweeps(claim) else None,
            job=None,
        )
        request = MeasurementRequest(benchmark, self._case(params), self.folder, self.quick)
        # What so many processes print would bury the table; of one that fails the last lines are kept.
        with contextlib.redirect_stderr(io.StringIO()):
            raw = protocol.measure(request, _quietly)
        return document.read_document(json.dumps(raw))

    def _case(self, params: Mapping[str, Scalar]) -> Case:
        quick = self.benchmark.quick.params if self.quick else None
        merged = {**self.benchmark.params, **(quick or {}), **params}
        return Case(merged, case_key(merged))


def test(claim: Claim, bench: Bench) -> Trial:
    """Measure a claim and judge it; what can't be measured here gets its reason in place of figures."""
    if claim.untestable is not None or claim.after is None:
        return _impossible(claim, str(claim.untestable))
    if claim.needs_cuda and not bench.has_cuda():
        return _impossible(claim, "there is no CUDA device")
    try:
        if claim.before is None:
            return _look(claim, bench, claim.after)
        return _compare(claim, bench, claim.before, claim.after)
    except MeasurementError as failure:
        # A case may be refused on this machine, as compiling is without a compiler: its last line says why.
        said = failure.output.splitlines()
        return _impossible(claim, said[-1] if said else str(failure))


def _impossible(claim: Claim, reason: str) -> Trial:
    return Trial(claim, f"not testable here: {reason}")


def _compare(claim: Claim, bench: Bench, *cases: Mapping[str, Scalar]) -> Trial:
    before, after = bench.rounds(claim, cases)
    sides = [[_read(claim.metric, one) for one in side] for side in (before, after)]
    if None in sides[0] or None in sides[1]:
        return _impossible(claim, f"{claim.metric} was not measured")
    measured = _ratio(sides[0], sides[1], _better(claim.metric))
    if measured is None:
        return _impossible(claim, f"{claim.metric} was 0")
    unsure = "?" if len(before) < FEW and not _repeats(claim.metric) else ""
    return Trial(
        claim,
        verdict(claim, measured) + unsure,
        measured,
        phase=_phase(claim, before, after),
        counter=_counter(claim, bench, zip(cases, (before[0], after[0]), strict=True)),
        measurements=len(before) + len(after),
        disturbed=_disturbed([*before, *after]),
    )


def _look(claim: Claim, bench: Bench, case: Mapping[str, Scalar]) -> Trial:
    (found,) = bench.rounds(claim, [case])
    first = found[0].metric(*_place(claim.metric))
    values = [_read(claim.metric, one) for one in found]
    known = [value * claim.factor for value in values if value is not None]
    if len(known) < len(values):
        return _impossible(claim, f"{claim.metric} was not measured")
    measured = _spread(known)
    if len(known) == 1 and first is not None and first.low is not None and first.high is not None:
        measured = Measured(first.value, first.low, first.high)
    counter = bench.count(claim.counter, found[0], case) if claim.counter else None
    return Trial(
        claim,
        verdict(claim, measured),
        measured,
        unit=claim.unit or (first.unit if first is not None else "s"),
        counter=None if counter is None else (counter, None),
        measurements=len(found),
        disturbed=_disturbed(found),
    )


def verdict(claim: Claim, measured: Measured) -> str:
    """Judge a measurement by its claim: holds, smaller, larger, none or opposite.

    A claim about one case that names no number is `measured`.
    """
    low, high = claim.low, claim.high
    if claim.before is None:
        return _judge_value(measured, low, high)
    if claim.direction == "same":
        assert high is not None  # noqa: S101  # the file of claims was checked
        return _judge_sameness(measured, high)
    if claim.direction == "worse":
        measured = Measured(1 / measured.value, 1 / measured.high, 1 / measured.low)
    if is_none(measured):
        return "none"
    if measured.value < 1:
        return "opposite"
    if low is None or measured.value >= 1 + (low - 1) * (1 - TOLERANCE) or measured.high >= low:
        return "holds"
    return "smaller"


def _judge_value(measured: Measured, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "measured"
    if measured.high < low - TOLERANCE * abs(low):
        return "smaller"
    return "larger" if measured.low > high + TOLERANCE * abs(high) else "holds"


def _judge_sameness(measured: Measured, bound: float) -> str:
    if measured.low > bound:
        return "larger"
    return "opposite" if measured.high < 1 / bound else "holds"


def _place(spelling: str) -> tuple[str, str | None]:
    name, _, phase = spelling.partition(":")
    return name, phase or None


def _better(spelling: str) -> str:
    known = metrics.describe_metric(_place(spelling)[0])
    return known.better if known is not None else "lower"


def _repeats(spelling: str) -> bool:
    """Return whether one measurement says it all: a counter, or a sweep with its own repetitions."""
    known = metrics.describe_metric(_place(spelling)[0])
    if known is None or spelling.startswith("count."):
        return False
    return known.kind == "counter" or known.name.startswith(SWEPT)


def _sweeps(claim: Claim) -> bool:
    return claim.metric.startswith(SWEPT)


def is_counted(claim: Claim) -> bool:
    """Return whether a claim needs a case to be counted."""
    names = [spelling for spelling in (claim.metric, claim.counter) if spelling]
    return any(_repeats(spelling) and not spelling.startswith(SWEPT) for spelling in names)


def _read(spelling: str, found: Document) -> float | None:
    """Return a metric's value; a counter that a phase has nothing of is 0."""
    name, phase = _place(spelling)
    if name.startswith(PER):
        count = found.metric(f"count.{name.removeprefix(PER)}")
        step = found.metric("step_time")
        return step.value / count.value if step is not None and count is not None and count.value else None
    value = found.metric(name, phase)
    if value is None and phase is not None and found.metric(name) is not None:
        return 0.0
    return None if value is None else value.value


def _ratio(before: Sequence[float | None], after: Sequence[float | None], better: str) -> Measured | None:
    """Return how many times better `after` is, pair by pair; None where a side is not above 0."""
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a is not None and b is not None]
    if any(a <= 0 or b <= 0 for a, b in pairs):
        return None
    return _spread([b / a if better == "higher" else a / b for a, b in pairs])


def _spread(values: Sequence[float]) -> Measured:
    low, high = median_interval(values) or (min(values), max(values))
    return Measured(median(values), low, high)


def _phase(claim: Claim, before: Sequence[Document], after: Sequence[Document]) -> Measured | None:
    if claim.phase is None:
        return None
    spelling = f"phase_time:{claim.phase}"
    sides = [[_read(spelling, one) for one in side] for side in (before, after)]
    return None if None in sides[0] or None in sides[1] else _ratio(sides[0], sides[1], "lower")


def _counter(
    claim: Claim, bench: Bench, sides: Iterable[tuple[Mapping[str, Scalar], Document]]
) -> tuple[float, float] | None:
    if claim.counter is None:
        return None
    values = [bench.count(claim.counter, found, case) for case, found in sides]
    return None if values[0] is None or values[1] is None else (values[0], values[1])


def _disturbed(found: Sequence[Document]) -> int:
    return sum(any(doubt.code == "processor_contention" for doubt in one.warnings) for one in found)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _quietly(fraction: float, text: str) -> None:
    """The protocol's progress: a claim tells its own."""
