"""Measures a case: fresh timed processes one after the other, the sweep, the counting ones, the document."""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from ..document_building import costs, counter_reuse, document_builder
from ..manifest import scaling
from ..manifest.script_arguments import format_arguments
from ..measured.plan import ProcessPlan
from ..measured.processor import CONTENTION_SHARE
from ..measurement import (
    CountingInputs,
    LearningProcess,
    Measurement,
    MeasurementRequest,
    ProfiledRepetition,
    TimedRepetition,
)
from ..watching import calibration, nvml
from ..watching.measurement_errors import (
    MeasurementError,
    NothingMeasuredError,
    TimeLimitError,
    TooFewStepsError,
)
from ..watching.output_forwarding import OutputForwarder
from ..watching.process import MeasuredProcess
from ..watching.process_tree import ProcessTree
from ..watching.sampler import Sampler
from . import process_environment, processor_affinity, profiled_repetition
from .enough_repetitions import is_precise_enough
from .fitting_processes import count_fitting

# A profiled repetition, with its trace, takes so many times as long as a timed one at most.
PROFILE_FACTOR = 3
# So long telemetry goes on behind the window of a training that keeps running.
SECONDS_BEHIND = 5.0

Progress = Callable[[float, str], None]


def measure_case(request: MeasurementRequest, progress: Progress) -> dict[str, Any]:
    """Measure a case and return its document, unchecked; raises MeasurementError.

    The time limit covers all of it, the counting processes included.
    """
    return document_builder.build_document(run_case(request, progress))


def run_case(request: MeasurementRequest, progress: Progress) -> Measurement:
    """Measure a case and return what it left; raises MeasurementError."""
    benchmark = request.benchmark
    missing = processor_affinity.missing_processors(benchmark)
    if missing:
        raise MeasurementError(
            f"{benchmark.name} wants processors that this process may not use: {missing}; "
            "change its affinity in the manifest"
        )
    # With another's turns between its own, it takes as long as both.
    now = perf_counter()
    began = now - costs.process_age()
    deadline = now + benchmark.time_limit * (2 if request.turns else 1)
    with tempfile.TemporaryDirectory(prefix="paceline-") as name, _probed_devices(request) as devices:
        runner = _CaseRunner(request, Path(name), devices, deadline, progress)
        timed, set_aside = runner.measure_repetitions()
        points = runner.measure_sweep()
        inputs = runner.find_counting_inputs(timed[0].environment)
        counted, uncounted = ([], None) if inputs.taken_from else runner.measure_counters(timed)
        learned = runner.measure_learning(timed)
        profiled = runner.measure_profile(timed, counted)
        return Measurement(
            request=request,
            timed=timed,
            set_aside=set_aside,
            counted=counted,
            points=points,
            driver=devices.driver,
            created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            learned=learned,
            inputs=inputs,
            stages=runner.stages,
            began=began,
            profiled=profiled,
            uncounted=uncounted,
        )


@contextmanager
def _probed_devices(request: MeasurementRequest) -> Iterator[nvml.Devices]:
    # A training that keeps running has no order of devices from us, and may choose them by numbers.
    if request.keep_running:
        environment = process_environment.unchanged_environment()
    else:
        environment = process_environment.child_environment(request.benchmark)
    devices = nvml.probe_devices(environment)
    try:
        yield devices
    finally:
        devices.close()


class _CaseRunner:
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
        self._numbers = itertools.count()
        self._calibration: float | None = None
        # A script by hand has no history, and may lie in a folder with anything beside it.
        self._shares_counting = bool(self._benchmark.countings) and request.arguments is None
        tree = counter_reuse.digest_tree(request.folder) if self._shares_counting else ""
        self._counting_key = counter_reuse.CountingKey(tree)
        self.stages: dict[str, float] = {}
        # The latest step after which something else took over to end them.
        self._succeeded_after: int | None = None
        self._sweep_runs = list(scaling.sweep_order(sweep)) if sweep else []
        # The counting processes run side by side and take about as long as one repetition.
        self._parts = request.benchmark.repetitions + len(self._sweep_runs) + 1
        self._parts += bool(request.benchmark.learning_seeds) + request.profile_device

    def measure_repetitions(self) -> tuple[list[TimedRepetition], list[TimedRepetition]]:
        """Measure the repetitions; those that other work disturbed are measured again, as often once more.

        Returns those that count and those that were set aside. What decides is how long the measured thread
        waited for a processor, never how fast the code was: that would make every commit look its best.
        """
        wanted = self._benchmark.repetitions
        # What takes turns would wait for a partner that doesn't come again.
        most = wanted if self._request.turns or self._request.keep_running else 2 * wanted
        timed: list[TimedRepetition] = []
        while len(timed) < wanted or (len(timed) < most and self._needs_another(timed)):
            timed.append(self.measure_repetition(len(timed)))
            if self._is_precise(timed):
                wanted = sum(repetition.waited <= CONTENTION_SHARE for repetition in timed)
                break
        calmest = sorted(timed, key=lambda repetition: max(repetition.waited, CONTENTION_SHARE))[:wanted]
        kept = [repetition for repetition in timed if repetition in calmest]
        aside = [repetition for repetition in timed if repetition not in calmest]
        return [replace(repetition, index=index) for index, repetition in enumerate(kept)], aside

    def _is_precise(self, timed: Sequence[TimedRepetition]) -> bool:
        """Whether the undisturbed repetitions narrow the step time down as far as the manifest wants."""
        if not self._benchmark.precision:
            return False
        undisturbed = [repetition for repetition in timed if repetition.waited <= CONTENTION_SHARE]
        times = [float(repetition.result["step_time"]["mean"]) for repetition in undisturbed]
        return is_precise_enough(times, self._benchmark.precision, self._benchmark.repetitions)

    def _needs_another(self, timed: Sequence[TimedRepetition]) -> bool:
        """Whether too few are undisturbed, and time is left for one more before the counting."""
        undisturbed = sum(repetition.waited <= CONTENTION_SHARE for repetition in timed)
        longest = max(repetition.took for repetition in timed)
        left = (3 + bool(self._benchmark.learning_seeds) + len(self._sweep_runs)) * longest
        return undisturbed < self._benchmark.repetitions and perf_counter() + left < self._deadline

    def measure_repetition(self, index: int) -> TimedRepetition:
        """Measure one repetition in a fresh process."""
        # What was measured after the repetition before stands before this one.
        began = perf_counter()
        before = calibration.measure_calibration() if self._calibration is None else self._calibration
        wanted = self._benchmark.repetitions
        text = f"repetition {index + 1} of {wanted}" if index < wanted else "a disturbed repetition again"
        # Before anything that the process may print: its last line is to stand last.
        self._report_progress(min(index, wanted - 1), text)
        with self._start_process(self._make_plan("timing"), f"repetition-{index}") as process:
            tree = ProcessTree(process.pid, process.launched_ranks)
            sampler = Sampler(tree, self._devices, process.started)
            with OutputForwarder(process.output, sys.stderr) as output:
                while not process.wait(sampler.until_next()):
                    # A training that goes on for days would fill the memory with what nobody reads.
                    if not (self._request.keep_running and process.seconds_past_window() > SECONDS_BEHIND):
                        sampler.sample(late=process.is_past_half())
                    output.forward()
                    self._check_process(process)
                    self._report_progress(min(index, wanted - 1) + process.progress_fraction(), text)
                ended = perf_counter()
                left = process.outcome()
        after = self._calibration = calibration.measure_calibration()
        after_steps = (left.get("step") or {}).get("succeeded_after")
        if after_steps is not None:
            self._succeeded_after = max(after_steps, self._succeeded_after or 0)
        return TimedRepetition(
            index=index,
            result=left["result"],
            environment=left["environment"],
            started=process.started,
            took=perf_counter() - began,
            ran=ended - process.started,
            calibration_before=before,
            calibration_after=after,
            sampler=sampler,
            step=left.get("step"),
            status=process.status,
            ranks=left.get("ranks", ()),
        )

    def measure_sweep(self) -> list[scaling.SweepPoint]:
        """Run the whole loop once for each value and repetition of the sweep, one after the other."""
        sweep = self._benchmark.scaling
        if sweep is None:
            return []
        with self._timed_stage(costs.SWEEP):
            return [
                self._measure_sweep_point(sweep, number, value, repetition)
                for number, (value, repetition) in enumerate(self._sweep_runs)
            ]

    @contextmanager
    def _timed_stage(self, name: str) -> Iterator[None]:
        began = perf_counter()
        try:
            yield
        finally:
            self.stages[name] = perf_counter() - began

    def _measure_sweep_point(
        self, sweep: scaling.Sweep, number: int, value: float, repetition: int
    ) -> scaling.SweepPoint:
        params = {**self._request.case.params, **sweep.params, sweep.parameter: value}
        text = f"{sweep.parameter} {value}, {number + 1} of {len(self._sweep_runs)} for scaling"
        plan = replace(
            self._make_plan("whole"),
            arguments=format_arguments(params, self._benchmark.arguments),
            warmup_steps=0,
            steps=1,
        )
        with (
            self._start_process(plan, f"whole-{number}") as process,
            OutputForwarder(process.output, sys.stderr) as output,
        ):
            try:
                while not process.wait(0.1):
                    output.forward()
                    self._check_process(process)
                    self._report_progress(self._benchmark.repetitions + number, text)
                left = process.outcome()
            except MeasurementError as error:
                kinds = (TimeLimitError, NothingMeasuredError, MeasurementError)
                kind = next(kind for kind in kinds if isinstance(error, kind))
                raise kind(f"with {sweep.parameter} {value}, {error}", error.output) from error
        return scaling.make_point(value, repetition, left["result"])

    def find_counting_inputs(self, environment: Mapping[str, Any]) -> CountingInputs:
        """What the counting depends on, and whether an earlier one depends on the same."""
        request = self._request
        if not self._shares_counting:
            return CountingInputs()
        warmup_steps = self._make_plan("counting").warmup_steps
        key = self._counting_key.digest(request, environment, self._devices.driver, warmup_steps)
        before = counter_reuse.read_counted_before(request.counted) if request.counted else None
        if before is None or not counter_reuse.has_same_inputs(before, key, request.folder):
            return CountingInputs(key)
        watched = [*self._benchmark.headline, *(bound.metric for bound in self._benchmark.limits)]
        taken = before if counter_reuse.has_reusable_counters(before, watched) else None
        return CountingInputs(key, taken, before)

    def measure_counters(
        self, timed: Sequence[TimedRepetition]
    ) -> tuple[list[Mapping[str, Any]], TooFewStepsError | None]:
        """Count in processes of their own; they run side by side, since nothing is timed there.

        A loop that is long enough for its timed window alone leaves nothing, and that is reported: what was
        timed before isn't lost. A script by hand raises TooFewStepsError: it is measured again, with the
        steps that it has.
        """
        plans = [self._make_plan("counting")] * self._benchmark.countings
        done = self._benchmark.repetitions + len(self._sweep_runs)
        with self._timed_stage(costs.COUNTING):
            try:
                return self._run_side_by_side(plans, "counting", done, timed), None
            except TooFewStepsError as short:
                if self._request.arguments is not None:
                    raise
                return [], short

    def measure_learning(self, timed: Sequence[TimedRepetition]) -> list[LearningProcess]:
        """Run the whole with the other seeds, side by side and untimed, for what is learned with them."""
        plans = [replace(self._make_plan("timing"), seed=seed) for seed in self._benchmark.learning_seeds]
        done = self._parts - 1 - self._request.profile_device
        with self._timed_stage(costs.LEARNING):
            results = self._run_side_by_side(plans, "learning with other seeds", done, timed)
        return [
            LearningProcess(plan.seed, result["quality"]) for plan, result in zip(plans, results, strict=True)
        ]

    def measure_profile(
        self, timed: Sequence[TimedRepetition], counted: Sequence[Mapping[str, Any]]
    ) -> ProfiledRepetition | None:
        """Profile a few steps in a process of their own; None where that wasn't asked for, or without torch.

        What goes wrong here is reported, and costs nothing that was measured before.
        """
        if not self._request.profile_device or not timed[0].environment["torch"]:
            return None
        longest = max(repetition.took for repetition in timed)
        if perf_counter() + PROFILE_FACTOR * longest > self._deadline:
            return ProfiledRepetition(problem="no time was left within the time limit")
        steps = profiled_repetition.choose_steps(self._benchmark, counted)
        if not steps:
            return ProfiledRepetition(problem="a step has more operations than a trace can hold")
        plan = replace(self._make_plan("profiling"), steps=steps)
        try:
            with (
                self._timed_stage(costs.PROFILED),
                self._start_process(plan, "profiling") as process,
            ):
                while not process.wait(0.1):
                    self._check_process(process)
                    done = self._parts - 1 + process.progress_fraction()
                    self._report_progress(done, "a profiled repetition")
                return profiled_repetition.read_profile(process, process.outcome(), self._request.trace)
        except MeasurementError as error:
            return ProfiledRepetition(problem=str(error))

    def _run_side_by_side(
        self, plans: Sequence[ProcessPlan], text: str, done: float, timed: Sequence[TimedRepetition]
    ) -> list[Mapping[str, Any]]:
        """Run as many at once as fit into the memory, as far as the repetitions before tell.

        What fails beside another, which may hold its port or file, runs again by itself.
        """
        most = count_fitting(timed, len(plans))
        # Two groups of ranks would ask for the same port, and a device may be for one process alone.
        have_ranks = self._benchmark.launcher or any(repetition.ranks for repetition in timed)
        if have_ranks or self._devices.are_exclusive():
            most = 1
        results: list[Mapping[str, Any]] = []
        for first in range(0, len(plans), most):
            together = plans[first : first + most]
            try:
                results += self._run_at_once(together, text, done)
            except (TimeLimitError, NothingMeasuredError):
                raise
            except MeasurementError:
                if len(together) == 1:
                    raise
                for plan in together:
                    results += self._run_at_once([plan], text, done)
        return results

    def _run_at_once(self, plans: Sequence[ProcessPlan], text: str, done: float) -> list[Mapping[str, Any]]:
        with ExitStack() as running:
            processes = [
                running.enter_context(self._start_process(plan, f"{plan.kind}-{next(self._numbers)}"))
                for plan in plans
            ]
            for process in processes:
                while not process.wait(0.1):
                    self._check_process(process)
                    self._report_progress(done + process.progress_fraction(), text)
            return [_with_start(process) for process in processes]

    def _start_process(self, plan: ProcessPlan, name: str) -> MeasuredProcess:
        folder = self._folder / name
        folder.mkdir()
        benchmark = replace(self._benchmark, seed=plan.seed)
        if plan.keep_running:
            environment = process_environment.unchanged_environment()
        else:
            environment = process_environment.child_environment(
                benchmark, self._request.folder, self._request.hash_seed
            )
        process = MeasuredProcess(plan, folder, environment)
        processor_affinity.pin_process(process.pid, self._benchmark)
        return process

    def _make_plan(self, kind: str) -> ProcessPlan:
        benchmark, timing = self._benchmark, kind == "timing"
        warmup_steps = benchmark.warmup_steps if timing else benchmark.counting_warmup_steps
        if self._succeeded_after is not None and not timing:
            warmup_steps = max(warmup_steps, self._warmup_behind_succession(self._succeeded_after))
        return ProcessPlan(
            kind=kind,
            script=benchmark.script,
            arguments=_script_arguments(self._request),
            folder=str(self._request.folder),
            warmup_steps=warmup_steps,
            steps=benchmark.steps if timing else benchmark.counting_steps,
            seed=benchmark.seed,
            result="",
            progress="",
            package="",
            parent=0,
            auto=benchmark.auto,
            turns=str(self._request.turns) if timing and self._request.turns else "",
            keep_running=self._request.keep_running,
            one_core=benchmark.threads == 1,
            module=benchmark.module,
            step=benchmark.step,
            notes_files=kind == "counting" and self._shares_counting,
            processes=benchmark.processes,
            launcher=list(benchmark.launcher),
            python_path=[str(self._request.folder.absolute() / name) for name in benchmark.python_path],
            working_directory=benchmark.working_directory,
        )

    def _warmup_behind_succession(self, succeeded_after: int) -> int:
        """In a shorter warm-up the steps of a pretraining would be counted, or profiled.

        As long as that of the times, unless two windows behind it take more steps than the times did.
        """
        benchmark = self._benchmark
        fitting = benchmark.warmup_steps + benchmark.steps - 2 * benchmark.counting_steps
        return min(benchmark.warmup_steps, max(fitting, succeeded_after + 1))

    def _check_process(self, process: MeasuredProcess) -> None:
        process.check_output()
        if not self._request.keep_running and perf_counter() > self._deadline:
            limit = (
                f"{self._benchmark.name} took longer than its time_limit of {self._benchmark.time_limit} s"
            )
            raise TimeLimitError(f"{limit}, {process.describe_lateness()}", process.tail())

    def _report_progress(self, done: float, text: str) -> None:
        self._progress(round(done / self._parts, 3), text)


def _with_start(process: MeasuredProcess) -> Mapping[str, Any]:
    """What the process left, with the moment of its start beside those of its windows."""
    result: Mapping[str, Any] = process.outcome()["result"]
    return {**result, "times": {**result.get("times", {}), "started": process.started}}


def _script_arguments(request: MeasurementRequest) -> list[str]:
    if request.arguments is not None:
        return list(request.arguments)
    return format_arguments(request.case.params, request.benchmark.arguments)
