"""Rows put straight into the database: a project, its commits and cases, and stored runs with points."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone
from paceline.metrics import describe_metric

from dashboard.environments import compared_values, store_environments
from dashboard.models import (
    Case,
    Change,
    Commit,
    Configuration,
    Document,
    Experiment,
    Machine,
    Metric,
    Point,
    Pool,
    Project,
    Regression,
    RegressionExperiment,
    Run,
    Series,
    SeriesLatest,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.postgresql.prepared_statements import preparing_statements

HEADLINE = ("step_time", "throughput", "peak_memory")
EXACT = (
    *("function_calls", "tensor_operations", "host_device_copies", "copied_bytes", "synchronisations"),
    *("graph_breaks", "recompilations", "scalar_reads"),
)
# A run's repetitions around its value; the same for each, so that a test knows its noise.
SPREAD = (0.997, 1.0, 1.003)
START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)

Values = Mapping[str, float]


def create_project(slug: str = "snakes", repository: str = "/nowhere", **fields: Any) -> Project:
    return Project.objects.create(slug=slug, repository=repository, **fields)


def create_commits(project: Project, count: int, branch: str = "main", first: int = 0) -> list[Commit]:
    return Commit.objects.bulk_create(
        new_commit(project, position, branch) for position in range(first, first + count)
    )


def create_commit(project: Project, position: int, branch: str = "main", name: str = "") -> Commit:
    made = new_commit(project, position, branch, name)
    made.save()
    return made


def new_commit(project: Project, position: int, branch: str, name: str = "") -> Commit:
    """One that isn't stored yet."""
    return Commit(
        project=project,
        hash=name or hashlib.sha256(f"{project.slug} {branch} {position}".encode()).hexdigest()[:40],
        branch=branch,
        position=position,
        subject=f"Change number {position}",
        author="Ada",
        committed_at=START + timedelta(hours=position),
    )


def create_case(project: Project, benchmark: str = "snake_dqn", **params: Any) -> Case:
    key = ",".join(f"{name}={value}" for name, value in sorted(params.items()))
    return Case.objects.create(project=project, benchmark=benchmark, params=params, key=key)


# Asked for each run that a test stores, hundreds of times: compiled once.
_CONFIGURATIONS = CompiledQuery(
    lambda: Configuration.objects.select_related("pool").filter(
        case=Parameter("case"),
        pool__name=Parameter("pool"),
        version=Parameter("version"),
        quick=Parameter("quick"),
    )
)
_MACHINES = CompiledQuery(lambda: Machine.objects.filter(name=Parameter("name")))
_SERIES = CompiledQuery(
    lambda: Series.objects.select_related("metric").filter(
        configuration=Parameter("configuration"), metric__name__in_array=Parameter("names")
    )
)


def get_configuration(
    case: Case, *, pool: Pool | None = None, version: int = 1, quick: bool = False
) -> Configuration:
    name = pool.name if pool else "default"
    for known in _CONFIGURATIONS.read_rows(case=case.pk, pool=name, version=version, quick=quick):
        return known
    where = pool or Pool.objects.get_or_create(name=name)[0]
    made, _ = Configuration.objects.get_or_create(case=case, pool=where, version=version, quick=quick)
    return made


def create_run(
    commit: Commit,
    case: Case,
    state: str = Run.State.DONE,
    *,
    pool: Pool | None = None,
    version: int = 1,
    quick: bool = False,
    **fields: Any,
) -> Run:
    measured = get_configuration(case, pool=pool, version=version, quick=quick)
    defaults = {"machine": get_machine(measured.pool), "repetitions": 3, "time_limit": 600}
    with preparing_statements(connection):
        return Run.objects.create(commit=commit, configuration=measured, state=state, **(defaults | fields))


def create_runs(
    commits: Sequence[Commit], case: Case, each: Sequence[Mapping[str, Any]] = (), **fields: Any
) -> list[Run]:
    """A done run of each commit, by a few queries. `each`: the fields of each beside those that all have."""
    measured = get_configuration(case)
    defaults = {"machine": get_machine(measured.pool), "repetitions": 3, "time_limit": 600}
    shared = {"configuration": measured, "state": Run.State.DONE, **defaults, **fields}
    return Run.objects.bulk_create(
        Run(commit=commit, **(shared | own))
        for commit, own in zip(commits, each or [{}] * len(commits), strict=True)
    )


def get_machine(pool: Pool) -> Machine:
    known = next(iter(_MACHINES.read_rows(name="bench-1")), None)
    return known or Machine.objects.create(name="bench-1", pool=pool)


def get_series(run: Run, name: str, phase: str = "") -> Series:
    (found,) = get_all_series(run, [(name, phase)])
    return found


def get_all_series(run: Run, measured: Iterable[tuple[str, str]]) -> list[Series]:
    """Of each metric and phase (empty: of the whole), by a few queries."""
    wanted = list(measured)
    names = {name for name, _ in wanted}
    rows = _SERIES.read_rows(configuration=run.configuration_id, names=list(names))
    found = {(row.metric.name, row.phase): row for row in rows}
    if missing := [key for key in wanted if key not in found]:
        metrics = get_metrics(dict.fromkeys(name for name, _ in missing))
        made = Series.objects.bulk_create(
            Series(
                configuration=run.configuration,
                metric=metrics[name],
                phase=phase,
                headline=name in HEADLINE and not phase,
                exact=name in EXACT,
            )
            for name, phase in missing
        )
        found |= dict(zip(missing, made, strict=True))
    return [found[key] for key in wanted]


def get_metrics(names: Collection[str]) -> dict[str, Metric]:
    """By name; new ones are made in this order."""
    known = {row.name: row for row in Metric.objects.filter(name__in=names)}
    missing = {name: describe_metric(name) for name in names if name not in known}
    assert None not in missing.values(), missing
    made = Metric.objects.bulk_create(
        Metric(name=name, unit=told.unit, better=told.better, kind=told.kind)
        for name, told in missing.items()
        if told
    )
    return known | {row.name: row for row in made}


def add_point(run: Run, series: Series, value: float, tainted: bool = False) -> Point:
    (made,) = add_points(run, [(series, value)], tainted)
    return made


def add_points(run: Run, values: Iterable[tuple[Series, float]], tainted: bool) -> list[Point]:
    return store_points([new_point(run, series, value, tainted) for series, value in values])


def new_point(run: Run, series: Series, value: float, tainted: bool = False) -> Point:
    """One that isn't stored yet."""
    samples = [value] * 3 if series.exact else [value * factor for factor in SPREAD]
    position = run.commit.position
    return Point(series=series, position=position, run=run, value=value, samples=samples, tainted=tainted)


def store_points(points: Sequence[Point]) -> list[Point]:
    """And the latest value of each series: that of its last point here."""
    newest = {point.series_id: point for point in points}
    latest = [
        SeriesLatest(series=made.series, run=made.run, position=made.position, value=made.value)
        for made in newest.values()
    ]
    with preparing_statements(connection):
        SeriesLatest.objects.bulk_create(
            latest,
            update_conflicts=True,
            unique_fields=["series"],
            update_fields=["run", "position", "value", "updated_at"],
        )
        return Point.objects.bulk_create(points)


def store_measured_run(
    commit: Commit,
    case: Case,
    values: Values,
    *,
    phases: Mapping[str, Values] | None = None,
    functions: Sequence[Mapping[str, Any]] = (),
    environment: Mapping[str, Any] | None = None,
    tainted: bool = False,
    document: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Run:
    """A stored run with `values` by metric, `phases` by metric and path, and a document (its members)."""
    body = describe_run(environment or {}, functions) | dict(document or {})
    (known,) = store_environments([compared_values(body["environment"], body["harness"]["version"])])
    made = create_run(commit, case, tainted=tainted, environment_id=known, **fields)
    measured = {(name, ""): value for name, value in values.items()}
    for name, by_phase in (phases or {}).items():
        measured |= {(name, path): value for path, value in by_phase.items()}
    series = get_all_series(made, measured)
    add_points(made, zip(series, measured.values(), strict=True), tainted)
    with preparing_statements(connection):
        Document.objects.create(run=made, format="paceline.document/1", body=body, sha256="0" * 64)
    return made


def store_measured_runs(
    measured: Sequence[tuple[Commit, Values]],
    case: Case,
    phases: Sequence[Mapping[str, Values]] = (),
    **fields: Any,
) -> list[Run]:
    """As `store_measured_run` does with each, by a few queries."""
    body = describe_run()
    (known,) = store_environments([compared_values(body["environment"], body["harness"]["version"])])
    made = create_runs([commit for commit, _ in measured], case, environment_id=known, **fields)
    told = [
        {(name, ""): value for name, value in values.items()}
        | {(name, path): value for name, by_phase in of_run.items() for path, value in by_phase.items()}
        for (_, values), of_run in zip(measured, phases or [{}] * len(measured), strict=True)
    ]
    keys = list(dict.fromkeys(key for values in told for key in values))
    series = dict(zip(keys, get_all_series(made[0], keys), strict=True))
    store_points(
        [
            new_point(run, series[key], value)
            for run, values in zip(made, told, strict=True)
            for key, value in values.items()
        ]
    )
    Document.objects.bulk_create(
        Document(run=run, format="paceline.document/1", body=body, sha256="0" * 64) for run in made
    )
    return made


def describe_run(
    environment: Mapping[str, Any] | None = None, functions: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """The body of a document."""
    return {
        "harness": {"version": "0.1.0"},
        "environment": {"python": "3.11.2", "torch": "2.13.0", **(environment or {})},
        "profile": {"steps": 200, "functions": list(functions)},
    }


def set_environment(run: Run, environment: Mapping[str, Any], harness: str | None = "0.1.0") -> None:
    """Let a run have been measured under this environment, as ingest stores it."""
    (run.environment_id,) = store_environments([compared_values(environment, harness)])
    run.save(update_fields=["environment"])


def create_regression(
    line: Sequence[Commit], at: int, name: str, found_at: int, after: float = 1.4
) -> Regression:
    """A regression at a commit whose one change, from 1 to `after`, was found at another."""
    project = line[0].project
    case = project.cases.first() or create_case(project)
    series = get_series(create_run(line[found_at], case), name)
    made = Regression.objects.create(
        project=project, first_bad=line[at], last_good=line[at - 1], series=series, before=1, after=after
    )
    Change.objects.create(
        series=series,
        first_bad=line[found_at],
        last_good=line[found_at - 1],
        position=found_at,
        reach_good=max(0, found_at - 2),
        reach_bad=found_at + 1,
        direction="regression",
        before=1,
        after=after,
        ratio=after,
        low=after - 0.1,
        high=after + 0.1,
        confidence=0.99,
        regression=made,
    )
    return made


def create_experiment(
    made: Regression, base: Commit, head: Commit, purpose: str = "proof", **fields: Any
) -> Experiment:
    """An experiment that a regression asked for, on its series."""
    series = made.series
    defaults = {"question": "test" if purpose == "proof" else "place"}
    row = Experiment.objects.create(
        project=made.project,
        purpose=purpose,
        base_commit=base,
        head_commit=head,
        base_configuration=series.configuration,
        head_configuration=series.configuration,
        metric=series.metric,
        phase=series.phase,
        before=made.before,
        after=made.after,
        **(defaults | fields),
    )
    RegressionExperiment.objects.create(regression=made, experiment=row, series=series)
    return row


def create_ended_experiment(
    made: Regression, verdict: str, base: Commit, head: Commit, purpose: str = "proof", **found: Any
) -> Experiment:
    """A proof or a step of a bisection that is done."""
    ended = {"state": "done", "verdict": verdict, "finished_at": timezone.now()}
    return create_experiment(made, base, head, purpose, **(ended | found))


def end_experiment(row: Experiment, verdict: str, **values: Any) -> Experiment:
    """Let it end with a verdict on the machine of the runs."""
    row.state, row.verdict, row.finished_at = "done", verdict, timezone.now()
    row.machine = Machine.objects.filter(name="bench-1").first()
    for name, value in values.items():
        setattr(row, name, value)
    row.save()
    return row


def add_pairs(row: Experiment, *phases: Mapping[str, tuple[float, float]] | None) -> None:
    """Pairs of 10 ms and 14 ms by their phases, seconds of both sides; None: one that was disturbed."""
    for index, both in enumerate(phases):
        values = {"base": 0.010, "head": 0.014, "disturbed": both is None, "seconds": 5.0}
        told = {"act": (0.9, 0.1)} if both is None else both
        row.pairs.create(index=index, base_first=True, phases=told, **values)


def profiled_function(name: str, file: str = "replay.py", line: int = 1, **fields: Any) -> dict[str, Any]:
    """One function of a profile, per step."""
    row = {"calls": 1.0, "self": 0.0, "cumulative": 0.0, "phase": None} | fields
    return {"function": name, "file": file, "line": line, **row}


def run_noise(position: int) -> float:
    """Noise between runs of about half a percent, the same at each call."""
    digest = hashlib.sha256(f"noise {position}".encode()).digest()
    return 1 + 0.01 * (digest[0] / 255 - 0.5)


def noisy_levels(*levels: tuple[int, float]) -> list[float]:
    """Values that stay on each level for so many commits: `steps((6, 1.0), (4, 1.4))`."""
    flat = [level for count, level in levels for _ in range(count)]
    return [level * run_noise(position) for position, level in enumerate(flat)]
