"""Claims: of a project by benchmark, of a benchmark as a table, of one over commits; and measuring them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from paceline.claims.claim import Claim as ClaimText
from paceline.claims.claims_file import parse_definition
from paceline.claims.verdicts import HOLDS, REFUTED, accepted_range

from dashboard import claims
from dashboard.access import visitor_of
from dashboard.charts.claim_history import ClaimHistory, HistoryPoint, layout_history
from dashboard.charts.sparkline import Sparkline, layout_sparkline
from dashboard.models import Claim, ClaimMeasurement, ClaimsFile, Project
from dashboard.pages.form_fields import read_text
from dashboard.pages.link_previews import preview_of_page
from dashboard.pages.paging import requested_page
from dashboard.pages.requested_project import requested_project
from dashboard.policy.project_policy import project_policy
from dashboard.querysets import claims as claim_queries
from dashboard.sentences.comparisons import claims as sentences

ROWS_PER_PAGE = 50
MOST_DRAWN = 60
SURE = (HOLDS, *REFUTED)
LONGEST = 500


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A line of a benchmark's table."""

    claim: Claim
    text: ClaimText
    expected: str
    accepted: str
    metric: str
    measured: str
    evidence: str
    verdict: str
    tone: str
    reason: str
    before: str
    after: str
    trend: Sparkline | None


@require_safe
def claims_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The benchmarks that have claims, and how these stand."""
    project = requested_project(request, slug)
    stands = {row.benchmark: row.counts for row in claim_queries.count_by_benchmark(project)}
    files = ClaimsFile.objects.filter(project=project).select_related("commit")[:ROWS_PER_PAGE]
    waiting = claim_queries.waiting_counts(project)
    rows = [
        {"file": file, "counts": stands.get(file.benchmark, {}), "waiting": waiting.get(file.benchmark, 0)}
        for file in files
    ]
    context = {"project": project, "tab": "claims", "rows": rows, "policy": project_policy(project)}
    return render(request, "claims/claims.html", context)


@require_safe
def benchmark_page(request: HttpRequest, slug: str, benchmark: str) -> HttpResponse:
    """`show`: one of the tabs; `page`."""
    project = requested_project(request, slug)
    file = get_object_or_404(
        ClaimsFile.objects.select_related("commit"), project=project, benchmark=benchmark
    )
    show = request.GET.get("show", "all")
    if show not in claim_queries.SHOWN:
        raise BadRequest(f"show must be one of {', '.join(claim_queries.SHOWN)}.")
    counts = next(
        (row.counts for row in claim_queries.count_by_benchmark(project) if row.benchmark == benchmark), {}
    )
    rows = claim_queries.listed_claims(project, benchmark).filter(claim_queries.SHOWN[show])
    listed = requested_page(request, claim_queries.with_newest(rows), ROWS_PER_PAGE)
    shown = list(listed)
    context = {
        "project": project,
        "tab": "claims",
        "file": file,
        "page": listed,
        "rows": table_rows(shown, claim_queries.recent_values(shown, project.branch)),
        "show": show,
        "tabs": [(name, number) for name, number in counts.items() if number or name in ("all", show)],
        "waiting": claim_queries.waiting_counts(project).get(benchmark, 0),
    }
    return render(request, "claims/benchmark.html", context)


@require_safe
def claim_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One claim: what it says, how it stands, and each measurement. `page`."""
    related = Claim.objects.select_related(
        "project", "since", "newest__commit", "newest__head__pool", "newest__experiment", "newest__run"
    )
    claim = get_object_or_404(related, pk=pk)
    (row,) = table_rows([claim], {})
    history = history_of(row.text, claim_queries.measured_along_branch(claim, MOST_DRAWN))
    image = reverse("claim-picture", args=[claim.pk, "png"]) if history else ""
    listed = requested_page(request, claim_queries.measurements_of(claim), ROWS_PER_PAGE)
    context = {
        "project": claim.project,
        "tab": "claims",
        "row": row,
        "claim": claim,
        "hand_command": sentences.hand_command(claim),
        "history": history,
        "preview": preview_of_page(
            claim.project, claim.get_absolute_url(), claim.text, sentences.standing_sentence(claim), image
        ),
        "page": listed,
        "measurements": [measurement_row(measurement) for measurement in listed],
    }
    return render(request, "claims/claim.html", context)


def table_rows(rows: Sequence[Claim], values: dict[int, list[float]]) -> list[ClaimRow]:
    found = []
    for claim in rows:
        text, newest = parse_definition(claim.definition), claim.newest
        before, after = sentences.sides_text(text)
        # What was measured stays shown, also where nothing here would measure it again.
        reason = claim.reason if claim.reason or newest is None else doubt_of(newest)
        found.append(
            ClaimRow(
                claim=claim,
                text=text,
                expected=sentences.claimed_text(text),
                # What can't be tested names no metric and no case.
                accepted="" if text.untestable else sentences.accepted_text(text),
                metric="" if text.untestable else sentences.metric_text(text),
                measured=sentences.measured_text(newest) if newest else "",
                evidence=sentences.evidence_text(newest) if newest else "",
                verdict=sentences.verdict_text(claim.verdict),
                tone=sentences.verdict_tone(claim.verdict),
                reason=sentences.reason_text(reason),
                before=before,
                after=after,
                trend=layout_sparkline(values.get(claim.pk, [])),
            )
        )
    return found


def measurement_row(measurement: ClaimMeasurement) -> dict[str, Any]:
    waits = measurement.state == ClaimMeasurement.State.REQUESTED
    return {
        "measurement": measurement,
        "measured": sentences.measured_text(measurement),
        "evidence": sentences.evidence_text(measurement),
        "verdict": "being measured" if waits else sentences.verdict_text(measurement.verdict),
        "tone": sentences.verdict_tone(measurement.verdict),
        "reason": sentences.reason_text(doubt_of(measurement)),
    }


def doubt_of(measurement: ClaimMeasurement) -> dict[str, Any]:
    """Why its verdict isn't clearer, as a code with values; a sure one needs no more precision."""
    return {} if measurement.verdict in SURE else measurement.reason


def history_of(text: ClaimText, measured: Sequence[ClaimMeasurement]) -> ClaimHistory | None:
    """The chart: of a loss, which is claimed the other way round, the bounds are turned as well."""
    accepted = accepted_range(text)
    bounds = (accepted.low, accepted.high) if accepted else None
    if bounds and text.direction == "worse":
        bounds = 1 / bounds[1] if bounds[1] > 0 else 0.0, 1 / bounds[0] if bounds[0] > 0 else float("inf")
    points = [
        HistoryPoint(
            value=row.value,
            low=row.low,
            high=row.high,
            tone=sentences.verdict_tone(row.verdict),
            label=row.commit.short[:7],
            text=f"{row.commit.short} {row.commit.subject}: {sentences.measured_text(row)}, "
            f"{sentences.verdict_text(row.verdict)}",
            address=evidence_address(row),
        )
        for row in measured
        if row.value is not None and row.low is not None and row.high is not None
    ]
    return layout_history(points, bounds, is_ratio=text.before is not None)


def evidence_address(measurement: ClaimMeasurement) -> str:
    """The page of what measured it; empty where that is gone."""
    if measurement.experiment_id:
        return reverse("experiment", args=[measurement.experiment_id])
    return reverse("run", args=[measurement.run_id]) if measurement.run_id else ""


@require_POST
def measure_claims(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: `benchmark`, `claim` (both empty: all), `commit` (empty: the branch's newest).

    A commit that is refused is shown again as it was typed.
    """
    project = requested_project(request, slug)
    written = {
        name: read_text(request.POST, name).strip()[:LONGEST]
        for name in ("benchmark", "claim", "commit", "pool")
    }
    try:
        asked = claims.request_claims(
            project,
            written["benchmark"],
            written["commit"],
            [written["claim"]] if written["claim"] else (),
            pool=written["pool"],
            actor=visitor_of(request),
        )
    except claims.ClaimsError as error:
        if error.field == "commit":
            context = {"project": project, "tab": "claims", "written": written, "refused": str(error)}
            context["form_page"] = form_page(project, written)
            return render(request, "claims/measure.html", context, status=400)
        messages.error(request, str(error))
    else:
        messages.success(request, asked_sentence(asked))
    return redirect(form_page(project, written))


def form_page(project: Project, written: dict[str, str]) -> str:
    """Where the form stood: at a claim, a benchmark, or all of them."""
    if written["claim"]:
        found = Claim.objects.filter(
            project=project, benchmark=written["benchmark"], key=written["claim"]
        ).first()
        if found:
            return found.get_absolute_url()
    known = ClaimsFile.objects.filter(project=project, benchmark=written["benchmark"]).first()
    return known.get_absolute_url() if known else reverse("project-claims", args=[project.slug])


def asked_sentence(asked: claims.RequestedClaims) -> str:
    """`At abc1234567: 12 claims are being measured, 3 were judged by runs.`"""
    parts = []
    if asked.experiments:
        parts.append(
            f"{asked.experiments} {'claim is' if asked.experiments == 1 else 'claims are'} being measured"
        )
    if asked.by_runs:
        parts.append(f"{asked.by_runs} {'was' if asked.by_runs == 1 else 'were'} judged by runs")
    if asked.unmeasured == 1:
        parts.append("1 isn't measured now, its row says why")
    elif asked.unmeasured:
        parts.append(f"{asked.unmeasured} aren't measured now, their rows say why")
    return f"At {asked.commit.short}: {', '.join(parts) or 'nothing is claimed'}."
