"""A history as the site would hold it: projects, commits, runs with documents, series and changes."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from statistics import median
from typing import Any

from django.db import connection
from django.utils import timezone

from dashboard.environments import compared_values, store_environments
from dashboard.models import (
    Case,
    Change,
    Channel,
    Commit,
    Configuration,
    Delivery,
    Document,
    Limit,
    Machine,
    Metric,
    Point,
    Pool,
    Project,
    Regression,
    Run,
    RunLog,
    Series,
    SeriesLatest,
    Trigger,
)
from tests.dashboard.factories import create_case, get_configuration, set_environment
from tests.pages.documents import create_document

# As a document lists them.
Metrics = Sequence[Mapping[str, Any]]
POINT_COLUMNS = "series_id, position, run_id, tainted, value, low, high, samples"
COPY_POINTS = f"COPY dashboard_point ({POINT_COLUMNS}) FROM STDIN"
TELEMETRY = ("repetition", "channel", "device", "unit", "start", "interval", "mean", "peak", "idle_share")
COPY_TELEMETRY = f'COPY dashboard_telemetry (run_id, {", ".join(TELEMETRY)}, "values") FROM STDIN'
SUBJECTS = (
    "Draw transitions from one array",
    "Rename the agent's buffers",
    "Stack frames once per episode",
    "Add a test for the terminal mask",
    "Keep rewards as float32",
    "Log the loss every hundred steps",
    "Move the target update out of the loop",
    "Split the environment from its renderer",
)


def create_project(slug: str = "snake", **fields: Any) -> Project:
    return Project.objects.create(slug=slug, repository=f"/srv/git/{slug}.git", **fields)


def create_commits(project: Project, count: int, subject: str = "") -> list[Commit]:
    start = timezone.now() - timedelta(hours=6 * count)
    texts = [f"{project.slug} {position}" for position in range(count)]
    hashes = [hashlib.sha256(text.encode()).hexdigest()[:40] for text in texts]
    return Commit.objects.bulk_create(
        Commit(
            project=project,
            hash=hashes[position],
            parents=hashes[position - 1 : position],
            branch=project.branch,
            position=position,
            subject=subject or SUBJECTS[position % len(SUBJECTS)],
            author=("Ada", "Grace", "Barbara")[position % 3],
            committed_at=start + timedelta(hours=6 * position),
        )
        for position in range(count)
    )


def get_pool(name: str = "default") -> Pool:
    return Pool.objects.get_or_create(name=name)[0]


def create_machine(name: str = "bench-1", seen: timedelta = timedelta(0), **fields: Any) -> Machine:
    machine = Machine.objects.filter(name=name).first()
    machine = machine or Machine(name=name, **({"pool": get_pool()} | fields))
    machine.seen_at = timezone.now() - seen
    machine.save()
    return machine


def create_run(commit: Commit, case: Case, state: str = Run.State.DONE, **fields: Any) -> Run:
    """A run in this state, even a done one without document and points: `create_measured_run` gives them."""
    where = {} if state == Run.State.REQUESTED else {"machine": create_machine()}
    identity = {name: fields.pop(name) for name in ("pool", "version", "quick") if name in fields}
    made = new_run(commit, get_configuration(case, **identity), state, **(where | fields))
    made.save(force_insert=True)
    return made


def new_run(commit: Commit, configuration: Configuration, state: str, **fields: Any) -> Run:
    """One that isn't stored yet."""
    began = fields.pop("requested_at", commit.committed_at)
    times: dict[str, Any] = {"requested_at": began}
    if state != Run.State.REQUESTED:
        times |= {"claimed_at": began + timedelta(seconds=2), "attempt": 1}
    if state in Run.TERMINAL:
        times |= dict.fromkeys(("finished_at", "judged_at"), began + timedelta(seconds=74))
    defaults = {"repetitions": 5, "time_limit": 600, "state": state}
    return Run(commit=commit, configuration=configuration, **(defaults | times | fields))


def create_tainted_run(commit: Commit, case: Case, *codes: str, **fields: Any) -> Run:
    """One of today, with a warning of each of these codes that keeps it out of judgement."""
    run = create_run(commit, case, tainted=True, requested_at=timezone.now(), **fields)
    warnings = [{"code": code, "message": code, "advice": "", "taints": True} for code in codes]
    body = {"warnings": [{"code": "too_few_samples", "message": "", "taints": False}, *warnings]}
    Document.objects.create(run=run, format="paceline.document/1", body=body, sha256="0" * 64)
    return run


def create_refused_trigger(
    project: Project, detail: str = "Commit 0123456789 has no paceline.toml."
) -> Trigger:
    return Trigger.objects.create(
        project=project, source="hook", revisions={"last": 2}, state=Trigger.State.REFUSED, detail=detail
    )


def create_measured_run(
    commit: Commit,
    case: Case,
    step_time: float,
    seed: int = 0,
    body: dict[str, Any] | None = None,
    **fields: Any,
) -> Run:
    """A run that is done, with its document, its telemetry, its log and its points."""
    run, metrics = create_documented_run(commit, case, step_time, seed, body, **fields)
    create_points(run, metrics)
    return run


def create_documented_run(
    commit: Commit, case: Case, step_time: float, seed: int, body: dict[str, Any] | None = None, **fields: Any
) -> tuple[Run, Metrics]:
    """The same without its points, and the metrics that these are of."""
    run = create_run(commit, case, **fields)
    body = body or create_document(case, step_time, random.Random(seed))  # noqa: S311
    set_environment(run, body["environment"], body["harness"]["version"])
    create_records([(run, body)])
    return run, body["metrics"]


def create_documented_runs(
    case: Case, measured: Sequence[tuple[Commit, dict[str, Any]]]
) -> list[tuple[Run, Metrics]]:
    """The same at several commits, each with its document, by a few queries; every seventeenth is tainted."""
    configuration, machine = get_configuration(case), create_machine()
    done = {"state": Run.State.DONE, "machine": machine}
    bodies = [body for _, body in measured]
    environments = store_environments(
        [compared_values(body["environment"], body["harness"]["version"]) for body in bodies]
    )
    runs = Run.objects.bulk_create(
        new_run(commit, configuration, **done, environment_id=environment, tainted=commit.position % 17 == 13)
        for (commit, _), environment in zip(measured, environments, strict=True)
    )
    create_records(list(zip(runs, bodies, strict=True)))
    return [(run, body["metrics"]) for run, body in zip(runs, bodies, strict=True)]


def create_records(measured: Sequence[tuple[Run, dict[str, Any]]]) -> None:
    """Each run's document, log and telemetry."""
    text = "warm-up done\nrepetition 1 of 5\nrepetition 5 of 5\ndocument written\n"
    Document.objects.bulk_create(
        Document(run=run, format=body["format"], body=body, sha256="0" * 64) for run, body in measured
    )
    RunLog.objects.bulk_create(RunLog(run=run, text=text) for run, _ in measured)
    rows = [(run.pk, row) for run, body in measured for row in body["telemetry"]]
    with connection.cursor() as cursor, cursor.copy(COPY_TELEMETRY) as copy:
        for key, row in rows:
            copy.write_row((key, *(row[name] for name in TELEMETRY), write_array(row["values"])))


def write_array(values: Sequence[float | None]) -> str:
    """As PostgreSQL reads it; psycopg looks for the type of each value."""
    texts = ("NULL" if value is None else repr(value) for value in values)
    return f"{{{','.join(texts)}}}"


def create_points(run: Run, metrics: Metrics) -> None:
    """A point in the series of each metric, and the latest state of each of them."""
    create_points_of_runs([(run, metrics)])


def create_points_of_runs(measured: Sequence[tuple[Run, Metrics]]) -> None:
    """The same of runs of one configuration, the oldest first."""
    first, _ = measured[0]
    known = first.configuration.series.select_related("metric")
    series = {(row.metric.name, row.phase): row for row in known}
    missing = {
        key: row for _, metrics in measured for row in metrics if (key := metric_key(row)) not in series
    }
    series |= dict(zip(missing, create_all_series(first, list(missing.values())), strict=True))
    values: dict[tuple[str, str], list[float]] = {}
    newest: dict[tuple[str, str], Run] = {}
    points = []
    for run, metrics in measured:
        for row in metrics:
            key = metric_key(row)
            values.setdefault(key, []).append(row["value"])
            newest[key] = run
            told = (row[name] for name in ("value", "low", "high"))
            samples = write_array(row["samples"])
            points.append((series[key].pk, run.commit.position, run.pk, run.tainted, *told, samples))
    # By COPY: a history has thousands of points, which Django takes longer to write down than all else.
    with connection.cursor() as cursor, cursor.copy(COPY_POINTS) as copy:
        for point in points:
            copy.write_row(point)
    latest = SeriesLatest.objects.filter(series__in=[series[key].pk for key in values])
    before = dict(latest.values_list("pk", "recent"))
    SeriesLatest.objects.bulk_create(
        [
            SeriesLatest(
                series=series[key], run=newest[key], position=newest[key].commit.position, value=of_key[-1],
                recent=[*before.get(series[key].pk, ()), *of_key][-30:],
                current_value=None if newest[key].tainted else median(of_key[-5:]),
            )
            for key, of_key in values.items()
        ],
        update_conflicts=True, unique_fields=["series"],
        update_fields=["run", "position", "value", "recent", "current_value", "updated_at"],
    )  # fmt: skip


def metric_key(metric: Mapping[str, Any]) -> tuple[str, str]:
    return metric["name"], metric["phase"] or ""


def create_series(run: Run, metric: Mapping[str, Any]) -> Series:
    (made,) = create_all_series(run, [metric])
    return made


def create_all_series(run: Run, metrics: Metrics) -> list[Series]:
    """A series of each of these metrics, by a few queries: a document has some fifty."""
    known = {
        (row.name, row.better): row
        for row in Metric.objects.filter(name__in={row["name"] for row in metrics})
    }
    new = {(row["name"], row["better"]): row for row in metrics if (row["name"], row["better"]) not in known}
    made = Metric.objects.bulk_create(
        Metric(**{name: row[name] for name in ("name", "unit", "better", "kind")}) for row in new.values()
    )
    known |= {(row.name, row.better): row for row in made}
    return Series.objects.bulk_create(
        Series(
            configuration=run.configuration, metric=known[row["name"], row["better"]],
            phase=row["phase"] or "", headline=row["headline"], exact=row["exact"],
        )
        for row in metrics
    )  # fmt: skip


def headline_series(case: Case, name: str = "step_time") -> Series:
    return Series.objects.get(configuration__case=case, metric__name=name, phase="")


def create_change(
    series: Series, last_good: Commit, first_bad: Commit, ratio: float, **fields: Any
) -> Change:
    before = Point.objects.filter(series=series, run__commit=last_good).values_list("value", flat=True)[0]
    worse = (ratio > 1) == (series.metric.better == "lower")
    direction = Change.Direction.REGRESSION if worse else Change.Direction.IMPROVEMENT
    return Change.objects.create(
        series=series, first_bad=first_bad, last_good=last_good, position=first_bad.position,
        direction=direction, before=before, after=before * ratio, ratio=ratio, low=ratio - 0.03,
        high=ratio + 0.03, confidence=0.998, reach_good=last_good.position, reach_bad=first_bad.position,
        **fields,
    )  # fmt: skip


def create_regression(
    series: Series, last_good: Commit, first_bad: Commit, ratio: float = 1.38, **fields: Any
) -> Regression:
    """With its change, and what the profiles and the phases say."""
    change = create_change(series, last_good, first_bad, ratio)
    sizes = {name: getattr(change, name) for name in ("before", "after", "ratio", "low", "high")}
    values = {"phase": "learn/push", "phase_share": 0.92, "place": Regression.Place.HOST_ALONE}
    values |= {"suspects": [SUSPECT], "operations": [OPERATION]} | fields
    regression = Regression.objects.create(
        project=first_bad.project, first_bad=first_bad, last_good=last_good, series=series, **sizes, **values
    )
    Change.objects.filter(pk=change.pk).update(regression=regression)
    return regression


SUSPECT = {
    "function": "push", "file": "trainers/snake_dqn/replay.py", "line": 31, "phase": "learn/push",
    "calls_before": 1, "calls_after": 256, "self_before": 2.1e-5, "self_after": 3.9e-4, "changed": True,
}  # fmt: skip


DEVICE = {
    "step": [0.010, 0.0138],
    "busy": [0.006, 0.0075],
    "kernels": [
        {
            "kernel": "index_put_kernel<float>", "operation": "aten::index_put_", "phase": "learn/push",
            "count_before": 0.0, "count_after": 12.0, "seconds_before": 0.0, "seconds_after": 0.0012,
        },
        {
            "kernel": "ampere_sgemm_128x64_tn", "operation": "aten::addmm", "phase": "learn/forward",
            "count_before": 6.0, "count_after": 6.0, "seconds_before": 0.0042, "seconds_after": 0.0045,
        },
    ],
    "idle": [
        {
            "cause": "data", "phase": "data_loading", "spread": False,
            "seconds_before": 0.001, "seconds_after": 0.0031,
        },
        {
            "cause": "unexplained", "phase": "", "spread": False,
            "seconds_before": 0.0001, "seconds_after": 0.0003,
        },
        {
            "cause": "host", "phase": "rollout/act", "spread": True,
            "seconds_before": 0.0029, "seconds_after": 0.0029,
        },
    ],
}  # fmt: skip


OPERATION = {
    "operation": "aten::stack", "phase": "learn/push", "count_before": 1, "count_after": 256,
    "seconds_before": 1.1e-5, "seconds_after": 2.3e-4, "share": 0.61,
}  # fmt: skip


def create_limit(series: Series, run: Run, maximum: float, **fields: Any) -> Limit:
    """How a run stood to an upper bound on a series that it has a point in."""
    value = Point.objects.get(series=series, run=run).value
    values = {"maximum": maximum, "value": value, "crossed": value > maximum} | fields
    limit = Limit.objects.create(series=series, run=run, position=run.commit.position, **values)
    SeriesLatest.objects.filter(series=series, run=run).update(limit=limit)
    return limit


def create_delivery(
    regression: Regression, state: str = Delivery.State.DELIVERED, **channel: Any
) -> Delivery:
    defaults = {"kind": Channel.Kind.EMAIL, "address": "team@example.org"}
    to, _ = Channel.objects.get_or_create(project=regression.project, **(defaults | channel))
    failed = state != Delivery.State.DELIVERED
    return Delivery.objects.create(
        regression=regression, channel=to, event="opened", state=state, attempt=3 if failed else 1,
        errors=["The receiver answered 503.", "The receiver did not answer in 10 s."] if failed else [],
        next_attempt_at=timezone.now(), delivered_at=None if failed else timezone.now(),
    )  # fmt: skip


def create_history(
    slug: str = "snake", count: int = 3, step_at: int | None = None, cases: int = 1
) -> Project:
    """A project whose every case was measured at each of `count` commits; slower from `step_at` on."""
    project = create_project(slug)
    noise = random.Random(len(slug) + count)  # noqa: S311
    commits = create_commits(project, count)
    variants = ("optimized", "baseline", *(f"v{number}" for number in range(cases)))
    for number in range(cases):
        case = create_case(project, variant=variants[number])
        measured = []
        for commit in commits:
            slow = 1.38 if step_at is not None and commit.position >= step_at else 1.0
            base = 0.00105 * (1 + 1.4 * number) * slow * noise.gauss(1, 0.008)
            measured.append((commit, create_document(case, base, random.Random(commit.position))))  # noqa: S311
        create_points_of_runs(create_documented_runs(case, measured))
    return project


def create_measured_commits(count: int, step_at: int | None = None) -> list[Commit]:
    """The commits of a new history of one case, oldest first."""
    project = create_history(count=count, step_at=step_at)
    return list(Commit.objects.filter(project=project).order_by("position"))


def create_only_run(state: str, **fields: Any) -> Run:
    """The run of a new project that has no other."""
    project = create_project()
    return create_run(create_commits(project, 1)[0], create_case(project), state, **fields)


def create_stepped_regression(**fields: Any) -> Regression:
    """Of the step time of a new history of four commits, of which the third is the first bad one."""
    commits = create_measured_commits(4, step_at=2)
    return create_regression(headline_series(commits[0].runs.get().case), commits[1], commits[2], **fields)
