"""Claims: which there are, how they stand, what measured them, and asking for them."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from paceline.claims.claims_file import parse_definition
from paceline.claims.verdicts import accepted_range
from pydantic import BaseModel, Field

from dashboard import claims
from dashboard.access import visitor_of
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import Body, CommitName, Json, OneOf, describe_commit_name, page_address
from dashboard.models import Claim, ClaimMeasurement, Project
from dashboard.problem_details import ApiError
from dashboard.querysets import claims as claim_queries

router = Router(tags=["claims"])
LONGEST_TEXT = 500


class ClaimMeasurementRow(BaseModel):
    """A claim at one commit: what measured it, and the verdict."""

    id: int
    commit: CommitName
    pool: str
    state: str
    value: float | None = Field(description="How many times better, or the case's value.")
    low: float | None
    high: float | None
    unit: str
    verdict: str | None
    evidence: Json = Field(description="The kind of samples, how many, and how many were disturbed.")
    reason: Json = Field(description="Why there is no clearer verdict.")
    experiment: int | None
    run: int | None
    requester: str
    requested_at: datetime
    measured_at: datetime | None


class ClaimMeasurementPage(ListedPage):
    items: list[ClaimMeasurementRow]


class ClaimRow(BaseModel):
    """What a document says an optimization is worth, and how that stands along the project's branch."""

    id: int
    url: str = Field(description="Its page.")
    project: str
    benchmark: str
    key: str
    text: str
    definition: Json = Field(description="As claims.toml has it.")
    accepted_low: float | None = Field(description="What agrees with it, its tolerance included; null: open.")
    accepted_high: float | None
    verdict: str | None = Field(description="The newest one; null before the first.")
    standing: str | None = Field(description="The newest that is sure: holds or refuted.")
    since: CommitName | None = Field(description="The first commit of an unbroken row of the verdict.")
    newest: ClaimMeasurementRow | None
    reason: Json = Field(description="Why it isn't measured; empty where it is.")


class ClaimPage(ListedPage):
    items: list[ClaimRow]


class ClaimQuery(PageQuery):
    benchmark: str = ""
    show: Annotated[str, OneOf(list(claim_queries.SHOWN))] = "all"


class ClaimsBody(Body):
    """Which claims are to be measured; what is empty is left to Paceline."""

    benchmark: str = Field("", max_length=100, description="Whose claims; empty: all benchmarks'.")
    commit: str = Field("", max_length=LONGEST_TEXT, description="A hash, branch or tag; empty: the newest.")
    claims: list[str] = Field(default_factory=list, max_length=300, description="Their ids; empty: all.")
    pool: str = Field("", max_length=60, description="Whose machines; empty: as the benchmark is measured.")


class AskedClaims(BaseModel):
    """What asking led to."""

    commit: CommitName
    experiments: int = Field(description="Claims that wait for an experiment.")
    by_runs: int = Field(description="Claims about one case that its newest run answered.")
    unmeasured: int = Field(description="Claims that nothing here measures: each says why.")


@router.get(
    "projects/{slug:slug}/claims", url_name="api-claims", operation_id="list_claims", response=ClaimPage
)
def list_claims(request: HttpRequest, slug: str, query: Query[ClaimQuery]) -> dict[str, object]:
    """The claims of a project's benchmarks, as they stand."""
    project = get_object_or_404(Project, slug=slug)
    rows = claim_queries.listed_claims(project, query.benchmark).filter(claim_queries.SHOWN[query.show])
    related = claim_queries.with_newest(rows).select_related(
        "project", "since", "newest__commit", "newest__head__pool"
    )
    return read_page(request, query, related, ("id",), lambda row: describe_claim(request, row))


@router.post(
    "projects/{slug:slug}/claims",
    url_name="api-claims",
    operation_id="measure_claims",
    response={HTTPStatus.ACCEPTED: AskedClaims},
)
def measure_claims(request: HttpRequest, slug: str, body: ClaimsBody) -> Status[AskedClaims]:
    """Measure claims at a commit, each by an experiment or by the newest run of its case."""
    project = get_object_or_404(Project, slug=slug)
    try:
        asked = claims.request_claims(
            project, body.benchmark, body.commit, body.claims, pool=body.pool, actor=visitor_of(request)
        )
    except claims.ClaimsError as error:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{error.field}: {error}", error.field) from error
    return Status(
        HTTPStatus.ACCEPTED,
        AskedClaims(
            commit=describe_commit_name(asked.commit),
            experiments=asked.experiments,
            by_runs=asked.by_runs,
            unmeasured=asked.unmeasured,
        ),
    )


@router.get(
    "claims/{int:pk}/measurements",
    url_name="api-claim-measurements",
    operation_id="list_claim_measurements",
    response=ClaimMeasurementPage,
)
def list_claim_measurements(request: HttpRequest, pk: int, query: Query[PageQuery]) -> dict[str, object]:
    """All measurements of a claim, the newest first."""
    claim = get_object_or_404(Claim, pk=pk)
    return read_page(
        request, query, claim_queries.measurements_of(claim), ("-id",), describe_claim_measurement
    )


def describe_claim(request: HttpRequest, claim: Claim) -> ClaimRow:
    """`claim` is read with what `with_newest` reads."""
    accepted = accepted_range(parse_definition(claim.definition))
    return ClaimRow(
        id=claim.pk,
        url=page_address(request, claim),
        project=claim.project.slug,
        benchmark=claim.benchmark,
        key=claim.key,
        text=claim.text,
        definition=claim.definition,
        accepted_low=finite_bound(accepted.low) if accepted else None,
        accepted_high=finite_bound(accepted.high) if accepted else None,
        verdict=claim.verdict or None,
        standing=claim.standing or None,
        since=describe_commit_name(claim.since) if claim.since else None,
        newest=describe_claim_measurement(claim.newest) if claim.newest else None,
        reason=claim.reason,
    )


def finite_bound(bound: float) -> float | None:
    return None if abs(bound) == float("inf") else bound


def describe_claim_measurement(measurement: ClaimMeasurement) -> ClaimMeasurementRow:
    return ClaimMeasurementRow(
        id=measurement.pk,
        commit=describe_commit_name(measurement.commit),
        pool=measurement.head.pool.name,
        state=measurement.state,
        value=measurement.value,
        low=measurement.low,
        high=measurement.high,
        unit=measurement.unit,
        verdict=measurement.verdict or None,
        evidence=measurement.evidence,
        reason=measurement.reason,
        experiment=measurement.experiment_id,
        run=measurement.run_id,
        requester=measurement.requester,
        requested_at=measurement.requested_at,
        measured_at=measurement.measured_at,
    )
