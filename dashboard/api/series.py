"""Cases, their series, and the points and changes of a series."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import (
    Configured,
    Json,
    MetricName,
    case_conditions,
    configured_members,
    describe_metric_name,
    page_address,
)
from dashboard.models import Case, Change, Commit, Point, Project, Series
from dashboard.problem_details import ApiError
from dashboard.querysets import projects as project_queries
from dashboard.querysets import series as series_queries

router = Router(tags=["series"])

MOST_POINTS = 1000
MOST_POSITION = 2**31 - 1
LONGEST_CASE = 400


class CaseRow(BaseModel):
    """A benchmark with its parameters."""

    id: int
    case: str = Field(description="As filters and experiments take it: `snake_dqn[variant=optimized]`.")
    benchmark: str
    params: Json


class CasePage(ListedPage):
    items: list[CaseRow]


class LatestPoint(BaseModel):
    """The newest point of a series, and the level that it is judged by."""

    run: int
    position: int
    value: float | None
    level: float | None
    updated_at: datetime


class SeriesRow(Configured):
    """What a trend line shows."""

    id: int
    url: str = Field(description="Its page.")
    project: str
    metric: MetricName
    phase: str = Field(description="Empty: the whole step.")
    exact: bool = Field(description="It repeats exactly: any difference is one.")
    headline: bool = Field(description="It may raise a suspicion; all others explain.")
    latest: LatestPoint | None


class SeriesPage(ListedPage):
    items: list[SeriesRow]


class SeriesQuery(PageQuery):
    case: str = Field("", max_length=LONGEST_CASE, description="As a case spells itself.")
    benchmark: str = Field("", max_length=100)
    metric: str = Field("", max_length=100)
    phase: str | None = Field(None, max_length=200, description="Empty: the whole step; left out: any.")
    pool: str = Field("", max_length=60)
    headline: bool | None = None


class PointRow(BaseModel):
    """One run's value in a series, with its samples and its doubt."""

    position: int
    commit: str
    committed_at: datetime
    run: int
    value: float | None
    low: float | None = Field(description="Of the value's interval.")
    high: float | None
    samples: list[float] = Field(description="The repetitions.")
    tainted: bool = Field(description="Kept out of judgement by one of its doubts.")
    doubts: list[str] = Field(description="The codes of the warnings of its run.")


class PointPage(ListedPage):
    items: list[PointRow]


class PointQuery(PageQuery):
    limit: int = Field(200, ge=1, le=MOST_POINTS, description="How many at most.")
    branch: str = Field("", max_length=250, description="Empty: the project's branch.")
    since: int | None = Field(None, ge=0, le=MOST_POSITION, description="The first position, included.")
    until: int | None = Field(None, ge=0, le=MOST_POSITION, description="The last position, included.")


class ChangeRow(BaseModel):
    """A step found in a series between two commits, or work that moved between its phases there."""

    position: int
    first_bad: str = Field(description="The first commit of the new level.")
    last_good: str = Field(description="The last commit of the old level.")
    direction: str = Field(description="regression, improvement, or moved: nothing was lost.")
    before: float | None = Field(description="null: a quality that wasn't reported.")
    after: float | None = Field(description="null: a quality that isn't reported any more.")
    ratio: float | None
    low: float | None = Field(description="Of the ratio's interval.")
    high: float | None
    confidence: float | None
    doubts: list[Any]
    environment_only: bool = Field(description="What changed around the code explains it.")
    regression: int | None


class ChangePage(ListedPage):
    items: list[ChangeRow]


@router.get("projects/{slug:slug}/cases", url_name="api-cases", operation_id="list_cases", response=CasePage)
def list_cases(request: HttpRequest, slug: str, query: Query[PageQuery]) -> dict[str, Any]:
    """The cases of a project, by benchmark and parameters."""
    rows = project_queries.project_cases(get_object_or_404(Project, slug=slug))
    return read_page(request, query, rows, ("benchmark", "key", "id"), describe_case)


@router.get(
    "projects/{slug:slug}/series", url_name="api-series-list", operation_id="list_series", response=SeriesPage
)
def list_series(request: HttpRequest, slug: str, query: Query[SeriesQuery]) -> dict[str, Any]:
    """The series of a project, each with its newest point."""
    rows = Series.objects.filter(configuration__case__project__slug=slug)
    wanted: dict[str, Any] = {
        "configuration__case__benchmark": query.benchmark,
        "metric__name": query.metric,
        "configuration__pool__name": query.pool,
    }
    wanted = {name: value for name, value in wanted.items() if value}
    if query.case:
        wanted |= case_conditions(query.case, "configuration__case")
    if query.phase is not None:
        wanted["phase"] = query.phase
    if query.headline is not None:
        wanted["headline"] = query.headline
    rows, related = rows.filter(**wanted), series_queries.SERIES_OF_KEYS
    return read_page(request, query, rows, ("id",), lambda row: describe_series(request, row), related)


@router.get("series/{int:pk}", url_name="api-series", operation_id="read_series", response=SeriesRow)
def read_series(request: HttpRequest, pk: int) -> SeriesRow:
    """One series."""
    return describe_series(request, _series_of_key(pk))


@router.get("series/{int:pk}/points", url_name="api-points", operation_id="list_points", response=PointPage)
def list_points(request: HttpRequest, pk: int, query: Query[PointQuery]) -> dict[str, Any]:
    """The points of a series on a branch, by the position of their commits, newest first."""
    series = _series_of_key(pk)
    project = series.case.project
    branch = query.branch or project.branch
    if branch != project.branch and not Commit.objects.filter(project=project, branch=branch).exists():
        sentence = f"branch: no commit of the branch “{branch}” is known."
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, "branch")
    rows = Point.objects.filter(series=series, run__commit__branch=branch)
    if query.since is not None:
        rows = rows.filter(position__gte=query.since)
    if query.until is not None:
        rows = rows.filter(position__lte=query.until)
    related = series_queries.POINTS_OF_KEYS
    return read_page(request, query, rows, ("-position", "-run_id"), describe_point, related)


@router.get(
    "series/{int:pk}/changes", url_name="api-changes", operation_id="list_changes", response=ChangePage
)
def list_changes(request: HttpRequest, pk: int, query: Query[PageQuery]) -> dict[str, Any]:
    """The steps found in a series, newest first."""
    series = get_object_or_404(Series, pk=pk)
    rows, related = Change.objects.filter(series=series), series_queries.CHANGES_OF_KEYS
    return read_page(request, query, rows, ("-position", "-id"), describe_change_row, related)


def _series_of_key(pk: int) -> Series:
    series = series_queries.find_series(pk)
    if series is None:
        raise Http404("There is no series of that number.")
    return series


def describe_case(case: Case) -> CaseRow:
    return CaseRow(id=case.pk, case=str(case), benchmark=case.benchmark, params=case.params)


def describe_series(request: HttpRequest, series: Series) -> SeriesRow:
    """`series` is of `series_with_related`."""
    latest = getattr(series, "latest", None)
    return SeriesRow(
        id=series.pk,
        url=page_address(request, series),
        project=series.case.project.slug,
        **configured_members(series.configuration),
        metric=describe_metric_name(series.metric),
        phase=series.phase,
        exact=series.exact,
        headline=series.headline,
        latest=latest
        and LatestPoint(
            run=latest.run_id,
            position=latest.position,
            value=latest.value,
            level=latest.level,
            updated_at=latest.updated_at,
        ),
    )


def describe_point(point: Point) -> PointRow:
    """`point` is of `points_with_related`."""
    return PointRow(
        position=point.position,
        commit=point.run.commit.hash,
        committed_at=point.run.commit.committed_at,
        run=point.run_id,
        value=point.value,
        low=point.low,
        high=point.high,
        samples=point.samples,
        tainted=point.tainted,
        doubts=point.run.warning_codes,
    )


def describe_change_row(change: Change) -> ChangeRow:
    return ChangeRow(
        position=change.position,
        first_bad=change.first_bad.hash,
        last_good=change.last_good.hash,
        direction=change.direction,
        before=change.known_before,
        after=change.known_after,
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        confidence=change.confidence,
        doubts=change.doubts,
        environment_only=change.environment_only,
        regression=change.regression_id,
    )
