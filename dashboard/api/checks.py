"""Checks: a branch or a commit against its merge base, asked for, watched and read."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard import pull_requests
from dashboard.access import AuditAction, record_action, visitor_of
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import Body, Json, OneOf, page_address
from dashboard.models import Check, Project
from dashboard.problem_details import ApiError
from dashboard.pull_requests import CheckError, sentences
from dashboard.pull_requests.report import read_report
from dashboard.querysets.checks import CHECKS_OF_KEYS, checks_with_related

router = Router(tags=["checks"])

LONGEST_TEXT = 500
# A request isn't held up for longer by a repository that is slow.
FETCH_SECONDS = 20.0
MOST_BENCHMARKS = 50


class CheckSummary(BaseModel):
    """What was compared, and how that ended."""

    id: int
    url: str = Field(description="Its page.")
    project: str
    pull_request: int | None = Field(description="Its number at the forge.")
    head: str
    onto: str = Field(description="The branch that it is to be merged into.")
    base: str | None = Field(description="The merge base, once it is found: it stays the same.")
    state: str
    answer: str | None = Field(
        description="worse, not worse or not known, once it is done; worse as soon as that is proved."
    )
    intended: bool = Field(description="Somebody with the right said that what is worse is meant to be.")
    requested_at: datetime
    ended_at: datetime | None


class CheckedRow(BaseModel):
    """One metric of one case."""

    case: str
    metric: str
    verdict: str = Field(description="The answer of this row, in words.")
    change: str = Field(
        description="How the head differs from the base, with its interval; empty: too few pairs."
    )
    values: Json = Field(description="The same in numbers.")


class CheckReport(CheckSummary):
    """A check with what its experiments say, as they stand now."""

    status: str = Field(description="Of the head at its forge: pending, success, failure, neutral or error.")
    sentence: str = Field(description="The answer in words.")
    reason: Json = Field(description="Why there is no clearer answer, or why it was cancelled.")
    progress: float = Field(description="The part of its minutes that is spent.")
    minutes: float
    floor: float = Field(
        description="A smaller part is no reason to refuse the head: 0.03 is 3 %. Of counters others are."
    )
    rows: list[CheckedRow]
    causes: list[str] = Field(description="Phases and functions in which the difference lies.")
    left_out: list[str] = Field(description="What wasn't measured, and why.")
    pairs: int = Field(description="Of head and merge base; without those of the merge base against itself.")
    machines: list[str]
    commands: list[str] = Field(description="What repeats it by hand.")


class CheckPage(ListedPage):
    items: list[CheckSummary]


class CheckQuery(PageQuery):
    state: Annotated[str, OneOf(["", *Check.State.values])] = ""
    head: str = Field("", max_length=64, description="The whole hash.")


class CheckBody(Body):
    """What is checked; what is empty is left to Paceline."""

    head: str = Field(max_length=LONGEST_TEXT, min_length=1, description="A commit: hash, branch or tag.")
    onto: str = Field("", max_length=LONGEST_TEXT, description="The branch that it is to be merged into.")
    benchmarks: list[str] = Field(
        default_factory=list, max_length=MOST_BENCHMARKS, description="Empty: those that its files touch."
    )
    minutes: float | None = Field(None, description="At most; null: the project's.")
    quick: bool | None = Field(None, description="In short windows; null: as each case is measured.")


@router.get(
    "projects/{slug:slug}/checks", url_name="api-checks", operation_id="list_checks", response=CheckPage
)
def list_checks(request: HttpRequest, slug: str, query: Query[CheckQuery]) -> dict[str, Any]:
    """The checks of a project, newest first."""
    rows = get_object_or_404(Project, slug=slug).checks.all()
    wanted = {"state": query.state, "head_hash": query.head}
    rows = rows.filter(**{name: value for name, value in wanted.items() if value})
    return read_page(
        request,
        query,
        rows,
        ("-id",),
        lambda row: CheckSummary(**summary_members(request, row)),
        CHECKS_OF_KEYS,
    )


@router.post(
    "projects/{slug:slug}/checks",
    url_name="api-checks",
    operation_id="ask_check",
    response={HTTPStatus.CREATED: CheckReport},
)
def ask_check(request: HttpRequest, slug: str, body: CheckBody) -> CheckReport:
    """Check a commit against its merge base, as a pull request of it would be."""
    project, visitor = get_object_or_404(Project, slug=slug), visitor_of(request)
    try:
        wanted = pull_requests.CheckRequest(
            body.head, body.onto, benchmarks=body.benchmarks, quick=body.quick, minutes=body.minutes
        )
        check = pull_requests.request_check(project, wanted, visitor.user, FETCH_SECONDS)
    except CheckError as error:
        # Its sentence begins with the field.
        field = str(error).partition(": ")[0]
        named = field if field in CheckBody.model_fields else ""
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), named) from error
    record_action(visitor, AuditAction.CHECK_REQUESTED, project, check, head=check.head_hash)
    return read_check(request, check.pk)


@router.get("checks/{int:pk}", url_name="api-check", operation_id="read_check", response=CheckReport)
def read_check(request: HttpRequest, pk: int) -> CheckReport:
    """One check."""
    check = get_object_or_404(checks_with_related(), pk=pk)
    report = read_report(check)
    return CheckReport(
        **summary_members(request, check),
        status=sentences.status_state(check),
        sentence=sentences.answer_headline(report),
        reason=check.reason,
        progress=report.spent if check.state in Check.ACTIVE else 1.0,
        minutes=check.minutes,
        floor=check.floor,
        rows=[
            CheckedRow(
                case=row.case,
                metric=row.bounded.metric.name,
                verdict=sentences.verdict_text(row.bounded),
                change=sentences.change_text(row.bounded),
                values=sentences.row_values(row),
            )
            for row in report.rows
        ],
        causes=sentences.cause_sentences(report) if check.answer else [],
        left_out=sentences.left_out_sentences(report),
        pairs=report.pairs,
        machines=list(report.machines),
        commands=list(report.commands),
    )


@router.post(
    "checks/{int:pk}/cancel", url_name="api-check-cancel", operation_id="cancel_check", response=CheckReport
)
def cancel_check(request: HttpRequest, pk: int) -> CheckReport:
    """End a check that hasn't ended, with its experiments. 409 where it has."""
    check = get_object_or_404(Check.objects.select_related("project"), pk=pk)
    visitor = visitor_of(request)
    with transaction.atomic():
        if not pull_requests.cancel_check(check, visitor.user.get_username() if visitor.user else ""):
            raise ApiError(HTTPStatus.CONFLICT, "The check has ended already.")
        record_action(visitor, AuditAction.CHECK_CANCELLED, check.project, check, head=check.head_hash)
    return read_check(request, pk)


def summary_members(request: HttpRequest, check: Check) -> dict[str, Any]:
    """`check` is of `checks_with_related`."""
    return {
        "id": check.pk,
        "url": page_address(request, check),
        "project": check.project.slug,
        "pull_request": check.pull_request.number if check.pull_request else None,
        "head": check.head_hash,
        "onto": check.onto,
        "base": check.base_commit.hash if check.base_commit else None,
        "state": check.state,
        "answer": check.answer or None,
        "intended": bool(check.intended_by),
        "requested_at": check.requested_at,
        "ended_at": check.ended_at,
    }
