"""The manifest `paceline.toml`: which benchmarks a project has and how each is measured."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import limits, metrics, projection, scaling, surroundings
from .fields import Fields, ManifestError, Scalar

__all__ = [
    "FILE_NAME",
    "Benchmark",
    "Case",
    "Environment",
    "Guard",
    "Manifest",
    "ManifestError",
    "Scalar",
    "case_key",
    "find",
    "load",
    "parse",
]

FILE_NAME = "paceline.toml"
STEPS_LIMIT = 1_000_000  # every step's time is kept in memory while it is measured
REPETITIONS_LIMIT = 100
INTEGER_LIMIT = 2**31 - 1  # of the database's columns


@dataclass(frozen=True, slots=True)
class Case:
    """A benchmark with its parameters. `key` is their canonical spelling, empty without parameters."""

    params: Mapping[str, Scalar]
    key: str


@dataclass(frozen=True, slots=True)
class Guard:
    """Bounds within which a quality must lie for the run to count as learning."""

    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True)
class Quick:
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
    quick: Quick
    scaling: scaling.Sweep | None = None
    limits: tuple[limits.Bound, ...] = ()
    job: projection.Job | None = None
    affinity: tuple[int, ...] | None = None
    gc: str = surroundings.COLLECTORS[0]
    variables: Mapping[str, str] = field(default_factory=dict)

    def case(self, settings: Mapping[str, Scalar]) -> Case:
        """Return the one case that agrees with `settings`; settings no case has make a case of their own.

        Raises ManifestError where several cases agree.
        """
        exact = [case for case in self.cases if case.key == case_key(settings)]
        agreeing = exact or [case for case in self.cases if _agrees(case, settings)]
        if len(agreeing) == 1:
            return agreeing[0]
        if agreeing:
            keys = "; ".join(case.key for case in agreeing)
            raise ManifestError(f"benchmark {self.name} has several cases, choose one with --set: {keys}")
        base = self.cases[0].params if len(self.cases) == 1 else self.params
        return _case({**base, **settings})

    def quickened(self) -> Benchmark:
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
        )

    def without_sweep(self) -> Benchmark:
        """Return the benchmark without its sweep, and without what only the sweep can tell."""
        if self.scaling is None:
            return self
        job = None if self.is_swept(limits.PROJECTED) else self.job
        kept = tuple(bound for bound in self.limits if not self.is_swept(bound.metric))
        return replace(self, scaling=None, job=job, limits=kept)

    def is_swept(self, metric: str) -> bool:
        """Return whether a metric is read off the sweep, so that without one it isn't measured."""
        if self.scaling is None:
            return False
        projected = self.job is not None and self.job.unit == self.scaling.parameter
        return metric.startswith(limits.SWEPT) or (metric == limits.PROJECTED and projected)


@dataclass(frozen=True, slots=True)
class Environment:
    """How a commit's environment is built; the contents of these files key the cached one."""

    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The parsed manifest; `environment` is None where the worker's own environment is used."""

    benchmarks: Mapping[str, Benchmark]
    environment: Environment | None


def case_key(params: Mapping[str, Scalar]) -> str:
    """Spell parameters canonically: `batch=128,variant=optimized`, sorted by name, booleans as true/false."""
    return ",".join(f"{name}={_spell(params[name])}" for name in sorted(params))


def find(start: Path) -> Path:
    """Return the manifest of `start` or of the nearest folder above it; raises ManifestError."""
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    raise ManifestError(f"no {FILE_NAME} in {start} or any folder above it")


def load(path: Path) -> Manifest:
    """Read and check a manifest file; raises ManifestError with one sentence."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: can't be read: {error}") from error
    return parse(text, str(path))


def parse(text: str, where: str) -> Manifest:
    """Check a manifest's text; `where` opens every error's sentence."""
    try:
        return _parse(text, where)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{where}: is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ManifestError(f"{where}: is nested too deeply") from error
    except (ValueError, OverflowError) as error:
        # Python neither reads nor writes integers of thousands of digits.
        raise ManifestError(f"{where}: has a number with too many digits") from error


def _parse(text: str, where: str) -> Manifest:
    fields = Fields(tomllib.loads(text), where, "")
    environment = fields.table("environment")
    benchmarks = fields.table("benchmarks")
    fields.finish()
    if benchmarks is None or not benchmarks.names():
        raise ManifestError(f"{where}: benchmarks: is missing, write at least one [benchmarks.NAME]")
    parsed = {name: _benchmark(name, benchmarks.required_table(name)) for name in benchmarks.names()}
    return Manifest(parsed, _environment(environment) if environment else None)


def _environment(fields: Fields) -> Environment:
    requirements = tuple(fields.strings("requirements") or ())
    fields.finish()
    if not requirements:
        raise fields.error("requirements", "is missing, name at least one requirements file")
    for path in requirements:
        _refuse_outside(fields, "requirements", path)
    return Environment(requirements)


def _benchmark(name: str, fields: Fields) -> Benchmark:
    fields.check_name(name)
    script = fields.required_text("script")
    _refuse_outside(fields, "script", script)
    params = fields.scalars("params") or {}
    warmup = fields.integer("warmup_steps", 0, minimum=0)
    steps = fields.required_integer("steps", minimum=1, maximum=STEPS_LIMIT)
    benchmark = Benchmark(
        name=name,
        version=fields.required_integer("version", minimum=1, maximum=INTEGER_LIMIT),
        script=script,
        params=params,
        cases=_cases(fields, params),
        warmup_steps=warmup,
        steps=steps,
        counting_steps=fields.integer("counting_steps", min(steps, 200), minimum=1, maximum=STEPS_LIMIT),
        counting_warmup_steps=fields.integer("counting_warmup_steps", warmup, minimum=0),
        countings=fields.integer("countings", 2, minimum=1, maximum=2),
        repetitions=fields.integer("repetitions", 5, minimum=1, maximum=REPETITIONS_LIMIT),
        seed=fields.integer("seed", 0, minimum=0, maximum=2**32 - 1),
        threads=fields.integer("threads", 1, minimum=1, maximum=1024),
        time_limit=fields.integer("time_limit", 600, minimum=1, maximum=INTEGER_LIMIT),
        headline=_headline(fields),
        guard=_guards(fields.table("guard")),
        auto=fields.flag("auto", default=False),
        quick=_quick(fields.table("quick")),
        scaling=scaling.parse(fields.table("scaling")),
        limits=limits.parse(fields.table("limits")),
        job=projection.parse(fields.table("job")),
        affinity=fields.integers("affinity", maximum=surroundings.CPU_LIMIT - 1),
        gc=fields.choice("gc", surroundings.COLLECTORS),
        variables=surroundings.variables(fields.table("variables")),
    )
    fields.finish()
    for bound in benchmark.limits:
        if bound.metric.startswith(limits.SWEPT) and benchmark.scaling is None:
            raise fields.error(f"limits.{bound.name}", "needs the table scaling")
        if bound.metric == limits.PROJECTED and benchmark.job is None:
            raise fields.error(f"limits.{bound.name}", "needs the table job")
    return benchmark


def _cases(fields: Fields, params: Mapping[str, Scalar]) -> tuple[Case, ...]:
    listed = fields.tables("cases")
    if listed is None:
        return (_case(params),)
    if not listed:
        raise fields.error("cases", "is empty, leave it out or list at least one case")
    cases = tuple(_case({**params, **table.all_scalars()}) for table in listed)
    keys = [case.key for case in cases]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise fields.error(f"cases[{index}]", f"is the same case as cases[{keys.index(key)}]")
    return cases


def _headline(fields: Fields) -> tuple[str, ...]:
    names = fields.strings("headline")
    if names is None:
        return metrics.HEADLINE
    if len(names) > metrics.HEADLINE_LIMIT:
        raise fields.error(
            "headline", f"has {len(names)} names, at most {metrics.HEADLINE_LIMIT} are allowed"
        )
    for name in names:
        # A phase's metric is named `phase_time:learn/backward`.
        if metrics.describe(name.partition(":")[0]) is None:
            raise fields.unknown("headline", name, list(metrics.METRICS))
        wrong = metrics.misplaced(name)
        if wrong is not None:
            raise fields.error("headline", wrong)
    return tuple(names)


def _guards(fields: Fields | None) -> dict[str, Guard]:
    if fields is None:
        return {}
    return {name: _guard(fields.required_table(name)) for name in fields.names()}


def _guard(fields: Fields) -> Guard:
    guard = Guard(fields.number("minimum"), fields.number("maximum"))
    fields.finish()
    if guard.minimum is None and guard.maximum is None:
        raise fields.error("", "needs a minimum or a maximum")
    if guard.minimum is not None and guard.maximum is not None and guard.minimum > guard.maximum:
        raise fields.error("minimum", f"is {guard.minimum:g}, above the maximum of {guard.maximum:g}")
    return guard


def _quick(fields: Fields | None) -> Quick:
    if fields is None:
        return Quick()
    quick = Quick(
        steps=fields.optional_integer("steps", minimum=1, maximum=STEPS_LIMIT),
        warmup_steps=fields.optional_integer("warmup_steps", minimum=0),
        counting_steps=fields.optional_integer("counting_steps", minimum=1, maximum=STEPS_LIMIT),
        counting_warmup_steps=fields.optional_integer("counting_warmup_steps", minimum=0),
        repetitions=fields.optional_integer("repetitions", minimum=1, maximum=REPETITIONS_LIMIT),
        params=fields.scalars("params"),
        scaling=fields.flag("scaling", default=False),
    )
    fields.finish()
    return quick


def _case(params: Mapping[str, Scalar]) -> Case:
    return Case(dict(params), case_key(params))


def _agrees(case: Case, settings: Mapping[str, Scalar]) -> bool:
    return all(
        name in case.params and _spell(case.params[name]) == _spell(value) for name, value in settings.items()
    )


def _spell(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse_outside(fields: Fields, key: str, path: str) -> None:
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise fields.error(key, f"is {path!r}, must be a path inside the repository")
