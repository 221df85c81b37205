"""Writes a planned history into the site's database, project by project; nothing of it asks for judgement."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.history import points, values
from bench.history.case_history import CaseHistory
from bench.history.plan import BRANCHES, HistoryPlan, plan_steps
from bench.history.regressions import store_regressions

if TYPE_CHECKING:
    from dashboard.models import Commit, Machine, Project, Run

BENCHMARKS = ("snake_dqn", "snake_vectorized", "zelda_overworld", "mario_pipeline", "cs2_vision")
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
AUTHORS = ("Ada", "Grace", "Barbara", "Katherine")
HOURS_BETWEEN_COMMITS = 6
RUN_SECONDS = 74.0
FAILED_SHARE = 0.01
RUNS_AT_ONCE = 100
COSTS = {
    "waiting": 4.0,
    "checkout": 0.4,
    "environment": 1.1,
    "start": 9.0,
    "window": 52.0,
    "counting window": 7.5,
}

Report = Callable[[float, str], None]


def fill_site(
    plan: HistoryPlan, now: datetime, report: Report, kinds: Sequence[values.SeriesKind] = ()
) -> None:
    """All of the plan in one transaction: everything, or nothing. `kinds`: of each case, if not the usual."""
    from django.db import transaction

    plan.check_sizes()
    noise = np.random.default_rng(plan.seed)
    with transaction.atomic():
        machines = _create_machines(now)
        for number in range(plan.projects):
            report(number / plan.projects, f"project {number + 1} of {plan.projects}")
            _fill_project(
                plan, number, machines, now, noise, kinds or values.series_kinds(plan.series_per_case)
            )


def _analyze_tables() -> None:
    """Within the transaction nobody else can: without it each case's latest states take seconds."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE dashboard_commit, dashboard_run, dashboard_series, dashboard_point")


def refresh_statistics() -> None:
    """As after years: the planner knows the tables, and their indexes answer by themselves."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _create_machines(now: datetime) -> list[Machine]:
    from dashboard.models import Machine, Pool

    pool, _ = Pool.objects.get_or_create(name="default")
    names = [f"bench-{number}" for number in (1, 2, 3)]
    for name in names:
        Machine.objects.get_or_create(name=name, defaults={"pool": pool, "seen_at": now})
    return list(Machine.objects.filter(name__in=names).select_related("pool"))


def _fill_project(
    plan: HistoryPlan,
    number: int,
    machines: list[Machine],
    now: datetime,
    noise: np.random.Generator,
    kinds: Sequence[values.SeriesKind],
) -> None:
    from dashboard.models import Project

    project = Project.objects.create(
        slug=f"history-{number + 1}", repository=f"/srv/git/history-{number + 1}.git"
    )
    line = _create_commits(project, project.branch, plan.commits, now, fork=None)
    branches = [
        _create_commits(
            project, f"topic-{branch + 1}", plan.commits_of_branch, now, fork=line[-5 * (branch + 1)]
        )
        for branch in range(BRANCHES)
    ]
    commits = [*line, *(commit for branch in branches for commit in branch)]
    planned = plan_steps(plan.regressions_of(number), plan.commits, plan.cases_per_project, noise)
    histories = []
    for index in range(plan.cases_per_project):
        steps = [step for step in planned if step.case == index]
        history = _create_case_history(project, index, commits, kinds, machines, noise)
        history.steps = steps
        _store_points(history, kinds, plan, noise)
        histories.append(history)
        if index == 0:
            _analyze_tables()
    store_regressions(project, line, histories, machines[0], now, noise)
    _store_documents(histories, plan)


def _create_commits(
    project: Project, branch: str, count: int, now: datetime, fork: Commit | None
) -> list[Commit]:
    from dashboard.models import Commit

    first = 0 if fork is None else fork.position + 1
    hashes = [
        hashlib.sha256(f"{project.slug} {branch} {place}".encode()).hexdigest()[:40] for place in range(count)
    ]
    return Commit.objects.bulk_create(
        Commit(
            project=project,
            hash=hashes[place],
            parents=hashes[place - 1 : place] if place else [] if fork is None else [fork.hash],
            branch=branch,
            position=first + place,
            fork=None if fork is None else fork.position,
            subject=SUBJECTS[place % len(SUBJECTS)],
            author=AUTHORS[place % len(AUTHORS)],
            committed_at=now - timedelta(hours=HOURS_BETWEEN_COMMITS * (count - place)),
        )
        for place in range(count)
    )


def _create_case_history(
    project: Project,
    index: int,
    commits: list[Commit],
    kinds: Sequence[values.SeriesKind],
    machines: list[Machine],
    noise: np.random.Generator,
) -> CaseHistory:
    from dashboard.models import Case, Configuration, Metric, Series

    size = 2 ** (4 + index // len(BENCHMARKS))
    case = Case.objects.create(
        project=project,
        benchmark=BENCHMARKS[index % len(BENCHMARKS)],
        params={"batch": size},
        key=f"batch={size}",
    )
    configuration = Configuration.objects.create(case=case, version=1, pool=machines[0].pool)
    series = []
    for kind in kinds:
        metric, _ = Metric.objects.get_or_create(
            name=kind.name, better=kind.better, defaults={"unit": kind.unit, "kind": kind.kind}
        )
        series.append(
            Series(
                configuration=configuration,
                metric=metric,
                phase=kind.phase,
                headline=kind.headline,
                exact=kind.exact,
            )
        )
    Series.objects.bulk_create(series)
    tainted = noise.random(len(commits)) < values.TAINTED_SHARE
    runs = _create_runs(configuration, commits, machines, tainted, noise)
    return CaseHistory(case, series, runs, tainted)


def _create_runs(
    configuration: Any,
    commits: list[Commit],
    machines: list[Machine],
    tainted: np.ndarray,
    noise: np.random.Generator,
) -> list[Run]:
    from dashboard.models import Run, RunCost, RunLog

    def describe_run(commit: Commit, place: int) -> Run:
        asked = commit.committed_at + timedelta(minutes=1)
        return Run(
            configuration=configuration,
            commit=commit,
            requested_at=asked,
            claimed_at=asked + timedelta(seconds=COSTS["waiting"]),
            finished_at=asked + timedelta(seconds=RUN_SECONDS),
            judged_at=asked + timedelta(seconds=RUN_SECONDS + 1),
            machine=machines[place % len(machines)],
            attempt=1,
            repetitions=values.REPETITIONS,
            time_limit=600,
        )

    runs = [describe_run(commit, place) for place, commit in enumerate(commits)]
    for run, taint in zip(runs, tainted, strict=True):
        run.state, run.tainted = Run.State.DONE, bool(taint)
        run.warning_codes = ["co_tenant"] if taint else []
    failed = [
        describe_run(commits[place], int(place))
        for place in np.flatnonzero(noise.random(len(commits)) < FAILED_SHARE)
    ]
    for run in failed:
        run.state, run.failure, run.reason = (
            Run.State.FAILED,
            Run.Failure.CRASH,
            "The process ended with status 1.",
        )
    Run.objects.bulk_create([*failed, *runs])
    RunLog.objects.bulk_create(RunLog(run=run, text="warm-up done\ndocument written\n") for run in runs)
    RunCost.objects.bulk_create(
        RunCost(run=run, part=part, seconds=seconds * noise.uniform(0.9, 1.2))
        for run in runs
        for part, seconds in COSTS.items()
    )
    return runs


def _store_points(
    history: CaseHistory, kinds: Sequence[values.SeriesKind], plan: HistoryPlan, noise: np.random.Generator
) -> None:
    from dashboard.ingest.latest import write_latest
    from dashboard.models import SeriesLatest

    positions = np.array([run.commit.position for run in history.runs])
    keys = np.array([run.pk for run in history.runs])
    line = values.level_factors(
        plan.commits, [values.Step(step.position, step.factor) for step in history.steps]
    )
    # Side branches left the line near its end, and keep its level.
    factors = np.concatenate([line, np.full(len(positions) - len(line), line[-1])])

    samples = np.stack([values.draw_samples(kind, factors, history.tainted, noise) for kind in kinds], axis=1)
    series = [row.pk for row in history.series]
    parts = [slice(first, first + RUNS_AT_ONCE) for first in range(0, len(keys), RUNS_AT_ONCE)]
    points.copy_points(
        points.lay_out_points(
            series, kinds, samples[part], keys[part], positions[part], history.tainted[part]
        )
        for part in parts
    )
    write_latest(history.case.project, [series.pk for series in history.series])
    levels = {
        series.pk: float(kind.base * line[-1] ** kind.power)
        for kind, series in zip(kinds, history.series, strict=True)
    }
    latest = list(SeriesLatest.objects.filter(series__in=levels))
    for state in latest:
        state.level = levels[state.pk]
    SeriesLatest.objects.bulk_update(latest, ["level"])


def _store_documents(histories: list[CaseHistory], plan: HistoryPlan) -> None:
    """Of the newest runs alone: a document weighs as much as thousands of points."""
    from dashboard.models import Document, Telemetry
    from tests.dashboard.factories import set_environment
    from tests.pages.documents import create_document

    each = max(1, plan.documents // (plan.projects * len(histories)))
    noise = random.Random(plan.seed)
    for history in histories:
        for run in history.runs[plan.commits - each : plan.commits]:
            body = create_document(history.case, values.STEP_SECONDS, noise)
            Document.objects.create(run=run, format=body["format"], body=body, sha256="0" * 64)
            set_environment(run, body["environment"], body["harness"]["version"])
            Telemetry.objects.bulk_create(Telemetry(run=run, **row) for row in body["telemetry"])
