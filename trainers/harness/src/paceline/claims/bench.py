"""Measures the cases of claims: fresh processes in turn, A B B A, and what is counted, once each.

Every measurement goes through the same protocol as a run, so that a claim is judged by the same numbers. The
order cancels what drifts: a machine that warms up slows both sides down alike.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from .. import document, protocol
from ..document import Document
from ..manifest.benchmarks import Benchmark, Case, case_key
from ..measurement import MeasurementRequest
from ..protocol import process_environment
from ..units import format_count
from ..watching import nvml
from ..watching.measurement_errors import MeasurementError
from .claim import Claim, Comparison, Evidence, Params
from .unfinished import SideMeasurement, UnfinishedMeasurements

PrintMessage = Callable[[str], None]
Sides = list[list[Document]]
"""For each case of a comparison its documents, in the order of the pairs."""

BlockSide = tuple[Comparison, Params]
"""One side of a block: a case, and the comparison in whose window it is measured."""


@dataclass(frozen=True, slots=True)
class ClaimBench:
    """Measures comparisons of a benchmark's cases, each by so many pairs.

    `measured` keeps what was measured by the comparison's key, `counted` each counted case's document;
    `unfinished` keeps both in a file, for a call that goes on after this one was interrupted.
    """

    benchmark: Benchmark
    folder: Path
    quick: bool
    pairs: int
    print_message: PrintMessage
    unfinished: UnfinishedMeasurements = field(default_factory=UnfinishedMeasurements)
    cases_to_count: set[str] = field(default_factory=set)
    measured: dict[str, tuple[Comparison, Sides]] = field(default_factory=dict)
    counted: dict[str, Document] = field(default_factory=dict)

    def note_cases_to_count(self, claims: Iterable[Claim]) -> None:
        """Note which cases are to be counted when they are measured the first time."""
        for claim in claims:
            if claim.needs_counting:
                self.cases_to_count.update(map(case_key, claim.cases))

    def rounds(self, comparison: Comparison) -> int:
        """Return how often each case is measured: a sweep has repetitions of its own."""
        return 1 if comparison.sweeps else len(comparison.seeds) or self.pairs

    def measure_in_turn(self, comparison: Comparison, name: str) -> Sides:
        """Measure the cases in turn, A B B A, unless that was done; raises MeasurementError."""
        if comparison.key not in self.measured:
            measured: Sides = [[] for _ in comparison.cases]
            rounds = self.rounds(comparison)
            for number in range(rounds):
                # What drifts over a pair drifts the other way over the next one.
                order = range(len(measured))[:: -1 if number % 2 else 1]
                cases = [comparison.cases[side] for side in order]
                self.print_message(f"{name}: {number + 1} of {rounds}, {'; '.join(map(case_key, cases))}")
                block = self.measure_block([(comparison, case) for case in cases], number)
                for side, measurement in zip(order, block, strict=True):
                    if isinstance(measurement, MeasurementError):
                        raise measurement
                    measured[side].append(measurement)
            self.keep(comparison, measured)
        return self.measured[comparison.key][1]

    def keep(self, comparison: Comparison, sides: Sides) -> None:
        """Keep what was measured of a comparison, for all claims that rest on it."""
        self.measured[comparison.key] = comparison, sides

    def documents_of(self, wanted: Comparison) -> list[Document]:
        """Return what all comparisons in the same window measured of this one's only case."""
        key = case_key(wanted.cases[0])
        documents = {
            id(row): row
            for comparison, sides in self.measured.values()
            if comparison.window == wanted.window
            for case, rows in zip(comparison.cases, sides, strict=True)
            if case_key(case) == key
            for row in rows
        }
        return list(documents.values())

    def measure_block(self, sides: Sequence[BlockSide], number: int) -> list[Document | MeasurementError]:
        """Measure the sides of a round one after the other, unless an interrupted call did.

        A side that failed has its error in its place; nothing of its block is kept for another call.
        """
        name = repr((number, [(case_key(case), comparison.window) for comparison, case in sides]))
        kept = self.unfinished.find_block(name)
        if kept is None:
            found = [self._measure_side(comparison, case, number) for comparison, case in sides]
            kept = [side for side in found if isinstance(side, SideMeasurement)]
            if len(kept) < len(found):
                return [side.document if isinstance(side, SideMeasurement) else side for side in found]
            self.unfinished.keep_block(name, kept)
        for (_, case), side in zip(sides, kept, strict=True):
            if side.is_counted:
                self.counted.setdefault(case_key(case), side.document)
        return [side.document for side in kept]

    def _measure_side(
        self, comparison: Comparison, case: Params, number: int
    ) -> SideMeasurement | MeasurementError:
        """Measure one case of a round, counted if no other measurement of it was."""
        key = case_key(case)
        counts = key in self.cases_to_count and key not in self.counted and not comparison.seeds
        seed = comparison.seeds[number] if comparison.seeds else None
        try:
            measured = self._measure_case(comparison, case, counts=counts, seed=seed)
        except MeasurementError as error:
            return error
        if counts:
            self.counted[key] = measured
        return SideMeasurement(measured, counts)

    def measure_uncounted(self, comparison: Comparison, case: Params) -> Document:
        """Measure one case outside of any round; raises MeasurementError."""
        return self._measure_case(comparison, case, counts=False)

    def count_case(self, case: Params) -> Document:
        """Return the document of the case in which it was counted; raises MeasurementError."""
        key = case_key(case)
        if key not in self.counted:
            self.print_message(f"counting {key}")
            quick = self.benchmark.as_quick()
            # Nobody looks at the times of this one.
            window = Comparison((case,), quick.warmup_steps, quick.steps)
            self.counted[key] = self._measure_case(window, case, counts=True)
        return self.counted[key]

    def has_cuda(self) -> bool:
        """Return whether the measured process would see a device."""
        devices = nvml.probe_devices(process_environment.child_environment(self.benchmark))
        try:
            return bool(devices.visible)
        finally:
            devices.close()

    def evidence(self, kind: str, samples: int, documents: list[Document]) -> Evidence:
        """Return what a verdict rests on, as these documents tell it."""
        return Evidence(
            kind=kind,
            samples=samples,
            measurements=len(documents),
            disturbed=sum(map(_waited_for_processor, documents)),
            windows="quick" if self.quick else "standard",
            machine=describe_machine(documents),
            day=datetime.now(UTC).strftime("%Y-%m-%d"),
        )

    def _measure_case(
        self, comparison: Comparison, case: Params, *, counts: bool, seed: int | None = None
    ) -> Document:
        """Measure one case in one timed process, and, if it `counts`, in one that counts."""
        own = self.benchmark
        benchmark = replace(
            own,
            warmup_steps=own.warmup_steps if comparison.warmup_steps is None else comparison.warmup_steps,
            steps=own.steps if comparison.steps is None else comparison.steps,
            seed=own.seed if seed is None else seed,
            repetitions=1,
            countings=int(counts),
            guard={},
            learning_seeds=(),
            limits=(),
            scaling=own.scaling if comparison.sweeps else None,
            job=None,
        )
        request = MeasurementRequest(benchmark, self._merged_case(case), self.folder, self.quick)
        # What so many processes print would bury the table; of one that fails the last lines are kept.
        with contextlib.redirect_stderr(io.StringIO()):
            raw = protocol.measure_case(request, _ignore_progress)
        return document.read_document(json.dumps(raw))

    def _merged_case(self, params: Params) -> Case:
        quick = self.benchmark.quick.params if self.quick else None
        merged = {**self.benchmark.params, **(quick or {}), **params}
        return Case(merged, case_key(merged))


def describe_machine(documents: list[Document]) -> str:
    """Return a line on the machine: processor with its features, devices, cores, torch."""
    environment = documents[0].environment
    features = " ".join(environment.get("cpu_features") or ())
    names = [f"{environment['cpu_model']}{f' ({features})' if features else ''}"]
    names += sorted({str(gpu["name"]) for document in documents for gpu in document.environment["gpus"]})
    cores = format_count(len(environment["affinity"] or ()) or environment["cpu_count"], "core")
    torch = f", torch {environment['torch']}" if environment["torch"] else ""
    return f"{' and '.join(names)}, {cores}{torch}"


def _waited_for_processor(measurement: Document) -> bool:
    return any(warning.code == "processor_contention" for warning in measurement.warnings)


def _ignore_progress(fraction: float, text: str) -> None:
    """Take the protocol's progress, in whose place the claims print their own."""
