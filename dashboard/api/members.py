"""Who has which role in a project, and the audit log: who did what."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard.access import AuditAction
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import Json
from dashboard.models import AuditEntry, Membership, Project
from dashboard.problem_details import ApiError

router = Router(tags=["members"])


class MemberRow(BaseModel):
    """A person's role in a project."""

    account: str
    role: str
    created_at: datetime


class MemberPage(ListedPage):
    items: list[MemberRow]


class AuditRow(BaseModel):
    """Who did what, when and from where."""

    id: int
    at: datetime
    source: str = Field(description="`person`, `token`, `command` or `anonymous`.")
    account: str
    action: str
    project: str
    subject_kind: str
    subject_key: str
    details: Json
    address: str | None


class AuditPage(ListedPage):
    items: list[AuditRow]


class AuditQuery(PageQuery):
    action: str = Field("", max_length=40)


@router.get(
    "projects/{slug:slug}/members", url_name="api-members", operation_id="list_members", response=MemberPage
)
def list_members(request: HttpRequest, slug: str, query: Query[PageQuery]) -> dict[str, Any]:
    """The members of a project, in the order in which they came."""
    rows = Membership.objects.filter(project__slug=slug).select_related("user")
    return read_page(request, query, rows, ("id",), describe_member)


@router.get(
    "projects/{slug:slug}/audit",
    url_name="api-project-audit",
    operation_id="list_project_audit",
    response=AuditPage,
)
def list_project_audit(request: HttpRequest, slug: str, query: Query[AuditQuery]) -> dict[str, Any]:
    """What was done in a project, newest first."""
    entries = AuditEntry.objects.filter(project=get_object_or_404(Project, slug=slug))
    return read_entries(request, query, entries)


@router.get("audit", url_name="api-audit", operation_id="list_audit", response=AuditPage)
def list_audit(request: HttpRequest, query: Query[AuditQuery]) -> dict[str, Any]:
    """What was done on the site, newest first."""
    return read_entries(request, query, AuditEntry.objects.all())


def read_entries(request: HttpRequest, query: AuditQuery, entries: QuerySet[AuditEntry]) -> dict[str, Any]:
    if query.action and query.action not in list(AuditAction):
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "action: there is none of that name.", "action")
    if query.action:
        entries = entries.filter(action=query.action)
    return read_page(request, query, entries, ("-id",), describe_entry)


def describe_member(member: Membership) -> MemberRow:
    return MemberRow(account=member.user.get_username(), role=member.role, created_at=member.created_at)


def describe_entry(entry: AuditEntry) -> AuditRow:
    return AuditRow(
        id=entry.pk,
        at=entry.at,
        source=entry.source,
        account=entry.account,
        action=entry.action,
        project=entry.project_slug,
        subject_kind=entry.subject_kind,
        subject_key=entry.subject_key,
        details=entry.details,
        address=entry.address,
    )
