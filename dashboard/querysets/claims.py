"""Claims as pages read them: bounded lists, and never a query for each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from dashboard.models import Claim, ClaimMeasurement, Project

State = ClaimMeasurement.State
# The tabs of a benchmark's table, in the order shown.
SHOWN: dict[str, Q] = {
    "all": Q(),
    "holds": Q(verdict="holds"),
    "refuted": Q(verdict__in=("smaller", "larger", "none", "opposite")),
    "not known": Q(verdict="not known"),
    "measured": Q(verdict="measured"),
    "not measured": Q(verdict=""),
    "toggles": Q(definition__has_key="toggle"),
}
# So many of a claim's newest measurements are drawn beside its row.
RECENT = 20


@dataclass(frozen=True, slots=True)
class BenchmarkClaims:
    """How the claims of one benchmark stand."""

    benchmark: str
    counts: dict[str, int]


def listed_claims(project: Project, benchmark: str = "") -> QuerySet[Claim]:
    """The claims of the files that were read last, in their order."""
    rows = Claim.objects.filter(project=project, listed=True)
    return (rows.filter(benchmark=benchmark) if benchmark else rows).order_by("benchmark", "position", "pk")


def with_newest(rows: QuerySet[Claim]) -> QuerySet[Claim]:
    """With all that a row of the table names."""
    return rows.select_related(
        *("since", "newest__commit", "newest__head__pool", "newest__experiment", "newest__run"),
    )


def count_by_benchmark(project: Project) -> list[BenchmarkClaims]:
    """How many claims of each benchmark each of SHOWN would list, in one query."""
    rows = Claim.objects.filter(project=project, listed=True).values("benchmark").order_by("benchmark")
    counts = {
        name.replace(" ", "_"): Count("pk", filter=rule) if rule else Count("pk")
        for name, rule in SHOWN.items()
    }
    counted: Iterable[Any] = rows.annotate(**counts)
    return [
        BenchmarkClaims(row["benchmark"], {name: row[name.replace(" ", "_")] for name in SHOWN})
        for row in counted
    ]


def recent_values(claims: Iterable[Claim], branch: str) -> dict[int, list[float]]:
    """By claim the newest values along the branch, the oldest first, in one query."""
    rows = ClaimMeasurement.objects.filter(
        claim__in=[claim.pk for claim in claims],
        digest=F("claim__digest"),
        state=State.DONE,
        value__isnull=False,
        commit__branch=branch,
    )
    ranked = rows.annotate(
        rank=Window(
            RowNumber(), partition_by=F("claim"), order_by=(F("commit__position").desc(), F("pk").desc())
        )
    ).filter(rank__lte=RECENT)
    found: dict[int, list[float]] = {}
    for claim, value in ranked.order_by("claim", "-rank").values_list("claim", "value"):
        found.setdefault(claim, []).append(float(value or 0.0))
    return found


def waiting_counts(project: Project) -> dict[str, int]:
    """By benchmark how many claims are being measured or wait for it, at whichever commits."""
    rows = ClaimMeasurement.objects.filter(claim__project=project, state=State.REQUESTED)
    counted = (
        rows.values("claim__benchmark")
        .order_by("claim__benchmark")
        .annotate(number=Count("claim", distinct=True))
    )
    return {row["claim__benchmark"]: row["number"] for row in counted}


def measurements_of(claim: Claim) -> QuerySet[ClaimMeasurement]:
    """All of a claim, the newest commit first."""
    rows = ClaimMeasurement.objects.filter(claim=claim).select_related(
        "commit", "head__pool", "head__case", "experiment", "run", "requested_by"
    )
    return rows.order_by("-commit__position", "-pk")


def measured_along_branch(claim: Claim, most: int) -> list[ClaimMeasurement]:
    """The newest that have a figure, by the commits of the project's branch, the oldest first."""
    rows = measurements_of(claim).filter(
        state=State.DONE, value__isnull=False, digest=claim.digest, commit__branch=claim.project.branch
    )
    return list(rows[:most])[::-1]
