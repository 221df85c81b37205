"""The planned steps of a history, stored as changes and regressions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bench.history.case_history import CaseHistory
    from dashboard.models import Commit, Experiment, Machine, Project, Regression

STATES = {"confirmed": 0.8, "suspected": 0.1, "undecided": 0.06, "refuted": 0.04}
TRIAGED = {"": 0.7, "acknowledged": 0.15, "intended": 0.1, "not real": 0.05}
PAIRS = 8


def store_regressions(
    project: Project,
    line: Sequence[Commit],
    histories: Sequence[CaseHistory],
    machine: Machine,
    now: datetime,
    random: np.random.Generator,
) -> None:
    """A change in the step time for each step, a regression for each one for the worse, and its proof."""
    from django.db import connection

    from dashboard.models import Change, Regression

    changes, regressions = [], []
    for history in histories:
        level = 1.0
        series = history.series[0]
        opened: dict[int, Regression] = {}
        for step in history.steps:
            first_bad, last_good = line[step.position], line[step.position - 1]
            sizes = {
                "before": level * 0.01,
                "after": level * step.factor * 0.01,
                "ratio": step.factor,
                "low": step.factor * 0.985,
                "high": step.factor * 1.015,
            }
            level *= step.factor
            regression = opened.get(step.repairs) if step.repairs is not None else None
            if regression is not None:
                regression.recovered_by = first_bad
            else:
                regression = _describe_regression(project, series, first_bad, last_good, sizes, now, random)
                opened[step.position] = regression
                regressions.append(regression)
            worse = step.repairs is None
            changes.append(
                Change(
                    series=series,
                    first_bad=first_bad,
                    last_good=last_good,
                    position=step.position,
                    direction=Change.Direction.REGRESSION if worse else Change.Direction.IMPROVEMENT,
                    confidence=0.995,
                    reach_good=last_good.position,
                    reach_bad=first_bad.position,
                    regression=regression if worse else None,
                    **sizes,
                )
            )
    Regression.objects.bulk_create(regressions)
    Change.objects.bulk_create(changes)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE dashboard_regression SET opened_at = committed_at + interval '3 hours' "
            "FROM dashboard_commit WHERE dashboard_commit.id = first_bad_id AND "
            "dashboard_regression.project_id = %s",
            [project.pk],
        )
    _store_proofs(regressions, machine, random)


def _describe_regression(
    project: Project,
    series: Any,
    first_bad: Commit,
    last_good: Commit,
    sizes: dict[str, float],
    now: datetime,
    random: np.random.Generator,
) -> Regression:
    from dashboard.models import Regression

    triaged = str(random.choice(list(TRIAGED), p=list(TRIAGED.values())))
    return Regression(
        project=project,
        series=series,
        first_bad=first_bad,
        last_good=last_good,
        state=str(random.choice(list(STATES), p=list(STATES.values()))),
        phase="learn/part_01",
        phase_share=float(random.uniform(0.5, 0.98)),
        place=Regression.Place.HOST_ALONE,
        cause=Regression.Cause.CODE,
        triaged=triaged,
        triaged_at=now if triaged else None,
        **sizes,
    )


def _store_proofs(regressions: Sequence[Regression], machine: Machine, random: np.random.Generator) -> None:
    from dashboard.models import Experiment, ExperimentPair, RegressionExperiment

    proven = [
        (regression, _describe_proof(regression, machine))
        for regression in regressions
        if regression.state != "suspected"
    ]
    Experiment.objects.bulk_create(experiment for _, experiment in proven)
    RegressionExperiment.objects.bulk_create(
        RegressionExperiment(
            regression=regression,
            experiment=experiment,
            series=regression.series,
            applied_at=experiment.finished_at,
        )
        for regression, experiment in proven
    )
    ExperimentPair.objects.bulk_create(
        ExperimentPair(
            experiment=experiment,
            index=index,
            base_first=index % 2 == 0,
            base=regression.before * float(np.exp(random.normal(0, 0.01))),
            head=regression.after * float(np.exp(random.normal(0, 0.01))),
            seconds=12.0,
            measured_at=experiment.finished_at,
        )
        for regression, experiment in proven
        for index in range(PAIRS)
    )


def _describe_proof(regression: Regression, machine: Machine) -> Experiment:
    from dashboard.models import Experiment

    began = regression.first_bad.committed_at + timedelta(minutes=10)
    verdict = {"refuted": Experiment.Verdict.REFUTED, "undecided": Experiment.Verdict.UNDECIDED}
    configuration = regression.series.configuration
    return Experiment(
        project=regression.project,
        purpose=Experiment.Purpose.PROOF,
        question=Experiment.Question.TEST,
        base_commit=regression.last_good,
        head_commit=regression.first_bad,
        base_configuration=configuration,
        head_configuration=configuration,
        metric=regression.series.metric,
        before=regression.before,
        after=regression.after,
        error=0.01,
        most_pairs=24,
        most_seconds=1200,
        state=Experiment.State.DONE,
        verdict=verdict.get(regression.state, Experiment.Verdict.CONFIRMED),
        machine=machine,
        ratio=regression.ratio,
        low=regression.low,
        high=regression.high,
        seconds=12.0 * PAIRS,
        requested_at=began,
        measuring_at=began,
        finished_at=began + timedelta(minutes=3),
    )
