"""Asking for an experiment: on two commits of a case, or on two cases at one commit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from paceline.metrics import describe_metric

from dashboard import dispatch
from dashboard.models import Case, Commit, Configuration, Experiment, Metric, Project, Series

DEFAULT_PRECISION = 0.01
MOST_MINUTES = 10_080.0


class ExperimentError(Exception):
    """The experiment can't be asked for; the message is one sentence that names the field."""


@dataclass(frozen=True, slots=True)
class Side:
    commit: Commit
    configuration: Configuration


def ask_experiment(
    project: Project,
    purpose: str,
    question: str,
    base: Side,
    head: Side,
    metric: Metric,
    *,
    phase: str = "",
    before: float | None = None,
    after: float | None = None,
    precision: float | None = None,
    error: float | None = None,
    minutes: float | None = None,
    requested_by: Any = None,
) -> Experiment:
    """Request it; a machine of the configurations' pool is rung for on commit.

    `before` and `after` are the levels of the step that a test or a place is about, in the metric's unit;
    `precision` is what an estimate stops at. The budgets are the project's where none are given.
    """
    risk = {} if error is None else {"error": error}
    experiment = Experiment.objects.create(
        project=project,
        purpose=purpose,
        question=question,
        base_commit=base.commit,
        head_commit=head.commit,
        base_configuration=base.configuration,
        head_configuration=head.configuration,
        metric=metric,
        phase=phase,
        before=before,
        after=after,
        precision=precision,
        most_pairs=project.experiment_pairs,
        most_seconds=60 * (minutes or project.experiment_minutes),
        requested_by=requested_by,
        **risk,
    )
    dispatch.wake_workers(head.configuration.pool.name)
    return experiment


def ask_estimate(
    project: Project,
    purpose: str,
    base: Side,
    head: Side,
    metric: Metric,
    *,
    phase: str = "",
    precision: float = DEFAULT_PRECISION,
    minutes: float | None = None,
    requested_by: Any = None,
) -> Experiment:
    """How large the difference of two sides is, where nobody suspects a step. Raises ExperimentError.

    One that is asked for or under way, of the same sides and metric, is returned instead of a second one.
    """
    if base == head:
        raise ExperimentError("B: both sides are the same commit and the same case.")
    if not (math.isfinite(precision) and 0.0005 <= precision <= 1):
        raise ExperimentError(f"precision: {precision:.4g} isn't between 0.05 % and 100 %.")
    if minutes is not None and not (math.isfinite(minutes) and 0 < minutes <= MOST_MINUTES):
        raise ExperimentError(f"minutes: {minutes:g} isn't above 0 and at most {MOST_MINUTES:,.0f}.")
    same = Experiment.objects.filter(
        state__in=Experiment.ACTIVE,
        question=Experiment.Question.ESTIMATE,
        base_commit=base.commit,
        head_commit=head.commit,
        base_configuration=base.configuration,
        head_configuration=head.configuration,
        metric=metric,
        phase=phase,
    ).first()
    return same or ask_experiment(
        project,
        purpose,
        Experiment.Question.ESTIMATE,
        base,
        head,
        metric,
        phase=phase,
        precision=precision,
        minutes=minutes,
        requested_by=requested_by,
    )


def known_metric(name: str, configuration: Configuration) -> Metric:
    """The metric of that name, as the configuration has it. Raises ExperimentError."""
    measured = Series.objects.filter(configuration=configuration, metric__name=name)
    series = measured.select_related("metric").first()
    if series:
        return series.metric
    known = describe_metric(name)
    if known is None:
        names = measured_names(configuration)
        raise ExperimentError(f"metric: {name!r} isn't measured for {configuration.case}; it has {names}.")
    metric, _ = Metric.objects.get_or_create(
        name=known.name, better=known.better, defaults={"unit": known.unit, "kind": known.kind}
    )
    return metric


def measured_names(configuration: Configuration) -> str:
    """The headline metrics of a configuration, for a sentence."""
    rows = Series.objects.filter(configuration=configuration, phase="", headline=True)
    names = rows.order_by("metric__name").values_list("metric__name", flat=True).distinct()
    return ", ".join(names) or "none yet"


def newest_configuration(case: Case) -> Configuration:
    """The configuration in which a case was measured last, standard ones first. Raises ExperimentError."""
    known = Configuration.objects.filter(case=case).select_related("case", "pool")
    newest = known.order_by("quick", "-version", "-pk").first()
    if newest is None:
        raise ExperimentError(f"case: {case} was never measured.")
    return newest
