"""A benchmark as its manifest describes it: cases, windows, and what else is measured or watched of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from . import limits, projection, scaling
from .preparation import Preparation
from .toml_table import ManifestError, Scalar

# What Python's garbage collector does in the measured window: as it always does; nothing; or its ordinary
# work, but never again on what was there before the window.
GC_MODES = ("default", "disabled", "frozen")
RANKS_LIMIT = 256


@dataclass(frozen=True, slots=True)
class Case:
    """A benchmark with its parameters. `key` is their canonical spelling, empty without parameters."""

    params: Mapping[str, Scalar]
    key: str


@dataclass(frozen=True, slots=True)
class Guard:
    """A quality that is watched, and the bounds within which it must lie for the run to count as learning.

    `better` is empty where the bounds say which way it is: a maximum alone belongs to a loss.
    """

    minimum: float | None
    maximum: float | None
    better: str = ""

    @property
    def direction(self) -> Literal["lower", "higher"]:
        """Which way the quality is better."""
        only_maximum = self.minimum is None and self.maximum is not None
        return "lower" if self.better == "lower" or (only_maximum and not self.better) else "higher"


@dataclass(frozen=True, slots=True)
class QuickSettings:
    """What `--quick` overrides; None leaves the benchmark's own value."""

    steps: int | None = None
    warmup_steps: int | None = None
    counting_steps: int | None = None
    counting_warmup_steps: int | None = None
    repetitions: int | None = None
    params: Mapping[str, Scalar] | None = None
    scaling: bool = False


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named standard workload. Times are seconds, windows are numbers of steps."""

    name: str
    version: int
    script: str
    cases: tuple[Case, ...]
    params: Mapping[str, Scalar]
    warmup_steps: int
    steps: int
    counting_steps: int
    counting_warmup_steps: int
    countings: int
    repetitions: int
    seed: int
    threads: int
    time_limit: int
    headline: tuple[str, ...]
    guard: Mapping[str, Guard]
    auto: bool
    quick: QuickSettings
    scaling: scaling.Sweep | None = None
    limits: tuple[limits.Bound, ...] = ()
    job: projection.Job | None = None
    affinity: tuple[int, ...] | None = None
    gc: str = GC_MODES[0]
    variables: Mapping[str, str] = field(default_factory=dict)
    learning_seeds: tuple[int, ...] = ()
    module: bool = False  # the script is the name of a module, as of `python -m`
    step: str = ""  # what ends a step of an unmodified script; empty for what steps first
    processes: int = 1  # ranks on this host
    launcher: tuple[str, ...] = ()  # the command that starts them, where it isn't the harness
    precision: float = 0.0  # of the step time: repetitions end once they narrow it down so far; 0 for never
    arguments: tuple[str, ...] = ()  # words of the script's command line, in front of the parameters
    prepare: tuple[Preparation, ...] = ()
    python_path: tuple[str, ...] = ()  # folders of the repository, first on the path of imports
    working_directory: str = ""  # where the script is started, within the repository; empty for its root

    @property
    def script_folder(self) -> Path:
        """The folder of the script, or of a module, within the repository."""
        return Path(*self.script.split(".")).parent if self.module else Path(self.script).parent

    def case(self, settings: Mapping[str, Scalar]) -> Case:
        """Return the one case that agrees with `settings`; settings no case has make a case of their own.

        Raises ManifestError where several cases agree.
        """
        exact = [case for case in self.cases if case.key == case_key(settings)]
        agreeing = exact or [case for case in self.cases if _case_matches(case, settings)]
        if len(agreeing) == 1:
            return agreeing[0]
        if agreeing:
            keys = "; ".join(case.key for case in agreeing)
            raise ManifestError(f"benchmark {self.name} has several cases, choose one with --set: {keys}")
        base = self.cases[0].params if len(self.cases) == 1 else self.params
        return make_case({**base, **settings})

    def as_quick(self) -> Benchmark:
        """Return the benchmark as `--quick` measures it: shorter, counted once, without its guard."""
        quick = self.quick
        steps = self.steps if quick.steps is None else quick.steps
        warmup = self.warmup_steps if quick.warmup_steps is None else quick.warmup_steps
        counting_warmup = quick.counting_warmup_steps
        # The same values, since the exponent depends on their range, but each of them once.
        swept = replace(self, scaling=replace(self.scaling, repetitions=1)) if self.scaling else self
        return replace(
            swept if quick.scaling else self.without_sweep(),
            steps=steps,
            warmup_steps=warmup,
            counting_steps=quick.counting_steps or min(self.counting_steps, steps),
            counting_warmup_steps=min(self.counting_warmup_steps, warmup)
            if counting_warmup is None
            else counting_warmup,
            countings=1,
            repetitions=quick.repetitions or min(self.repetitions, 2),
            guard={},
            learning_seeds=(),
        )

    def without_sweep(self) -> Benchmark:
        """Return the benchmark without its sweep, and without what only the sweep can tell."""
        if self.scaling is None:
            return self
        job = None if self.needs_sweep(limits.PROJECTED_TIME) else self.job
        kept = tuple(bound for bound in self.limits if not self.needs_sweep(bound.metric))
        return replace(self, scaling=None, job=job, limits=kept)

    def needs_sweep(self, metric: str) -> bool:
        """Return whether a metric is read off the sweep, so that without one it isn't measured."""
        if self.scaling is None:
            return False
        projected = self.job is not None and self.job.unit == self.scaling.parameter
        return metric.startswith(limits.SWEEP_METRICS) or (metric == limits.PROJECTED_TIME and projected)


def case_key(params: Mapping[str, Scalar]) -> str:
    """Spell parameters canonically: `batch=128,variant=optimized`, sorted by name, booleans as true/false."""
    return ",".join(f"{name}={_spell_value(params[name])}" for name in sorted(params))


def make_case(params: Mapping[str, Scalar]) -> Case:
    """Return the case with these parameters."""
    return Case(dict(params), case_key(params))


def _case_matches(case: Case, settings: Mapping[str, Scalar]) -> bool:
    return all(
        name in case.params and _spell_value(case.params[name]) == _spell_value(value)
        for name, value in settings.items()
    )


def _spell_value(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
