"""Claims as the pages' tests need them: of a benchmark, measured at some commits."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from paceline.claims.claims_file import parse_definition

from dashboard.claims.standing import update_standing
from dashboard.models import Claim, ClaimMeasurement, ClaimsFile, Commit, Delivery
from tests.pages import builders
from tests.pages.experiment_builders import create_ended, get_configuration

DEFINITION = {
    "claim": "The fused optimizer is 1.5 times faster",
    "toggle": "fused",
    "value": [1.5],
    "before": {"fused": False},
    "after": {"fused": True},
    "phase": "learn",
}


def create_claim(line: list[Commit], key: str = "fused", **definition: Any) -> Claim:
    """One of the benchmark walker, whose file was read at the newest of these commits."""
    project = line[-1].project
    raw = {"id": key, **(definition or DEFINITION)}
    text = parse_definition(raw)
    ClaimsFile.objects.get_or_create(
        project=project,
        benchmark="walker",
        defaults={"document": "A report", "commit": line[-1], "asked_at": timezone.now()},
    )
    return Claim.objects.create(
        project=project,
        benchmark="walker",
        key=key,
        text=text.claim,
        definition=raw,
        digest=text.definition,
        position=Claim.objects.filter(project=project).count(),
    )


def measure_claim(
    claim: Claim, commit: Commit, value: float, verdict: str, half: float = 0.02
) -> ClaimMeasurement:
    """A measurement by an experiment that has ended, and how the claim stands then."""
    measurement = ClaimMeasurement.objects.create(
        claim=claim,
        commit=commit,
        digest=claim.digest,
        requester="person",
        base=get_configuration(commit, fused="false"),
        head=get_configuration(commit, fused="true"),
        experiment=create_ended([commit], purpose="claim"),
        state="done",
        value=value,
        low=value - half,
        high=value + half,
        unit="x",
        verdict=verdict,
        evidence={"kind": "pairs", "samples": 6, "disturbed": 1},
        measured_at=timezone.now(),
    )
    update_standing(Claim.objects.select_related("project").get(pk=claim.pk), measurement)
    return measurement


def create_watched(line: list[Commit]) -> Claim:
    """A claim that held and is refuted at the newest commit, beside one that nothing measures."""
    claim = create_claim(line)
    for commit, value, verdict in zip(
        line, (1.52, 1.49, 1.3, 1.01), ("holds", "holds", "not known", "none"), strict=False
    ):
        measure_claim(claim, commit, value, verdict, 0.2 if verdict == "not known" else 0.02)
    other = create_claim(
        line, "cluster", claim="A cluster is 100 times faster", value=[100], untestable="there is no cluster"
    )
    Claim.objects.filter(pk=other.pk).update(reason={"code": "untestable", "text": "there is no cluster"})
    claim.refresh_from_db()
    return claim


def claim_pages() -> list[str]:
    """Addresses of claims that have everything between them that the pages can show."""
    project = builders.create_project("claimed")
    line = builders.create_commits(project, 4)
    claim = create_watched(line)
    measured = claim.measurements.latest("pk")
    gone = create_claim(line, "gone")
    ClaimMeasurement.objects.create(
        claim=gone, commit=line[0], digest="other", requester="policy", head=measured.head
    )
    by_run = create_claim(line, "share", claim="It is", metric="phase_share:learn", at_least=0.5, case={})
    run = builders.create_measured_run(line[-1], measured.head.case, 0.004, seed=3)
    found = measure_claim(by_run, line[-1], 0.7, "holds")
    ClaimMeasurement.objects.filter(pk=found.pk).update(experiment=None, run=run)
    ClaimsFile.objects.filter(project=project).update(problem="claims.toml: claims[0].id: is missing.")
    channel = project.channels.create(kind="email", address="ada@example.org")
    Delivery.objects.create(
        channel=channel, claim_measurement=measured, event="claim_refuted", next_attempt_at=timezone.now()
    )
    Claim.objects.filter(pk=gone.pk).update(listed=False)
    page = f"/projects/{project.slug}/claims/"
    own = (f"/claims/{key}/" for key in Claim.objects.filter(project=project).values_list("pk", flat=True))
    tabs = (f"{page}walker/?show={show}" for show in ("all", "measured", "toggles"))
    return [page, *tabs, *own, "/deliveries/"]
