"""Requests an experiment: on two commits of a case, or on two cases at one commit."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import IntegrityError, transaction
from paceline.metrics import describe_metric, phase_problem

from dashboard import dispatch
from dashboard.detection import pairs
from dashboard.experiments.errors import ExperimentError
from dashboard.models import Commit, Configuration, Experiment, Metric, Project, Series

DEFAULT_METRIC = "step_time"
DEFAULT_PRECISION = 0.01
# Of a case that has no series yet.
NOTHING_MEASURED = "step_time, throughput, peak_memory and phase_time:PHASE always are."
LEAST_PRECISION, MOST_PRECISION = 0.0005, 1.0
MOST_MINUTES = 10_080.0
# An estimate ends at its precision or at the end of its minutes; so many pairs are more than either takes.
ESTIMATE_PAIRS = 400
LONGEST_PHASE = 200
# A sentence lists so many names.
MOST_LISTED = 40


@dataclass(frozen=True, slots=True)
class Side:
    commit: Commit
    configuration: Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentDesign:
    """What is measured, and what ends it. The budgets that aren't given are the project's.

    `before` and `after` are the levels of the step that a test or a place is about, in the metric's unit;
    `phases_with_step` show it alone, and are weighed beside the whole. `precision` is what an estimate stops
    at, `floor` the difference that a bound is about. `by_means_alone`: single steps don't find what it is
    about.
    """

    purpose: str
    base: Side
    head: Side
    metric: Metric
    question: str = Experiment.Question.ESTIMATE
    phase: str = ""
    phases_with_step: Sequence[str] = ()
    before: float | None = None
    after: float | None = None
    precision: float | None = None
    floor: float | None = None
    error: float = pairs.ERROR
    minutes: float | None = None
    most_pairs: int | None = None
    by_means_alone: bool = False
    requested_by: Any = None

    @property
    def compared(self) -> dict[str, Any]:
        """The columns that say what is weighed, of which sides."""
        return {
            "question": self.question,
            "base_commit": self.base.commit,
            "head_commit": self.head.commit,
            "base_configuration": self.base.configuration,
            "head_configuration": self.head.configuration,
            "metric": self.metric,
            "phase": self.phase,
        }


def request_experiment(project: Project, design: ExperimentDesign) -> Experiment:
    """Store it as requested; a machine of the configurations' pool is woken on commit."""
    experiment = Experiment.objects.create(
        project=project,
        **design.compared,
        purpose=design.purpose,
        phases_with_step=list(design.phases_with_step),
        before=design.before,
        after=design.after,
        precision=design.precision,
        floor=design.floor,
        error=design.error,
        most_pairs=design.most_pairs or project.experiment_pairs,
        most_seconds=60 * (design.minutes or project.experiment_minutes),
        by_means_alone=design.by_means_alone,
        requested_by=design.requested_by,
    )
    dispatch.wake_workers(design.head.configuration.pool.name)
    return experiment


def request_estimate(project: Project, design: ExperimentDesign) -> tuple[Experiment, bool]:
    """How large the difference of two sides is, where nobody suspects a step. Raises ExperimentError.

    (experiment, whether it is new): of the same sides and metric one is under way at a time.
    """
    precision = DEFAULT_PRECISION if design.precision is None else design.precision
    check_sides(design.base, design.head)
    check_budget(precision, design.minutes)
    same = Experiment.objects.filter(state__in=Experiment.ACTIVE, **design.compared)
    if known := same.first():
        return known, False
    design = replace(design, precision=precision, most_pairs=max(project.experiment_pairs, ESTIMATE_PAIRS))
    try:
        with transaction.atomic():
            return request_experiment(project, design), True
    except IntegrityError:
        if known := same.first():
            return known, False  # Somebody else asked at the same moment.
        raise


def check_budget(precision: float, minutes: float | None) -> None:
    """Refuse what no experiment could end by."""
    if not (math.isfinite(precision) and LEAST_PRECISION <= precision <= MOST_PRECISION):
        bounds = f"{100 * LEAST_PRECISION:g} % and {100 * MOST_PRECISION:g} %"
        raise ExperimentError("precision", f"{100 * precision:.4g} % isn't between {bounds}.")
    if minutes is not None and not (math.isfinite(minutes) and 0 < minutes <= MOST_MINUTES):
        raise ExperimentError("minutes", f"{minutes:g} isn't above 0 and at most {MOST_MINUTES:,.0f}.")


def check_sides(base: Side, head: Side) -> None:
    """Refuse sides that one machine can't measure in one way, or that are the same."""
    if base == head:
        raise ExperimentError("head", "it is the same commit and the same case as the base.")
    of_head, of_base = head.configuration, base.configuration
    if of_head.case.benchmark != of_base.case.benchmark:
        raise ExperimentError("head_case", f"{of_head.case} and {of_base.case} are two benchmarks.")
    if of_head.version != of_base.version:
        raise ExperimentError(
            "case",
            f"{of_head.case.benchmark} is version {of_base.version} at {base.commit} and {of_head.version} "
            f"at {head.commit}: they measure different things.",
        )
    if (of_head.pool_id, of_head.quick) != (of_base.pool_id, of_base.quick):
        raise ExperimentError("case", f"{of_head} and {of_base} aren't measured alike.")


def find_metric(spelling: str, configuration: Configuration) -> tuple[Metric, str]:
    """The metric and the phase of `step_time`, `phase_time:learn` and the like. Raises ExperimentError."""
    name, _, phase = spelling.partition(":")
    measured = Series.objects.filter(configuration=configuration, metric__name=name, phase=phase)
    series = measured.select_related("metric").first()
    if series:
        return series.metric, phase
    known = describe_metric(name)
    # What the code reports itself is known by the runs that reported it.
    if known is None or "." in name:
        names = measured_names(configuration, name)
        raise ExperimentError(
            "metric", f"{spelling!r} isn't measured of {configuration.case}; {names or NOTHING_MEASURED}"
        )
    if problem := phase_problem(spelling):
        raise ExperimentError("metric", f"{problem}.")
    if len(phase) > LONGEST_PHASE:
        raise ExperimentError("metric", f"a phase has {LONGEST_PHASE} characters at most.")
    refuse_unreported_phase(name, phase, configuration)
    metric, _ = Metric.objects.get_or_create(
        name=known.name, better=known.better, defaults={"unit": known.unit, "kind": known.kind}
    )
    return metric, phase


def refuse_unreported_phase(name: str, phase: str, configuration: Configuration) -> None:
    """Refuse a phase that no run of the case has, where runs list its phases: no pair would have it."""
    if not phase:
        return
    rows = Series.objects.filter(configuration=configuration, metric__name=name).exclude(phase="")
    phases = list(rows.order_by("phase").values_list("phase", flat=True).distinct())
    if phases and phase not in phases:
        raise ExperimentError(
            "metric",
            f"no run of {configuration.case} has {name} of {phase!r}; {list_names(phases, phase)} Of a new "
            "phase measure a commit that has it first.",
        )


def measured_names(configuration: Configuration, wanted: str) -> str:
    """Which of the case's metrics may be meant, or all of a whole step; empty before its first run."""
    rows = Series.objects.filter(configuration=configuration, phase="")
    names = list(rows.order_by("metric__name").values_list("metric__name", flat=True).distinct())
    return list_names(names, wanted) if names else ""


def list_names(names: Sequence[str], wanted: str) -> str:
    """The end of a sentence: the name that may be meant, or else `it has act, data_loading.`"""
    if near := difflib.get_close_matches(wanted, names, n=1, cutoff=0.7):
        return f"did you mean {near[0]}?"
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"it has {', '.join(names[:MOST_LISTED])}{more}."
