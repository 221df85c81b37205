"""Tries a script: starts it as a measurement would, watches its first steps come, and ends it."""

from __future__ import annotations

import enum
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from .. import metrics
from ..manifest.benchmarks import Benchmark, QuickSettings, make_case
from ..measured.plan import ProcessPlan
from ..protocol import process_environment
from ..units import format_count
from ..watching.measurement_errors import MeasurementError, TooFewStepsError
from ..watching.process import MeasuredProcess
from .candidates import Candidate
from .window import Window

FIRST_STEP_SECONDS = 45.0  # until the first step
WATCHED_SECONDS = 6.0  # after it
LEAST_WATCHED_STEPS = 6
MOST_WATCHED_SECONDS = 30.0  # where steps take seconds
POLL_SECONDS = 0.02
# A script that fails behind fewer has only just begun.
LEAST_STEPS_BEFORE_FAILURE = 30
# Steps that no script takes before it is ended.
ENDLESS_STEPS = 1_000_000
_MISSING_FILE = re.compile(
    r"FileNotFoundError|No such file or directory|[Dd]ata(set)? (was )?not found|does not exist"
    r"|assert os\.path\.(exists|isfile)"
)
# What argparse and its like say, and what a script says that needs a word.
_WRONG_ARGUMENTS = re.compile(
    r"^usage:|error: (the following|argument|unrecognized)|Required options|IndexError: list index", re.M
)
# What a script says, and PyTorch for it, that its launcher would have given a rank.
_MISSING_RANK = re.compile(
    r"(?:environment variable |KeyError: ')((?:LOCAL_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT))\b"
)
_FRAME = re.compile(r'^ *File "([^"]+)", line \d+', re.M)
_MISSING_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'")


class TrialState(enum.StrEnum):
    """How a trial ended."""

    STEPPED = "stepped"
    ENDED = "ended"  # by itself, after some steps
    NO_STEP = "no step"  # within its time, or at its end
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Trial:
    """What was seen: `progress` has the steps done at times after the first one.

    `taken` are all the steps of a script that ended or failed.
    """

    state: TrialState
    start_seconds: float = 0.0
    progress: Sequence[tuple[float, int]] = ()
    taken: int | None = None
    sentence: str = ""
    output: str = ""

    @property
    def failed_late(self) -> bool:
        """Whether it failed behind so many steps that these can be measured."""
        return self.state is TrialState.FAILED and (self.taken or 0) >= LEAST_STEPS_BEFORE_FAILURE

    @property
    def misses_file(self) -> bool:
        """Whether it failed for data that isn't there."""
        return self.state is TrialState.FAILED and bool(_MISSING_FILE.search(self.output))

    @property
    def blames_arguments(self) -> bool:
        """Whether other arguments may help."""
        wrong = self.misses_file or bool(_WRONG_ARGUMENTS.search(self.output))
        return self.state is TrialState.NO_STEP or wrong

    @property
    def missing_rank(self) -> str:
        """The variable of its rank that it asked for; empty for other failures."""
        found = _MISSING_RANK.search(self.output)
        return found[1] if found and self.state is TrialState.FAILED else ""

    @property
    def missing_module(self) -> str:
        """The module that it failed to import; empty for other failures."""
        found = _MISSING_MODULE.search(self.output)
        return found[1].split(".")[0] if found and self.state is TrialState.FAILED else ""

    @property
    def importing_file(self) -> str:
        """The file that imports the missing module, as its traceback names it; empty where none does."""
        before = self.output[: found.start()] if (found := _MISSING_MODULE.search(self.output)) else ""
        return next(reversed(_FRAME.findall(before)), "")


def watch_script(
    candidate: Candidate, words: Sequence[str], folder: Path, patience: float = FIRST_STEP_SECONDS
) -> Trial:
    """Start the script, watch its steps for some seconds, and end it with all that it has started."""
    benchmark = build_benchmark(candidate, Window(ENDLESS_STEPS, 2, 0.0, 0.0), 1)
    plan = _make_plan(benchmark, words, folder)
    environment = process_environment.child_environment(benchmark, folder)
    with (
        tempfile.TemporaryDirectory(prefix="paceline-init-") as name,
        MeasuredProcess(plan, Path(name), environment) as process,
    ):
        first, progress = None, [(0.0, 0)]
        while not process.wait(POLL_SECONDS):
            now, done = perf_counter(), process.steps_done()
            if done and first is None:
                first = now
            if first is None and now - process.started > patience:
                return Trial(TrialState.NO_STEP, now - process.started, output=process.tail())
            if first is not None:
                if done > progress[-1][1]:
                    progress.append((now - first, done))
                if _has_seen_enough(now - first, done):
                    return Trial(TrialState.STEPPED, first - process.started, progress)
        start = (first or perf_counter()) - process.started
        return _describe_end(process, start, progress)


def _has_seen_enough(seconds: float, done: int) -> bool:
    return seconds > MOST_WATCHED_SECONDS or (seconds > WATCHED_SECONDS and done >= LEAST_WATCHED_STEPS)


def _describe_end(process: MeasuredProcess, start: float, progress: list[tuple[float, int]]) -> Trial:
    """A script that ended by itself: after its last step, before the first, or by an error."""
    took = perf_counter() - process.started - start

    def seen(taken: int) -> list[tuple[float, int]]:
        return progress if progress[-1][1] > 1 else [(0.0, 0), (took, taken)]

    try:
        process.outcome()
    except TooFewStepsError as short:
        if short.taken >= 2:
            return Trial(TrialState.ENDED, start, seen(short.taken), short.taken)
        few = f"{process.plan.script} ended after {format_count(short.taken, 'whole step')}, 2 are needed"
        return Trial(TrialState.NO_STEP, start, sentence=few, output=short.output)
    except MeasurementError as failure:
        state = TrialState.NO_STEP if "took no step" in str(failure) else TrialState.FAILED
        taken = failure.taken
        return Trial(state, start, seen(taken), taken, str(failure), failure.output)
    raise AssertionError("no script takes so many steps")


def build_benchmark(candidate: Candidate, window: Window, repetitions: int) -> Benchmark:
    """The candidate as a benchmark that only times."""
    case = make_case({})
    return Benchmark(
        name=candidate.name,
        version=1,
        script=candidate.module or candidate.path,
        cases=(case,),
        params={},
        warmup_steps=window.warmup_steps,
        steps=window.steps,
        counting_steps=window.counting_steps,
        counting_warmup_steps=window.warmup_steps,
        countings=0,
        repetitions=repetitions,
        seed=0,
        threads=1,
        time_limit=window.time_limit,
        headline=metrics.DEFAULT_HEADLINE,
        guard={},
        auto=True,
        quick=QuickSettings(),
        module=bool(candidate.module),
        variables=candidate.variables,
        python_path=candidate.python_path,
        processes=candidate.processes,
        working_directory=candidate.working_directory,
    )


def _make_plan(benchmark: Benchmark, words: Sequence[str], folder: Path) -> ProcessPlan:
    return ProcessPlan(
        kind="timing",
        script=benchmark.script,
        arguments=list(words),
        folder=str(folder),
        warmup_steps=benchmark.warmup_steps,
        steps=benchmark.steps,
        seed=benchmark.seed,
        result="",
        progress="",
        package="",
        parent=0,
        auto=True,
        module=benchmark.module,
        processes=benchmark.processes,
        python_path=[str(folder / name) for name in benchmark.python_path],
        working_directory=benchmark.working_directory,
    )
