"""The site of the bench: projects with a history, and runs that wait for their documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from bench.history.plan import HistoryPlan
from bench.history.values import REPETITIONS, STEP_SECONDS
from bench.ingest.documents import SERIES, case_kinds, draw_documents

if TYPE_CHECKING:
    from dashboard.host_protocol import Lease
    from dashboard.models import Configuration, Machine

PROJECTS, CASES, COMMITS = 2, 2, 500
REGRESSIONS = 8
# The first case of each project becomes slower by so much, from the middle of the runs on.
STEP = 1.3
LEASE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run whose host has measured it, and the document that it hands in."""

    lease: Lease
    document: bytes


def plan_site() -> HistoryPlan:
    """As long a history as judging looks back, and some more."""
    runs = PROJECTS * CASES * COMMITS
    return HistoryPlan(
        series=PROJECTS * CASES * SERIES,
        points=runs * SERIES,
        runs=runs,
        regressions=REGRESSIONS,
        projects=PROJECTS,
        documents=PROJECTS * CASES,
    )


def fill_with_history() -> None:
    from django.utils import timezone

    from bench.history.filling import fill_site, refresh_statistics

    fill_site(plan_site(), timezone.now(), lambda _share, _text: None, case_kinds())
    refresh_statistics()


def create_waiting_runs(machine: Machine, commits: int) -> list[WaitingRun]:
    """Of so many new commits of each project a run of each case, commit by commit, held by the machine."""
    from dashboard.leases import lease_end, lease_of
    from dashboard.models import Configuration, Project, Run
    from tests.dashboard.factories import create_commits

    noise, kinds = np.random.default_rng(2), case_kinds()
    rows: list[tuple[int, WaitingRun]] = []
    for project in Project.objects.order_by("pk"):
        newest = project.commits.filter(branch=project.branch).latest("position")
        line = create_commits(project, commits, first=newest.position + 1)
        configurations = Configuration.objects.filter(case__project=project).select_related("case")
        for number, configuration in enumerate(configurations.order_by("pk")):
            factors = np.full(commits, _level_of(configuration))
            if number == 0:
                factors[commits // 2 :] *= STEP
            documents = draw_documents(configuration.case, kinds, factors, noise)
            for place, (commit, document) in enumerate(zip(line, documents, strict=True)):
                run = Run.objects.create(
                    commit=commit,
                    configuration=configuration,
                    machine=machine,
                    state=Run.State.STORING,
                    attempt=1,
                    lease=uuid4(),
                    lease_until=lease_end(LEASE_SECONDS),
                    repetitions=REPETITIONS,
                    time_limit=600,
                )
                rows.append((place, WaitingRun(lease_of(run), document)))
    return [waiting for _, waiting in sorted(rows, key=lambda row: row[0])]


def _level_of(configuration: Configuration) -> float:
    """How many times as long as at first the case takes now, by the history's steps."""
    from dashboard.models import SeriesLatest

    latest = SeriesLatest.objects.get(
        series__configuration=configuration, series__metric__name="step_time", series__phase=""
    )
    return float(latest.level or STEP_SECONDS) / STEP_SECONDS
