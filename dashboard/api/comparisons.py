"""Two commits, branches, tags, runs or cases beside each other: the same answer as the page has."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard.api.shapes import (
    CommitName,
    Configured,
    MetricName,
    configured_members,
    describe_commit_name,
    describe_metric_name,
)
from dashboard.comparisons.comparing import CaseComparison, CaseSummary, Comparison, compare_revisions
from dashboard.comparisons.links import lasting_address
from dashboard.comparisons.metric_rows import MetricRow
from dashboard.comparisons.pairing import PooledRuns
from dashboard.comparisons.profile_rows import ProfileRow
from dashboard.comparisons.requests import LONGEST, ComparisonError, read_request
from dashboard.comparisons.revisions import ComparisonSide
from dashboard.environments import Difference
from dashboard.models import Project
from dashboard.problem_details import ApiError
from dashboard.sentences.comparisons import comparisons as sentences

router = Router(tags=["comparisons"])


class ComparisonQuery(BaseModel):
    base: str = Field(
        "", max_length=LONGEST, description="A commit's hash or its beginning, a branch, a tag, or `run:23`."
    )
    head: str = Field("", max_length=LONGEST, description="Likewise.")
    case: str = Field(
        "", max_length=LONGEST, description="The case whose metrics are listed; empty: what differs most."
    )
    head_case: str = Field("", max_length=LONGEST, description="The head's, where it is another one.")
    pool: str = Field("", max_length=LONGEST)
    windows: str = Field("", max_length=LONGEST, description="`standard` or `quick`.")


class ComparedSide(BaseModel):
    written: str
    kind: str = Field(description="`commit`, `tag`, `branch` or `run`: how it was named.")
    commit: CommitName
    branch: str


class ComparedRuns(Configured):
    """The runs of one side that are pooled."""

    runs: list[int]
    machines: list[str]
    tainted: bool = Field(description="All of them are: they show no difference.")
    left_out: list[int] = Field(description="Tainted runs beside those that count.")
    older: int = Field(description="So many more runs aren't pooled.")


class ComparedMetric(BaseModel):
    metric: MetricName
    phase: str = Field(description="Empty: the whole step.")
    series: int
    headline: bool
    exact: bool
    base: float | None = Field(description="The median of the runs.")
    head: float | None
    effect: str = Field(description="`ratio`, `difference` (no ratio), `exponent` (e ** difference), `none`.")
    ratio: float | None = Field(description="head / base; its interval is `low` to `high`.")
    difference: float | None
    low: float | None = Field(description="Of 95 %, by repetitions and the noise between runs.")
    high: float | None
    verdict: str = Field(description="`higher`, `lower`, `~` for no difference, `?` where it isn't known.")
    direction: str = Field(description="`better` or `worse`; empty without a difference.")
    reason: str = Field(description="Why it isn't known: too few values, or what is tainted.")


class ComparedPhase(BaseModel):
    phase: str
    base: float | None = Field(description="Own seconds per step.")
    head: float | None
    difference: float
    share: float | None = Field(description="Of the difference of all phases.")


class ComparedCall(BaseModel):
    name: str
    where: str = Field(description="A function's file, the phase of an operation or a kernel.")
    what: str = Field(description="`new`, `gone`, `more`, `fewer`, `slower` or `faster`.")
    calls_base: float
    calls_head: float
    seconds_base: float | None = Field(description="Null where no times are known, or of tainted runs.")
    seconds_head: float | None


class ComparedValue(BaseModel):
    name: str
    base: str
    head: str


class ComparedCase(BaseModel):
    """All of one case."""

    base: ComparedRuns
    head: ComparedRuns
    sentence: str
    metrics: list[ComparedMetric] = Field(description="The largest difference first.")
    phases: list[ComparedPhase]
    functions: list[ComparedCall]
    operations: list[ComparedCall]
    kernels: list[ComparedCall]
    profiled_runs: list[int]
    environment: list[ComparedValue]
    windows: list[ComparedValue] = Field(description="Settings of the measured window that differ.")


class SummarizedCase(Configured):
    differs: float = Field(description="The largest size of a headline metric: a logarithm of its ratio.")
    sentence: str


class UnpairedCase(Configured):
    obstacle: str
    sentence: str


class ComparisonAnswer(BaseModel):
    url: str = Field(description="A page that shows the same later too.")
    base: ComparedSide
    head: ComparedSide
    cases: list[SummarizedCase] = Field(description="Those that may be compared, what differs most first.")
    not_compared: list[UnpairedCase]
    warnings: list[str] = Field(description="Pools, machines and windows that differ; tainted runs.")
    comparison: ComparedCase | None


@router.get(
    "projects/{slug:slug}/comparison",
    url_name="api-comparison",
    operation_id="compare_revisions",
    response=ComparisonAnswer,
)
def compare_two_revisions(request: HttpRequest, slug: str, query: Query[ComparisonQuery]) -> ComparisonAnswer:
    """Every metric of two commits, branches, tags, runs or cases, by what is stored of them."""
    project = get_object_or_404(Project, slug=slug)
    try:
        comparison = compare_revisions(project, read_request(query.model_dump()))
    except ComparisonError as error:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), error.field) from error
    return describe_comparison(request, comparison)


def describe_comparison(request: HttpRequest, comparison: Comparison) -> ComparisonAnswer:
    return ComparisonAnswer(
        url=request.build_absolute_uri(lasting_address(comparison)),
        base=describe_side(comparison.base),
        head=describe_side(comparison.head),
        cases=[describe_summary(summary) for summary in comparison.cases],
        not_compared=[
            UnpairedCase(
                **configured_members(row.configuration),
                obstacle=row.obstacle,
                sentence=sentences.obstacle_text(row),
            )
            for row in comparison.pairing.unpaired
        ],
        warnings=sentences.comparability_sentences(comparison),
        comparison=describe_case_comparison(comparison.chosen) if comparison.chosen else None,
    )


def describe_side(side: ComparisonSide) -> ComparedSide:
    return ComparedSide(
        written=side.written,
        kind=side.kind,
        commit=describe_commit_name(side.commit),
        branch=side.commit.branch,
    )


def describe_summary(summary: CaseSummary) -> SummarizedCase:
    return SummarizedCase(
        **configured_members(summary.pair.base.configuration),
        differs=finite_size(summary.size),
        sentence=sentences.summary_text(summary.rows),
    )


def finite_size(size: float) -> float:
    """JSON has no infinity: what came from nothing is very large."""
    return min(size, 1e9)


def describe_case_comparison(compared: CaseComparison) -> ComparedCase:
    profile = compared.profile
    return ComparedCase(
        base=describe_pooled(compared.pair.base),
        head=describe_pooled(compared.pair.head),
        sentence=sentences.lead_sentence(compared),
        metrics=[describe_metric_row(row) for row in compared.rows],
        phases=[
            ComparedPhase(
                phase=row.path, base=row.base, head=row.head, difference=row.difference, share=row.share
            )
            for row in compared.phases
        ],
        functions=[describe_call(row) for row in profile.functions],
        operations=[describe_call(row) for row in profile.operations],
        kernels=[describe_call(row) for row in profile.kernels],
        profiled_runs=list(profile.runs or ()),
        environment=[describe_difference(row) for row in compared.environment],
        windows=[describe_difference(row) for row in compared.windows],
    )


def describe_pooled(side: PooledRuns) -> ComparedRuns:
    return ComparedRuns(
        **configured_members(side.configuration),
        runs=[run.pk for run in side.runs],
        machines=side.machines,
        tainted=side.are_tainted,
        left_out=[run.pk for run in side.left_out],
        older=side.older,
    )


def describe_metric_row(row: MetricRow) -> ComparedMetric:
    return ComparedMetric(
        metric=describe_metric_name(row.metric),
        phase=row.phase,
        series=row.series,
        headline=row.headline,
        exact=row.exact,
        base=row.base,
        head=row.head,
        effect=row.effect,
        ratio=row.ratio,
        difference=row.difference,
        low=row.low,
        high=row.high,
        verdict=row.verdict,
        direction=row.direction,
        reason=sentences.reason_text(row),
    )


def describe_call(row: ProfileRow) -> ComparedCall:
    return ComparedCall(
        name=row.name,
        where=row.where,
        what=row.what,
        calls_base=row.calls_base,
        calls_head=row.calls_head,
        seconds_base=row.own_base if row.has_times else None,
        seconds_head=row.own_head if row.has_times else None,
    )


def describe_difference(row: Difference) -> ComparedValue:
    return ComparedValue(name=row.label, base=row.before, head=row.after)
