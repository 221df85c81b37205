"""Experiments: which there are, what their pairs say, and asking for one."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from dashboard import cancelling, experiments
from dashboard.access import visitor_of
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import (
    Body,
    CommitName,
    Configured,
    Json,
    MetricName,
    OneOf,
    configured_members,
    describe_commit_name,
    describe_metric_name,
    page_address,
)
from dashboard.experiments import EstimateRequest, ExperimentError
from dashboard.models import Experiment, Project
from dashboard.problem_details import ApiError
from dashboard.querysets import experiments as experiment_queries
from dashboard.querysets.deferred_joins import PAIR_DETAILS
from dashboard.sentences.comparisons import experiments as sentences

router = Router(tags=["experiments"])

LONGEST_TEXT = 1000


class Side(Configured):
    """A commit with what is measured of it."""

    commit: CommitName


class ExperimentRow(BaseModel):
    """An interleaved, paired measurement of two sides on one machine."""

    id: int
    url: str = Field(description="Its page.")
    project: str
    purpose: str
    question: str
    state: str
    verdict: str | None
    base: Side
    head: Side
    metric: MetricName
    phase: str = Field(description="Empty: the whole step.")
    precision: float | None
    floor: float | None
    ratio: float | None = Field(description="head / base, as far as the pairs say.")
    low: float | None
    high: float | None
    difference: float | None = Field(description="head - base, where the values have no ratio.")
    difference_low: float | None
    difference_high: float | None
    by_steps: bool | None = Field(
        description="Determined by the pairs' single steps, else by their means; null: not known."
    )
    sentence: str = Field(description="The answer in words.")
    reason: Json = Field(description="Why there is no clearer verdict, or why it was cancelled.")
    machine: str | None
    measured_pairs: int
    disturbed_pairs: int
    seconds: float | None
    requested_by: str | None
    requested_at: datetime
    finished_at: datetime | None


class ExperimentPage(ListedPage):
    items: list[ExperimentRow]


class ExperimentQuery(PageQuery):
    state: Annotated[str, OneOf(list(experiment_queries.STATES))] = "all"
    purpose: Annotated[str, OneOf(["", *Experiment.Purpose.values])] = ""


class PairRow(BaseModel):
    """One repetition of each side, measured next to each other."""

    index: int
    base_first: bool
    base: float | None
    head: float | None
    disturbed: bool = Field(description="Kept and not weighed: other work disturbed it.")
    seconds: float | None
    ratio: float | None = Field(description="What this pair and those before it say together.")
    low: float | None
    high: float | None
    measured_at: datetime


class PairPage(ListedPage):
    items: list[PairRow]


class ExperimentBody(Body):
    """What is to be measured against what; what is empty is left to Paceline."""

    base: str = Field(
        max_length=LONGEST_TEXT,
        description="A commit: hash, branch or tag; or the head's baseline: rolling, merge-base, pinned.",
    )
    head: str = Field("", max_length=LONGEST_TEXT, description="Another commit; empty: the base's.")
    case: str = Field("", max_length=LONGEST_TEXT, description="A case, or a part of one that names it.")
    head_case: str = Field("", max_length=LONGEST_TEXT, description="The head's, where it is another one.")
    toggle: str = Field("", max_length=LONGEST_TEXT, description="What the head has instead: `compile=true`.")
    metric: str = Field("", max_length=LONGEST_TEXT, description="`step_time`, `phase_time:learn`.")
    precision: str = Field("", max_length=40, description="At which it ends: `1%`.")
    minutes: float | None = Field(None, description="At most; null: the project's budget.")
    quick: bool | None = Field(None, description="In short windows; null: as the case is measured.")
    pool: str = Field("", max_length=60, description="Whose machines; empty: as the case is measured.")


@router.get(
    "projects/{slug:slug}/experiments",
    url_name="api-experiments",
    operation_id="list_experiments",
    response=ExperimentPage,
)
def list_experiments(request: HttpRequest, slug: str, query: Query[ExperimentQuery]) -> dict[str, Any]:
    """The experiments of a project, newest first."""
    project = get_object_or_404(Project, slug=slug)
    rows = experiment_queries.project_experiments(project, query.state, query.purpose)
    details = experiment_queries.EXPERIMENTS_OF_KEYS
    return read_page(request, query, rows, ("-id",), lambda row: describe_experiment(request, row), details)


@router.post(
    "projects/{slug:slug}/experiments",
    url_name="api-experiments",
    operation_id="ask_experiment",
    response={HTTPStatus.CREATED: ExperimentRow, HTTPStatus.OK: ExperimentRow},
)
def ask_experiment(request: HttpRequest, slug: str, body: ExperimentBody) -> Status[ExperimentRow]:
    """Ask how large the difference of two commits, or of two cases at one commit, is.

    Answers 200 with the experiment that is under way, where the same was asked before.
    """
    project, visitor = get_object_or_404(Project, slug=slug), visitor_of(request)
    written = body.model_dump()
    written["minutes"] = "" if body.minutes is None else str(body.minutes)
    purpose = Experiment.Purpose.SCRIPT if visitor.token else Experiment.Purpose.PERSON
    try:
        asked, new = experiments.submit_estimate(project, EstimateRequest(**written), purpose, visitor)
    except ExperimentError as error:
        sentence = f"{error.field}: {error.sentence}"
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, error.field) from error
    row = experiment_queries.experiments_with_related().get(pk=asked.pk)
    return Status(HTTPStatus.CREATED if new else HTTPStatus.OK, describe_experiment(request, row))


@router.get(
    "experiments/{int:pk}",
    url_name="api-experiment",
    operation_id="read_experiment",
    response=ExperimentRow,
)
def read_experiment(request: HttpRequest, pk: int) -> ExperimentRow:
    """One experiment."""
    row = get_object_or_404(experiment_queries.experiments_with_related(), pk=pk)
    return describe_experiment(request, row)


@router.get("experiments/{int:pk}/pairs", url_name="api-pairs", operation_id="list_pairs", response=PairPage)
def list_pairs(request: HttpRequest, pk: int, query: Query[PageQuery]) -> dict[str, Any]:
    """The pairs of an experiment, in the order in which they were measured."""
    rows = get_object_or_404(Experiment, pk=pk).pairs.defer(*PAIR_DETAILS)
    return read_page(request, query, rows, ("index",), describe_pair)


@router.post(
    "experiments/{int:pk}/cancel",
    url_name="api-experiment-cancel",
    operation_id="cancel_experiment",
    response=ExperimentRow,
)
def cancel_experiment(request: HttpRequest, pk: int) -> ExperimentRow:
    """End an experiment that a person or a script asked for. 409 where it can't be."""
    try:
        cancelling.cancel_experiment(visitor_of(request), get_object_or_404(Experiment, pk=pk))
    except cancelling.NotCancellable as error:
        raise ApiError(HTTPStatus.CONFLICT, str(error)) from error
    return read_experiment(request, pk)


def describe_experiment(request: HttpRequest, experiment: Any) -> ExperimentRow:
    """`experiment` is of `experiments_with_related`."""
    return ExperimentRow(
        id=experiment.pk,
        url=page_address(request, experiment),
        project=experiment.project.slug,
        purpose=experiment.purpose,
        question=experiment.question,
        state=experiment.state,
        verdict=experiment.verdict or None,
        base=describe_side(experiment.base_commit, experiment.base_configuration),
        head=describe_side(experiment.head_commit, experiment.head_configuration),
        metric=describe_metric_name(experiment.metric),
        phase=experiment.phase,
        precision=experiment.precision,
        floor=experiment.floor,
        ratio=experiment.ratio,
        low=experiment.low,
        high=experiment.high,
        difference=experiment.difference,
        difference_low=experiment.difference_low,
        difference_high=experiment.difference_high,
        by_steps=experiment.by_steps,
        sentence=sentences.answer_sentence(experiment),
        reason=experiment.reason,
        machine=experiment.machine.name if experiment.machine else None,
        measured_pairs=experiment.measured,
        disturbed_pairs=experiment.disturbed,
        seconds=experiment.seconds,
        requested_by=experiment.requested_by.get_username() if experiment.requested_by else None,
        requested_at=experiment.requested_at,
        finished_at=experiment.finished_at,
    )


def describe_side(commit: Any, configuration: Any) -> Side:
    return Side(commit=describe_commit_name(commit), **configured_members(configuration))


def describe_pair(pair: Any) -> PairRow:
    return PairRow(
        index=pair.index,
        base_first=pair.base_first,
        base=pair.base,
        head=pair.head,
        disturbed=pair.disturbed,
        seconds=pair.seconds,
        ratio=pair.ratio,
        low=pair.low,
        high=pair.high,
        measured_at=pair.measured_at,
    )
