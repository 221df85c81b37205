"""Reads `paceline.toml`: which benchmarks a project has and how each is measured."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import metrics
from ..step_kinds import CHOICES
from . import environment_variables, limits, projection, scaling
from .benchmarks import GC_MODES, RANKS_LIMIT, Benchmark, Case, Guard, QuickSettings, make_case
from .environment_table import Environment, parse_environment, refuse_outside
from .policy import Policy, parse_policy
from .preparation import parse_preparations
from .script_arguments import check_placeholders, parse_arguments
from .toml_table import PARAMS_LIMIT, ManifestError, Scalar, TomlTable
from .toml_text import load_toml

FILE_NAME = "paceline.toml"
STEPS_LIMIT = 1_000_000  # every step's time is kept in memory while it is measured
REPETITIONS_LIMIT = 100
SEED_LIMIT = 2**32 - 1
LEARNING_SEEDS_LIMIT = 4  # their processes run side by side
LEAST_PRECISION, LARGEST_PRECISION = 0.001, 0.5
INTEGER_LIMIT = 2**31 - 1  # of the database's columns
# So that whatever is pushed is parsed, or refused, within a quarter of a second.
SIZE_LIMIT = 256 * 2**10
CASES_LIMIT = 1_000  # of one benchmark
CPU_LIMIT = 4096
BENCHMARKS_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Manifest:
    """The parsed manifest; `environment` is None where it says nothing of one."""

    benchmarks: Mapping[str, Benchmark]
    environment: Environment | None
    policy: Policy = field(default_factory=Policy)


def find_manifest(start: Path) -> Path:
    """Return the manifest of `start` or of the nearest folder above it; raises ManifestError."""
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    raise ManifestError(f"no {FILE_NAME} in {start} or any folder above it")


def load_manifest(path: Path) -> Manifest:
    """Read and check a manifest file; raises ManifestError with one sentence."""
    return parse_manifest(read_manifest(path, str(path)), str(path))


def read_manifest(path: Path, where: str) -> str:
    """Return the text of a manifest file; raises ManifestError, which `where` opens."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise ManifestError(f"{where}: can't be read: {error.strerror}") from error
    return decode_manifest(data, where)


def decode_manifest(data: bytes, where: str) -> str:
    """Return the text of a manifest's bytes, without a byte-order mark; raises ManifestError."""
    if len(data) > SIZE_LIMIT:
        raise ManifestError(f"{where}: is larger than {SIZE_LIMIT} bytes, which no manifest needs")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{where}: is not UTF-8: {error.reason} at byte {error.start}") from error


def parse_manifest(text: str, where: str) -> Manifest:
    """Check a manifest's text; `where` opens every error's sentence."""
    try:
        return _parse_tables(text, where)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{where}: is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ManifestError(f"{where}: is nested too deeply") from error
    except (ValueError, OverflowError) as error:
        # Python neither reads nor writes integers of thousands of digits.
        raise ManifestError(f"{where}: has a number with too many digits") from error


def _parse_tables(text: str, where: str) -> Manifest:
    table = TomlTable(load_toml(text), where, "")
    described = table.table("environment")
    benchmarks = table.table("benchmarks")
    policy = table.table("policy")
    table.refuse_unread_keys()
    if benchmarks is None or not benchmarks.names():
        raise ManifestError(f"{where}: benchmarks: is missing, write at least one [benchmarks.NAME]")
    if len(benchmarks.names()) > BENCHMARKS_LIMIT:
        count = len(benchmarks.names())
        raise ManifestError(f"{where}: benchmarks: are {count}, at most {BENCHMARKS_LIMIT} are allowed")
    environment = parse_environment(described) if described else None
    python_path = environment.python_path if environment else ()
    parsed = {
        name: replace(_parse_benchmark(name, benchmarks.required_table(name)), python_path=python_path)
        for name in benchmarks.names()
    }
    return Manifest(parsed, environment, _parse_policy(policy, parsed))


def _parse_policy(table: TomlTable | None, benchmarks: Mapping[str, Benchmark]) -> Policy:
    """The policy, which names benchmarks of this manifest alone."""
    policy = parse_policy(table)
    if table is not None:
        known = list(benchmarks)
        for name in policy.benchmarks:
            if name not in benchmarks:
                raise table.required_table("benchmarks").unknown_key_error(name, known)
        for schedule in policy.schedules or ():
            for name in schedule.benchmarks:
                if name not in benchmarks:
                    raise table.unknown_value_error(f"schedule.{schedule.name}.benchmarks", name, known)
    return policy


def _parse_benchmark(name: str, table: TomlTable) -> Benchmark:
    table.check_name(name)
    script, module = _parse_script(table)
    params = table.scalars("params") or {}
    warmup = table.integer("warmup_steps", 0, minimum=0)
    steps = table.required_integer("steps", minimum=1, maximum=STEPS_LIMIT)
    benchmark = Benchmark(
        name=name,
        version=table.required_integer("version", minimum=1, maximum=INTEGER_LIMIT),
        script=script,
        params=params,
        cases=_parse_cases(table, params),
        warmup_steps=warmup,
        steps=steps,
        counting_steps=table.integer("counting_steps", min(steps, 200), minimum=1, maximum=STEPS_LIMIT),
        counting_warmup_steps=table.integer("counting_warmup_steps", warmup, minimum=0),
        countings=table.integer("countings", 2, minimum=1, maximum=2),
        repetitions=table.integer("repetitions", 5, minimum=1, maximum=REPETITIONS_LIMIT),
        seed=table.integer("seed", 0, minimum=0, maximum=SEED_LIMIT),
        threads=table.integer("threads", 1, minimum=1, maximum=1024),
        time_limit=table.integer("time_limit", 600, minimum=1, maximum=INTEGER_LIMIT),
        headline=_parse_headline(table),
        guard=_parse_guards(table.table("guard")),
        auto=table.boolean("auto", default=False),
        step=table.choice("step", ("", *CHOICES)),
        processes=table.integer("processes", 1, minimum=1, maximum=RANKS_LIMIT),
        module=module,
        quick=_parse_quick(table.table("quick")),
        scaling=scaling.parse_sweep(table.table("scaling")),
        limits=limits.parse_limits(table.table("limits")),
        job=projection.parse_job(table.table("job")),
        affinity=table.integers("affinity", maximum=CPU_LIMIT - 1),
        gc=table.choice("gc", GC_MODES),
        variables=environment_variables.parse_variables(table.table("variables")),
        learning_seeds=table.integers("learning_seeds", maximum=SEED_LIMIT) or (),
        precision=_parse_precision(table),
        arguments=parse_arguments(table),
        prepare=parse_preparations(table),
        working_directory=_parse_working_directory(table),
    )
    table.refuse_unread_keys()
    _check_learning_seeds(benchmark, table)
    check_placeholders(benchmark, table)
    if benchmark.step and not benchmark.auto:
        raise table.error("step", "needs auto = true, marked code says itself what a step is")
    for bound in benchmark.limits:
        if bound.metric.startswith(limits.SWEEP_METRICS) and benchmark.scaling is None:
            raise table.error(f"limits.{bound.name}", "needs the table scaling")
        if bound.metric == limits.PROJECTED_TIME and benchmark.job is None:
            raise table.error(f"limits.{bound.name}", "needs the table job")
    return benchmark


def _parse_script(table: TomlTable) -> tuple[str, bool]:
    """The script's path or the module's name, and whether it is a module."""
    if not table.has_key("module"):
        script = table.required_string("script")
        refuse_outside(table, "script", script)
        return script, False
    if table.has_key("script"):
        raise table.error("module", "stands beside script, name one of them")
    module = table.required_string("module")
    if not all(part.isidentifier() for part in module.split(".")):
        raise table.error("module", f"is {module!r}, must be a module's name such as package.train")
    return module, True


def _parse_working_directory(table: TomlTable) -> str:
    if not table.has_key("working_directory"):
        return ""
    folder = table.required_string("working_directory")
    refuse_outside(table, "working_directory", folder)
    return folder


def _parse_precision(table: TomlTable) -> float:
    precision = table.number("precision")
    if precision is not None and not LEAST_PRECISION <= precision <= LARGEST_PRECISION:
        raise table.error(
            "precision",
            f"is {precision:g}, must be a share of the step time from {LEAST_PRECISION:g} to "
            f"{LARGEST_PRECISION:g}: 0.02 for 2 %",
        )
    return precision or 0.0


def _check_learning_seeds(benchmark: Benchmark, table: TomlTable) -> None:
    """Refuse seeds with which nothing would be judged, or the same twice."""
    if benchmark.learning_seeds and not benchmark.guard:
        raise table.error("learning_seeds", "needs the table guard, which judges what is learned with them")
    if benchmark.seed in benchmark.learning_seeds:
        raise table.error("learning_seeds", f"names {benchmark.seed}, the seed of every repetition already")
    if len(benchmark.learning_seeds) > LEARNING_SEEDS_LIMIT:
        raise table.error("learning_seeds", f"has more than {LEARNING_SEEDS_LIMIT} seeds")


def _parse_cases(table: TomlTable, params: Mapping[str, Scalar]) -> tuple[Case, ...]:
    listed = table.tables("cases")
    if listed is None:
        return (make_case(params),)
    if not listed:
        raise table.error("cases", "is empty, leave it out or list at least one case")
    if len(listed) > CASES_LIMIT:
        raise table.error("cases", f"has {len(listed)} cases, at most {CASES_LIMIT} are allowed")
    cases: dict[str, Case] = {}
    for index, row in enumerate(listed):
        case = make_case({**params, **row.all_scalars()})
        if len(case.params) > PARAMS_LIMIT:
            raise table.error(
                f"cases[{index}]", f"has more than {PARAMS_LIMIT} parameters with the common ones"
            )
        if case.key in cases:
            raise table.error(f"cases[{index}]", f"is the same case as cases[{[*cases].index(case.key)}]")
        cases[case.key] = case
    return tuple(cases.values())


def _parse_headline(table: TomlTable) -> tuple[str, ...]:
    names = table.strings("headline")
    if names is None:
        return metrics.DEFAULT_HEADLINE
    if len(names) > metrics.HEADLINE_LIMIT:
        raise table.error("headline", f"has {len(names)} names, at most {metrics.HEADLINE_LIMIT} are allowed")
    for name in names:
        # A phase's metric is named `phase_time:learn/backward`.
        if metrics.describe_metric(name.partition(":")[0]) is None:
            raise table.unknown_value_error("headline", name, list(metrics.METRICS))
        problem = metrics.phase_problem(name)
        if problem is not None:
            raise table.error("headline", problem)
    return tuple(names)


def _parse_guards(table: TomlTable | None) -> dict[str, Guard]:
    if table is None:
        return {}
    return {name: _parse_guard(table.required_table(name)) for name in table.names()}


def _parse_guard(table: TomlTable) -> Guard:
    better = table.choice("better", ("", "lower", "higher"))
    guard = Guard(table.number("minimum"), table.number("maximum"), better)
    table.refuse_unread_keys()
    if guard.minimum is None and guard.maximum is None and not guard.better:
        raise table.error("", 'needs a minimum or a maximum, or better = "lower" or "higher" without a bound')
    if guard.minimum is not None and guard.maximum is not None and guard.minimum > guard.maximum:
        raise table.error("minimum", f"is {guard.minimum:g}, above the maximum of {guard.maximum:g}")
    return guard


def _parse_quick(table: TomlTable | None) -> QuickSettings:
    if table is None:
        return QuickSettings()
    quick = QuickSettings(
        steps=table.optional_integer("steps", minimum=1, maximum=STEPS_LIMIT),
        warmup_steps=table.optional_integer("warmup_steps", minimum=0),
        counting_steps=table.optional_integer("counting_steps", minimum=1, maximum=STEPS_LIMIT),
        counting_warmup_steps=table.optional_integer("counting_warmup_steps", minimum=0),
        repetitions=table.optional_integer("repetitions", minimum=1, maximum=REPETITIONS_LIMIT),
        params=table.scalars("params"),
        scaling=table.boolean("scaling", default=False),
    )
    table.refuse_unread_keys()
    return quick
