"""Runs: which there are, what one measured, and what it printed."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.db.models import TextField
from django.db.models.functions import MD5, Cast
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard import cancelling
from dashboard.access import visitor_of
from dashboard.api.commits import TriggerRow, describe_trigger
from dashboard.api.etags import answer_version, make_etag
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.series import LONGEST_CASE
from dashboard.api.shapes import (
    Body,
    CommitName,
    Configured,
    OneOf,
    case_conditions,
    configured_members,
    describe_commit_name,
    page_address,
)
from dashboard.models import Backlog, Document, Project, Run, RunLog
from dashboard.problem_details import ApiError
from dashboard.querysets import runs as run_queries
from dashboard.repositories import MOST_COMMITS
from dashboard.triggers import create_web_trigger
from dashboard.triggers.receiving import MOST_BENCHMARKS, TriggerError, parse_revisions
from dashboard.triggers.request_validation import validate_request

router = Router(tags=["runs"])

LONGEST_REVISION = 1000

JSON_ANSWER = {"responses": {200: {"content": {"application/json": {"schema": {"type": "object"}}}}}}
TEXT_ANSWER = {"responses": {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}}


class RunRow(Configured):
    """One case at one commit on one machine."""

    id: int
    url: str = Field(description="Its page.")
    project: str
    commit: CommitName
    branch: str
    state: str
    origin: str = Field(description="Measured here, imported, posted, or measured again as a sentinel.")
    machine: str | None
    repetitions: int
    attempt: int
    progress: float | None = Field(description="0 to 1 of the measurement.")
    failure: str | None
    reason: str | None = Field(description="Why it failed or was cancelled.")
    tainted: bool = Field(description="Kept out of judgement by one of its doubts.")
    doubts: list[str] = Field(description="The codes of the warnings of its document.")
    requested_at: datetime
    claimed_at: datetime | None
    measuring_at: datetime | None
    finished_at: datetime | None


class RunPage(ListedPage):
    items: list[RunRow]


class RunQuery(PageQuery):
    state: Annotated[str, OneOf(["", "active", *Run.State.values])] = Field(
        "", description="`active`: whatever has not ended."
    )
    origin: Annotated[str, OneOf(["", *Run.Origin.values])] = ""
    case: str = Field("", max_length=LONGEST_CASE, description="As a case spells itself.")
    benchmark: str = Field("", max_length=100)
    branch: str = Field("", max_length=250)
    commit: str = Field("", max_length=64, description="The whole hash.")
    machine: str = Field("", max_length=120)
    pool: str = Field("", max_length=60)


class CancelledRuns(BaseModel):
    runs: int = Field(description="How many were ended.")


class RunsBody(Body):
    """Of which commits runs are asked for: of one of the three, or of the newest commit."""

    commit: str = Field("", max_length=LONGEST_REVISION, description="A hash, a branch or a tag.")
    range: str = Field("", max_length=LONGEST_REVISION, description="`A..B`: the commits behind A, up to B.")
    last: int | None = Field(None, ge=1, le=MOST_COMMITS, description="So many, the newest of the branch.")
    benchmarks: list[str] = Field(
        default_factory=list, max_length=MOST_BENCHMARKS, description="Empty: all of the manifest."
    )


@router.get("projects/{slug:slug}/runs", url_name="api-runs", operation_id="list_runs", response=RunPage)
def list_runs(request: HttpRequest, slug: str, query: Query[RunQuery]) -> dict[str, Any]:
    """The runs of a project, newest first."""
    rows = run_queries.project_runs(get_object_or_404(Project, slug=slug))
    wanted: dict[str, Any] = {
        "origin": query.origin,
        "configuration__case__benchmark": query.benchmark,
        "commit__branch": query.branch,
        "commit__hash": query.commit,
        "machine__name": query.machine,
        "configuration__pool__name": query.pool,
    }
    wanted = {name: value for name, value in wanted.items() if value}
    if query.case:
        wanted |= case_conditions(query.case, "configuration__case")
    if query.state == "active":
        rows = rows.exclude(state__in=Run.TERMINAL)
    elif query.state:
        wanted["state"] = query.state
    details = run_queries.RUNS_OF_KEYS
    rows = rows.filter(**wanted)
    return read_page(request, query, rows, ("-id",), lambda row: describe_run(request, row), details)


@router.get("runs/{int:pk}", url_name="api-run", operation_id="read_run", response=RunRow)
def read_run(request: HttpRequest, pk: int) -> RunRow:
    """One run."""
    return describe_run(request, get_object_or_404(run_queries.runs_with_related(), pk=pk))


@router.get(
    "runs/{int:pk}/document",
    url_name="api-run-document",
    operation_id="read_run_document",
    openapi_extra=JSON_ANSWER,
)
def read_run_document(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The document of a run as it is kept: `paceline.document/1`. With age it loses what is large."""
    rows = Document.objects.filter(run=pk)
    known = rows.values_list("sha256", "telemetry_dropped", "profile_dropped", "stored_at").first()
    if known is None:
        raise Http404

    def read_body() -> HttpResponse:
        # As Postgres writes it: nobody has to read its numbers and write them again.
        text = rows.annotate(text=Cast("body", TextField())).values_list("text", flat=True).get()
        return HttpResponse(text, content_type="application/json")

    return answer_version(request, make_etag(pk, *known), read_body)


@router.get(
    "runs/{int:pk}/log", url_name="api-run-log", operation_id="read_run_log", openapi_extra=TEXT_ANSWER
)
def read_run_log(request: HttpRequest, pk: int) -> HttpResponseBase:
    """What a run printed, at a bounded size; it grows while the run measures."""
    rows = RunLog.objects.filter(run=pk)
    digest = rows.annotate(digest=MD5("text")).values_list("digest", flat=True).first()
    if digest is None:
        raise Http404
    return answer_version(
        request,
        make_etag(pk, digest),
        lambda: HttpResponse(rows.get().text, content_type="text/plain; charset=utf-8"),
    )


@router.post(
    "projects/{slug:slug}/runs",
    url_name="api-runs",
    operation_id="request_runs",
    response={HTTPStatus.ACCEPTED: TriggerRow},
)
def request_runs(request: HttpRequest, slug: str, body: RunsBody) -> TriggerRow:
    """Ask for the runs of the newest commit, or of those that are named.

    The answer is the trigger: its runs are there once the repository has been read. A commit that doesn't
    exist, or has no such benchmark, is a 422, unless the repository is slower than the request waits: then
    the trigger says so.
    """
    project = get_object_or_404(Project, slug=slug)
    try:
        revisions = parse_revisions(body.commit or None, body.range or None, body.last)
        validate_request(project, revisions, body.benchmarks)
        trigger = create_web_trigger(project, visitor_of(request), revisions, body.benchmarks)
    except TriggerError as error:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), error.field) from error
    return describe_trigger(trigger)


@router.post("runs/{int:pk}/cancel", url_name="api-run-cancel", operation_id="cancel_run", response=RunRow)
def cancel_run(request: HttpRequest, pk: int) -> RunRow:
    """End a run that hasn't ended. 409 where it has."""
    try:
        cancelling.cancel_run(visitor_of(request), get_object_or_404(Run, pk=pk))
    except cancelling.NotCancellable as error:
        raise ApiError(HTTPStatus.CONFLICT, str(error)) from error
    return read_run(request, pk)


@router.post(
    "projects/{slug:slug}/runs/waiting/cancel",
    url_name="api-waiting-cancel",
    operation_id="cancel_waiting_runs",
    response=CancelledRuns,
)
def cancel_waiting_runs(request: HttpRequest, slug: str) -> CancelledRuns:
    """End all runs of a project that no machine has begun, and drop commits whose runs were still to be asked
    for. 409 where there is neither."""
    project = get_object_or_404(Project, slug=slug)
    try:
        rows, left = Run.objects.filter(project=project), Backlog.objects.filter(trigger__project=project)
        ended, _ = cancelling.cancel_waiting(visitor_of(request), project, rows, left)
    except cancelling.NotCancellable as error:
        raise ApiError(HTTPStatus.CONFLICT, str(error)) from error
    return CancelledRuns(runs=ended)


@router.post(
    "projects/{slug:slug}/runs/remeasuring/cancel",
    url_name="api-remeasuring-cancel",
    operation_id="cancel_remeasuring",
    response=CancelledRuns,
)
def cancel_remeasuring(request: HttpRequest, slug: str) -> CancelledRuns:
    """End all runs that wait to measure a project's disturbed ones again. 409 where there is none."""
    try:
        ended = cancelling.cancel_remeasuring(visitor_of(request), get_object_or_404(Project, slug=slug))
    except cancelling.NotCancellable as error:
        raise ApiError(HTTPStatus.CONFLICT, str(error)) from error
    return CancelledRuns(runs=ended)


def describe_run(request: HttpRequest, run: Run) -> RunRow:
    """`run` is of `runs_with_related`."""
    return RunRow(
        id=run.pk,
        url=page_address(request, run),
        project=run.case.project.slug,
        **configured_members(run.configuration),
        commit=describe_commit_name(run.commit),
        branch=run.commit.branch,
        state=run.state,
        origin=run.origin,
        machine=run.machine.name if run.machine else None,
        repetitions=run.repetitions,
        attempt=run.attempt,
        progress=run.progress,
        failure=run.failure or None,
        reason=run.reason or None,
        tainted=run.tainted,
        doubts=run.warning_codes,
        requested_at=run.requested_at,
        claimed_at=run.claimed_at,
        measuring_at=run.measuring_at,
        finished_at=run.finished_at,
    )
