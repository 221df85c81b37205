"""How a case is measured: fresh processes one after the other, then the counting ones, then the document."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from . import assemble, scaling, surroundings
from .benchmarks import Benchmark
from .fields import Scalar
from .measured.plan import ProcessPlan
from .measured.processor import CONTENTION_SHARE
from .measurement import Measurement, MeasurementRequest, TimedRepetition
from .watching import calibration, nvml
from .watching.output_forwarding import OutputForwarder
from .watching.process import MeasuredProcess, MeasurementError
from .watching.process_tree import ProcessTree
from .watching.sampler import Sampler

Progress = Callable[[float, str], None]


def measure(request: MeasurementRequest, progress: Progress) -> dict[str, Any]:
    """Measure a case and return its document, unchecked; raises MeasurementError.

    The time limit covers all of it, the counting processes included.
    """
    benchmark = request.benchmark
    missing = surroundings.missing_processors(benchmark)
    if missing:
        raise MeasurementError(
            f"{benchmark.name} wants processors that this process may not use: {missing}; "
            "change its affinity in the manifest"
        )
    # With another's turns between its own, it takes as long as both.
    deadline = perf_counter() + benchmark.time_limit * (2 if request.turns else 1)
    with tempfile.TemporaryDirectory(prefix="paceline-") as name, _devices(benchmark) as devices:
        runner = _Runner(request, Path(name), devices, deadline, progress)
        timed, set_aside = runner.repeat()
        points = runner.sweep()
        counted = runner.count()
        created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        measured = Measurement(request, timed, set_aside, counted, points, devices.driver, created)
        return assemble.document(measured)


@contextmanager
def _devices(benchmark: Benchmark) -> Iterator[nvml.Devices]:
    devices = nvml.probe_devices(surroundings.child_environment(benchmark))
    try:
        yield devices
    finally:
        devices.close()


class _Runner:
    def __init__(
        self,
        request: MeasurementRequest,
        folder: Path,
        devices: nvml.Devices,
        deadline: float,
        progress: Progress,
    ) -> None:
        self._request = request
        self._benchmark = request.benchmark
        self._folder = folder
        self._devices = devices
        self._deadline = deadline
        self._progress = progress
        sweep = self._benchmark.scaling
        self._whole = list(scaling.order(sweep)) if sweep else []
        # The counting processes run side by side and take about as long as one repetition.
        self._parts = request.benchmark.repetitions + len(self._whole) + 1

    def repeat(self) -> tuple[list[TimedRepetition], list[TimedRepetition]]:
        """Measure the repetitions; those that other work disturbed are measured again, as often once more.

        Returns those that count and those that were set aside. What decides is how long the measured thread
        waited for a processor, never how fast the code was: that would make every commit look its best.
        """
        wanted = self._benchmark.repetitions
        # What takes turns would wait for a partner that doesn't come again.
        most = wanted if self._request.turns else 2 * wanted
        timed: list[TimedRepetition] = []
        while len(timed) < wanted or (len(timed) < most and self._is_worth_another(timed)):
            timed.append(self.time(len(timed)))
        calm = sorted(sorted(timed, key=lambda one: max(one.waited, CONTENTION_SHARE))[:wanted], key=_index)
        aside = [one for one in timed if one not in calm]
        return [replace(one, index=at) for at, one in enumerate(calm)], aside

    def _is_worth_another(self, timed: Sequence[TimedRepetition]) -> bool:
        """Are too few undisturbed, and is there time left for one more before the counting?"""
        calm = sum(one.waited <= CONTENTION_SHARE for one in timed)
        longest = max(one.took for one in timed)
        left = (3 + len(self._whole)) * longest
        return calm < self._benchmark.repetitions and perf_counter() + left < self._deadline

    def time(self, index: int) -> TimedRepetition:
        """Measure one repetition in a fresh process."""
        before, started = calibration.measure_calibration(), perf_counter()
        wanted = self._benchmark.repetitions
        text = f"repetition {index + 1} of {wanted}" if index < wanted else "a disturbed repetition again"
        # Before anything that the process may print: its last line is to stand last.
        self._tell(min(index, wanted - 1), text)
        with self._start(self._plan("timing"), f"repetition-{index}") as process:
            sampler = Sampler(ProcessTree(process.pid), self._devices, process.started)
            with OutputForwarder(process.output, sys.stderr) as echo:
                while not process.wait(sampler.until_next()):
                    sampler.sample(late=process.is_past_half())
                    echo.forward()
                    self._watch(process)
                    self._tell(min(index, wanted - 1) + process.progress_fraction(), text)
                left = process.outcome()
        after = calibration.measure_calibration()
        return TimedRepetition(
            index=index,
            result=left["result"],
            environment=left["environment"],
            started=process.started,
            took=perf_counter() - started,
            calibration_before=before,
            calibration_after=after,
            sampler=sampler,
        )

    def sweep(self) -> list[scaling.Point]:
        """Run the whole loop once for each value and repetition of the sweep, one after the other."""
        sweep = self._benchmark.scaling
        return [self._run_whole(sweep, at, *place) for at, place in enumerate(self._whole)] if sweep else []

    def _run_whole(self, sweep: scaling.Sweep, at: int, value: float, repetition: int) -> scaling.Point:
        params = {**self._request.case.params, **sweep.params, sweep.parameter: value}
        text = f"{sweep.parameter} {value}, {at + 1} of {len(self._whole)} for scaling"
        plan = replace(self._plan("whole"), arguments=arguments(params), warmup_steps=0, steps=1)
        with self._start(plan, f"whole-{at}") as process, OutputForwarder(process.output, sys.stderr) as echo:
            try:
                while not process.wait(0.1):
                    echo.forward()
                    self._watch(process)
                    self._tell(self._benchmark.repetitions + at, text)
                left = process.outcome()
            except MeasurementError as error:
                raise MeasurementError(f"with {sweep.parameter} {value}, {error}", error.output) from error
        return scaling.point(value, repetition, left["result"])

    def count(self) -> list[Mapping[str, Any]]:
        """Count in processes of their own; they run side by side, since nothing is timed there."""
        with ExitStack() as running:
            processes = [
                running.enter_context(self._start(self._plan("counting"), f"counting-{index}"))
                for index in range(self._benchmark.countings)
            ]
            for process in processes:
                while not process.wait(0.1):
                    self._watch(process)
                    self._tell(self._parts - 1 + process.progress_fraction(), "counting")
            return [process.outcome()["result"] for process in processes]

    def _start(self, plan: ProcessPlan, name: str) -> MeasuredProcess:
        folder = self._folder / name
        folder.mkdir()
        process = MeasuredProcess(plan, folder, surroundings.child_environment(self._benchmark))
        surroundings.pin(process.pid, self._benchmark)
        return process

    def _plan(self, kind: str) -> ProcessPlan:
        benchmark, timing = self._benchmark, kind == "timing"
        return ProcessPlan(
            kind=kind,
            script=benchmark.script,
            arguments=_arguments(self._request),
            folder=str(self._request.folder),
            warmup_steps=benchmark.warmup_steps if timing else benchmark.counting_warmup_steps,
            steps=benchmark.steps if timing else benchmark.counting_steps,
            seed=benchmark.seed,
            result="",
            progress="",
            package="",
            parent=0,
            auto=benchmark.auto,
            turns=str(self._request.turns) if timing and self._request.turns else "",
            one_core=benchmark.threads == 1,
        )

    def _watch(self, process: MeasuredProcess) -> None:
        process.check_output()
        if perf_counter() > self._deadline:
            limit = self._benchmark.time_limit
            raise MeasurementError(
                f"{self._benchmark.name} took longer than its time_limit of {limit} s, "
                "raise it or measure fewer steps",
                process.tail(),
            )

    def _tell(self, done: float, text: str) -> None:
        self._progress(round(done / self._parts, 3), text)


def _index(one: TimedRepetition) -> int:
    return one.index


def _arguments(request: MeasurementRequest) -> list[str]:
    return arguments(request.case.params) if request.arguments is None else list(request.arguments)


def arguments(params: Mapping[str, Scalar]) -> list[str]:
    """Spell parameters for a command line: `--batch-size 64`, `--fused`, `--no-fused`."""
    words: list[str] = []
    for name, value in params.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", str(value)]
    return words
