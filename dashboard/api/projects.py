"""Projects, their cases and their members."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard.access import visitor_of
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.models import Project
from dashboard.querysets import projects as project_queries
from dashboard.sentences.administration.repositories import repository_location

router = Router(tags=["projects"])


class ProjectRow(BaseModel):
    """A monitored repository, at a glance."""

    slug: str
    url: str = Field(description="Its page.")
    repository: str = Field(description="Without what is secret in it.")
    branch: str
    visibility: str
    open_regressions: int = Field(description="Those that wait for a person.")
    active_runs: int
    measured_at: datetime | None = Field(description="When its newest run was done.")
    created_at: datetime


class ProjectPage(ListedPage):
    items: list[ProjectRow]


@router.get("projects", url_name="api-projects", operation_id="list_projects", response=ProjectPage)
def list_projects(request: HttpRequest, query: Query[PageQuery]) -> dict[str, Any]:
    """The projects that you may view, by slug."""
    rows = project_queries.projects_with_summary(visitor_of(request).visible_projects())
    return read_page(request, query, rows, ("slug",), lambda row: describe_project(request, row))


@router.get("projects/{slug:slug}", url_name="api-project", operation_id="read_project", response=ProjectRow)
def read_project(request: HttpRequest, slug: str) -> ProjectRow:
    """One project."""
    rows = project_queries.projects_with_summary(Project.objects.filter(slug=slug))
    return describe_project(request, get_object_or_404(rows))


def describe_project(request: HttpRequest, project: Any) -> ProjectRow:
    """`project` is of `projects_with_summary`."""
    return ProjectRow(
        slug=project.slug,
        url=request.build_absolute_uri(project.get_absolute_url()),
        repository=repository_location(project),
        branch=project.branch,
        visibility=project.visibility,
        open_regressions=project.open_regressions,
        active_runs=project.active_runs,
        measured_at=project.measured_at,
        created_at=project.created_at,
    )
