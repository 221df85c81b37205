"""Submits the estimate that a person or a script has written: read, checked and requested."""

from __future__ import annotations

from django.db import transaction

from dashboard.access import Actor, AuditAction, Visitor, record_action
from dashboard.experiments.errors import ExperimentError
from dashboard.experiments.estimate_request import EstimateRequest
from dashboard.experiments.requests import (
    DEFAULT_METRIC,
    DEFAULT_PRECISION,
    LEAST_PRECISION,
    ExperimentDesign,
    check_budget,
    find_metric,
    refuse_unreported_phase,
    request_estimate,
)
from dashboard.experiments.sides import PAGE_SECONDS, create_sides, find_sides
from dashboard.models import Experiment, Project


def submit_estimate(
    project: Project, request: EstimateRequest, purpose: str, actor: Actor
) -> tuple[Experiment, bool]:
    """(experiment, whether it is new). Reads the project's repository. Raises ExperimentError."""
    requested_by = actor.user if isinstance(actor, Visitor) else None
    precision, minutes = parse_precision(request.precision), parse_minutes(request.minutes)
    check_budget(precision, minutes)
    # A visitor waits for the answer to a request; a command has all the time it takes.
    found = find_sides(project, request, PAGE_SECONDS if isinstance(actor, Visitor) else None)
    with transaction.atomic():
        base, head = create_sides(project, found)
        metric, phase = find_metric(request.metric.strip() or DEFAULT_METRIC, head.configuration)
        # Of a toggle the head's case may be new, and the base's known.
        refuse_unreported_phase(metric.name, phase, base.configuration)
        design = ExperimentDesign(
            purpose=purpose,
            base=base,
            head=head,
            metric=metric,
            phase=phase,
            precision=precision,
            minutes=minutes,
            requested_by=requested_by,
        )
        experiment, new = request_estimate(project, design)
        if new:
            record_action(actor, AuditAction.EXPERIMENT_REQUESTED, project, experiment)
        return experiment, new


def parse_precision(text: str) -> float:
    """`1%`, `1 %` or `0.01` as 0.01; DEFAULT_PRECISION where nothing is written."""
    spelling = text.strip()
    if not spelling:
        return DEFAULT_PRECISION
    percent = spelling.endswith("%")
    number = parse_number("precision", spelling.removesuffix("%"))
    if not percent and number >= 1:
        raise ExperimentError("precision", f"{spelling} could be one of a hundred or all: write {spelling}%.")
    return number / 100 if percent else number


def parse_minutes(text: str) -> float | None:
    """None, for the project's own budget, where nothing is written."""
    return parse_number("minutes", text) if text.strip() else None


def parse_number(field: str, text: str) -> float:
    example = f"{100 * LEAST_PRECISION:g}%" if field == "precision" else "20"
    try:
        return float(text)
    except ValueError:
        raise ExperimentError(field, f"{text.strip()!r} isn't a number, such as {example}.") from None
