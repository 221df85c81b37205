"""Commits of a project, and what asked for their runs."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard import cancelling
from dashboard.access import visitor_of
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import Json
from dashboard.models import Commit, Project, Trigger
from dashboard.problem_details import ApiError
from dashboard.querysets import projects as project_queries
from dashboard.querysets.commits import COSTED_OF_KEYS, commits_with_costs

router = Router(tags=["commits"])


class CommitRow(BaseModel):
    """A commit, with how many of its runs are done, failed and under way."""

    hash: str
    parents: list[str]
    branch: str
    position: int = Field(description="First-parent commits before it on its branch.")
    subject: str
    author: str
    committed_at: datetime
    done: int
    failed: int
    active: int
    machine_seconds: float | None = Field(description="What its runs cost; null: no run tells.")


class CommitPage(ListedPage):
    items: list[CommitRow]


class CommitQuery(PageQuery):
    branch: str = Field("", max_length=250, description="Empty: the project's branch.")


class TriggerRow(BaseModel):
    """What asked for runs, and what became of it."""

    id: int
    source: str
    state: str = Field(description="`received` until the repository has been read; `resolved` or `refused`.")
    revisions: Json = Field(description="`commit`, `range` or `last`; empty: the newest commit.")
    benchmarks: list[str] = Field(description="Empty: all.")
    detail: str = Field(description="Why it was refused, or how many runs it became.")
    runs: int
    requested_by: str | None
    received_at: datetime
    resolved_at: datetime | None


class TriggerPage(ListedPage):
    items: list[TriggerRow]


@router.get(
    "projects/{slug:slug}/commits", url_name="api-commits", operation_id="list_commits", response=CommitPage
)
def list_commits(request: HttpRequest, slug: str, query: Query[CommitQuery]) -> dict[str, Any]:
    """The commits of a branch that the site knows, newest first."""
    project = get_object_or_404(Project, slug=slug)
    rows = Commit.objects.filter(project=project, branch=query.branch or project.branch)
    return read_page(request, query, rows, ("-position", "-id"), describe_commit, COSTED_OF_KEYS)


@router.get(
    "projects/{slug:slug}/commits/{commit}",
    url_name="api-commit",
    operation_id="read_commit",
    response=CommitRow,
)
def read_commit(request: HttpRequest, slug: str, commit: str) -> CommitRow:
    """One commit, by its whole hash."""
    project = get_object_or_404(Project, slug=slug)
    rows = commits_with_costs().filter(project=project)
    return describe_commit(get_object_or_404(rows, hash=commit))


@router.get(
    "projects/{slug:slug}/triggers",
    url_name="api-triggers",
    operation_id="list_triggers",
    response=TriggerPage,
)
def list_triggers(request: HttpRequest, slug: str, query: Query[PageQuery]) -> dict[str, Any]:
    """What asked for runs, newest first."""
    project = get_object_or_404(Project, slug=slug)
    rows, details = project_queries.project_triggers(project), project_queries.TRIGGERS_OF_KEYS
    return read_page(request, query, rows, ("-id",), describe_trigger, details)


@router.get(
    "projects/{slug:slug}/triggers/{int:pk}",
    url_name="api-trigger",
    operation_id="read_trigger",
    response=TriggerRow,
)
def read_trigger(request: HttpRequest, slug: str, pk: int) -> TriggerRow:
    """What became of one request for runs."""
    project = get_object_or_404(Project, slug=slug)
    return describe_trigger(get_object_or_404(_triggers_of(project), pk=pk))


@router.post(
    "projects/{slug:slug}/triggers/{int:pk}/cancel",
    url_name="api-trigger-cancel",
    operation_id="cancel_trigger",
    response=TriggerRow,
)
def cancel_trigger(request: HttpRequest, slug: str, pk: int) -> TriggerRow:
    """End the runs of one request that haven't ended. 409 where none is left."""
    project = get_object_or_404(Project, slug=slug)
    trigger = get_object_or_404(_triggers_of(project), pk=pk)
    try:
        cancelling.cancel_trigger(visitor_of(request), trigger)
    except cancelling.NotCancellable as error:
        raise ApiError(HTTPStatus.CONFLICT, str(error)) from error
    return describe_trigger(trigger)


def _triggers_of(project: Project) -> QuerySet[Trigger]:
    return project_queries.triggers_with_runs().filter(project=project)


def describe_commit(commit: Any) -> CommitRow:
    """`commit` is of `commits_with_costs`."""
    return CommitRow(
        hash=commit.hash,
        parents=commit.parents,
        branch=commit.branch,
        position=commit.position,
        subject=commit.subject,
        author=commit.author,
        committed_at=commit.committed_at,
        done=commit.done,
        failed=commit.failed,
        active=commit.active,
        machine_seconds=commit.machine_seconds,
    )


def describe_trigger(trigger: Trigger) -> TriggerRow:
    """`trigger` is of `triggers_with_runs`, or new."""
    return TriggerRow(
        id=trigger.pk,
        source=trigger.source,
        state=trigger.state,
        revisions=trigger.revisions,
        benchmarks=trigger.benchmarks,
        detail=trigger.detail,
        runs=getattr(trigger, "run_count", 0),
        requested_by=trigger.requested_by.get_username() if trigger.requested_by else None,
        received_at=trigger.received_at,
        resolved_at=trigger.resolved_at,
    )
