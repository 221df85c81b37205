"""Regressions with their evidence, what people say about them, and the messages that reported them."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard.access import Action, visitor_of
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
from dashboard.models import Change, Delivery, Project, Regression, Triage
from dashboard.problem_details import ApiError
from dashboard.projects.names import current_slug
from dashboard.querysets import regression_details as details
from dashboard.querysets import regressions as regression_queries
from dashboard.regressions.triage import MOST_LETTERS, TriageError, triage_regression
from dashboard.sentences.administration.deliveries import masked_address, shown_errors
from dashboard.sentences.regressions.regressions import regression_title

router = Router(tags=["regressions"])


class LostLearning(BaseModel):
    """What is said of a loss of quality beside its levels."""

    guard: str | None = Field(description="`violated`, `missing`, `diverged`, `kept`; null: it has no guard.")
    bound: float | None = Field(description="The bound of the guard that was broken.")
    seeds: int = Field(description="Over how many seeds it was proved; 0: not yet.")
    unreported: int = Field(description="In how many of them the new level reported none.")
    step_time_change_percent: float | None = Field(description="In the same pairs; negative: it is faster.")


class RegressionRow(Configured):
    """The changes for the worse that one commit range caused. Its case is that of its primary change."""

    id: int
    url: str = Field(description="Its page.")
    project: str
    title: str = Field(description="What became worse, by how much, since when.")
    kind: str = Field(description="`quality`: training learns less, or no longer; else `performance`.")
    state: str = Field(description="`suspected`, `confirmed`, `undecided` or `refuted`.")
    triaged: str | None = Field(description="What people made of it; null: nothing yet.")
    cause: str | None
    first_bad: CommitName
    last_good: CommitName
    culprit: CommitName | None = Field(description="Of a merge to blame: the commit of its branch.")
    series: int
    metric: MetricName
    series_phase: str = Field(description="Of the series; empty: the whole step.")
    before: float | None = Field(
        description="The level before: of the pairs where they proved the size, else of the points."
    )
    after: float | None = Field(description="The level after, by `ratio` from the one before.")
    ratio: float | None = Field(description="after / before.")
    low: float | None = Field(description="Of the ratio's interval.")
    high: float | None
    phase: str | None = Field(description="The phase that explains most of it.")
    phase_share: float | None = Field(description="How much of it, 0 to 1.")
    recovered_by: CommitName | None
    withdrawn_at: datetime | None
    learning: LostLearning | None = Field(description="Of a loss of quality; else null.")
    opened_at: datetime
    updated_at: datetime


class RegressionPage(ListedPage):
    items: list[RegressionRow]


class RegressionQuery(PageQuery):
    state: Annotated[str, OneOf(list(regression_queries.FILTERS))] = "open"
    project: str = Field("", max_length=60, description="A project's slug; empty: all that you may view.")


class RegressionChange(BaseModel):
    """One of the changes that a regression groups, with the levels of its series' points."""

    series: int
    metric: MetricName
    phase: str
    case: str
    first_bad: str
    last_good: str
    before: float | None
    after: float | None
    ratio: float | None
    low: float | None
    high: float | None


class RegressionProof(BaseModel):
    """An experiment that a regression asked for."""

    experiment: int
    purpose: str
    base: str
    head: str
    state: str
    verdict: str | None
    ratio: float | None
    low: float | None
    high: float | None


class TriageRow(BaseModel):
    """What a person said about a regression."""

    person: str | None
    action: str
    comment: str
    at: datetime


class RegressionEvidence(RegressionRow):
    """A regression with all that it is believed by."""

    suspects: list[Json] = Field(description="Functions, likeliest first, with their calls and own times.")
    operations: list[Json] = Field(description="Tensor operations, with their counts and times.")
    device: Json = Field(description="The device's kernels and idle time that differ; empty without one.")
    slow_processes: list[Json] = Field(
        description="Ranks and DataLoader workers that the others wait for: codes with their values."
    )
    excerpts: list[Json] = Field(description="The lines of suspects that the commits changed.")
    cause_evidence: list[Any]
    bisection: Json
    changes: list[RegressionChange]
    experiments: list[RegressionProof]
    triages: list[TriageRow]


class TriageBody(Body):
    """What a person says about a regression: an action, a comment, or both."""

    action: Annotated[str, OneOf(Triage.Action.values)]
    comment: str = Field("", max_length=MOST_LETTERS)


class DeliveryRow(BaseModel):
    """One message on its way to one channel."""

    id: int
    project: str
    channel: int
    kind: str
    address: str = Field(description="Of e-mail and URLs a part, for who can't operate the project.")
    event: str
    regression: int | None
    state: str
    attempt: int
    errors: list[str]
    created_at: datetime
    delivered_at: datetime | None


class DeliveryPage(ListedPage):
    items: list[DeliveryRow]


class DeliveryQuery(PageQuery):
    channel: int | None = Field(None, ge=1, le=2**63 - 1)
    project: str = Field("", max_length=60, description="A project's slug; empty: all that you may view.")


@router.get(
    "regressions", url_name="api-regressions", operation_id="list_regressions", response=RegressionPage
)
def list_regressions(request: HttpRequest, query: Query[RegressionQuery]) -> dict[str, Any]:
    """The regressions of the projects that you may view, newest first."""
    rows = regression_queries.filter_regressions(query.state, chosen_projects(request, query.project))
    titled = regression_queries.TITLED_OF_KEYS
    return read_page(request, query, rows, ("-id",), lambda row: describe_regression(request, row), titled)


@router.get(
    "regressions/{int:pk}",
    url_name="api-regression",
    operation_id="read_regression",
    response=RegressionEvidence,
)
def read_regression(request: HttpRequest, pk: int) -> RegressionEvidence:
    """One regression with its evidence."""
    regression = get_object_or_404(regression_queries.regressions_with_related(), pk=pk)
    return RegressionEvidence(
        **regression_members(request, regression),
        suspects=regression.suspects,
        operations=regression.operations,
        device=regression.device,
        slow_processes=regression.slow_processes,
        excerpts=regression.excerpts,
        cause_evidence=regression.cause_evidence,
        bisection=regression.bisection,
        changes=[describe_grouped_change(change) for change in details.grouped_changes(regression)],
        experiments=[
            describe_proof(link.experiment) for link in details.measured_again(regression, with_pairs=False)
        ],
        triages=[describe_triage(row) for row in details.regression_triages(regression)],
    )


@router.post(
    "regressions/{int:pk}/triage",
    url_name="api-regression-triage",
    operation_id="triage_regression",
    response=RegressionEvidence,
)
def submit_triage(request: HttpRequest, pk: int, body: TriageBody) -> RegressionEvidence:
    """Say what is to become of a regression, as its page does."""
    try:
        triage_regression(pk, visitor_of(request), body.action, body.comment)
    except TriageError as error:
        field = str(error).partition(":")[0]
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), field) from error
    except Regression.DoesNotExist:
        raise Http404 from None
    return read_regression(request, pk)


@router.get("deliveries", url_name="api-deliveries", operation_id="list_deliveries", response=DeliveryPage)
def list_deliveries(request: HttpRequest, query: Query[DeliveryQuery]) -> dict[str, Any]:
    """The messages to channels of the projects that you may view, newest first."""
    chosen = chosen_projects(request, query.project)
    rows = regression_queries.deliveries_of_channels(chosen, query.channel)
    related = regression_queries.DELIVERIES_OF_KEYS
    return read_page(request, query, rows, ("-id",), lambda row: describe_delivery(request, row), related)


def chosen_projects(request: HttpRequest, slug: str) -> QuerySet[Project]:
    """Those that the visitor may view, or the one of this slug; ApiError where they may not view it."""
    visible = visitor_of(request).visible_projects()
    if not slug:
        return visible
    chosen = visible.filter(slug__in=(slug, current_slug(slug)))
    if not chosen.exists():
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "project: there is no project of that name.", "project"
        )
    return chosen


def describe_regression(request: HttpRequest, regression: Regression) -> RegressionRow:
    """`regression` is of `regressions_with_related`."""
    return RegressionRow(**regression_members(request, regression))


def regression_members(request: HttpRequest, regression: Regression) -> dict[str, Any]:
    culprit, repair = regression.culprit, regression.recovered_by
    return {
        "id": regression.pk,
        "url": page_address(request, regression),
        "project": regression.project.slug,
        **configured_members(regression.series.configuration),
        "title": regression_title(regression),
        "kind": regression.kind,
        "state": regression.state,
        "triaged": regression.triaged or None,
        "cause": regression.cause or None,
        "first_bad": describe_commit_name(regression.first_bad),
        "last_good": describe_commit_name(regression.last_good),
        "culprit": describe_commit_name(culprit) if culprit else None,
        "series": regression.series_id,
        "metric": describe_metric_name(regression.series.metric),
        "series_phase": regression.series.phase,
        "before": regression.level_before,
        "after": None if regression.is_unreported else regression.level_after,
        "ratio": regression.ratio,
        "low": regression.low,
        "high": regression.high,
        "phase": regression.phase or None,
        "phase_share": regression.phase_share,
        "recovered_by": describe_commit_name(repair) if repair else None,
        "withdrawn_at": regression.withdrawn_at,
        "learning": learning_members(regression),
        "opened_at": regression.opened_at,
        "updated_at": regression.updated_at,
    }


def learning_members(regression: Regression) -> LostLearning | None:
    known = regression.lost_learning
    return LostLearning(**known) if known else None


def describe_grouped_change(change: Change) -> RegressionChange:
    return RegressionChange(
        series=change.series_id,
        metric=describe_metric_name(change.series.metric),
        phase=change.series.phase,
        case=str(change.series.case),
        first_bad=change.first_bad.hash,
        last_good=change.last_good.hash,
        before=change.known_before,
        after=change.known_after,
        ratio=change.ratio,
        low=change.low,
        high=change.high,
    )


def describe_proof(experiment: Any) -> RegressionProof:
    return RegressionProof(
        experiment=experiment.pk,
        purpose=experiment.purpose,
        base=experiment.base_commit.hash,
        head=experiment.head_commit.hash,
        state=experiment.state,
        verdict=experiment.verdict or None,
        ratio=experiment.ratio,
        low=experiment.low,
        high=experiment.high,
    )


def describe_triage(triage: Triage) -> TriageRow:
    person = triage.person.get_username() if triage.person else None
    return TriageRow(person=person, action=triage.action, comment=triage.comment, at=triage.at)


def describe_delivery(request: HttpRequest, delivery: Delivery) -> DeliveryRow:
    channel = delivery.channel
    knows = visitor_of(request).may(Action.OPERATE, channel.project)
    return DeliveryRow(
        id=delivery.pk,
        project=channel.project.slug,
        channel=channel.pk,
        kind=channel.kind,
        address=channel.address if knows else masked_address(delivery),
        event=delivery.event,
        regression=delivery.regression_id,
        state=delivery.state,
        attempt=delivery.attempt,
        errors=shown_errors(delivery, knows),
        created_at=delivery.created_at,
        delivered_at=delivery.delivered_at,
    )
