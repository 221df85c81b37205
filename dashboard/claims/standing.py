"""How a claim stands along the project's branch: the newest sure verdict, and since which commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from paceline.claims.verdicts import HOLDS, LARGER, REFUTED

from dashboard import alerts
from dashboard.models import Claim, ClaimMeasurement, Delivery

Standing = Claim.Standing
# So many of the newest measurements tell since when a verdict holds.
MOST_READ = 1000


@dataclass(frozen=True, slots=True)
class MeasuredVerdict:
    """A verdict at a position of the branch."""

    position: int
    key: int
    commit: int
    verdict: str


@dataclass(frozen=True, slots=True)
class BranchStanding:
    """`verdict` and its measurement are the newest; `since`: the first commit of an unbroken row of it."""

    verdict: str
    standing: str
    newest: int
    since: int


def standing_of_verdict(verdict: str, *, better: bool) -> str:
    """What a verdict settles; nothing where it isn't sure. `better`: more than claimed is no loss."""
    if verdict == HOLDS or (better and verdict == LARGER):
        return Standing.HOLDS
    return Standing.REFUTED if verdict in REFUTED else Standing.NOTHING


def stand_along_branch(measured: Sequence[MeasuredVerdict], *, better: bool) -> BranchStanding | None:
    """By the newest commit, and there by the newest measurement; None where nothing was measured."""
    if not measured:
        return None
    by_commit: dict[int, MeasuredVerdict] = {}
    for row in sorted(measured, key=lambda row: (row.position, row.key)):
        by_commit[row.commit] = row
    ordered = sorted(by_commit.values(), key=lambda row: row.position, reverse=True)
    newest = ordered[0]
    since = newest
    for row in ordered:
        if row.verdict != newest.verdict:
            break
        since = row
    sure = (standing_of_verdict(row.verdict, better=better) for row in ordered)
    standing = next((found for found in sure if found), Standing.NOTHING)
    return BranchStanding(newest.verdict, str(standing), newest.key, since.commit)


def update_standing(claim: Claim, measurement: ClaimMeasurement) -> None:
    """Keep how a locked claim stands now, and tell of what changed by this measurement."""
    before = claim.standing
    found = _keep_standing(claim)
    if found is not None and found.newest == measurement.pk:
        announce_turn(claim, measurement, before)


def history_rewritten(project_id: int, commits: Sequence[int]) -> None:
    """Commits have left the branch or returned to it: claims stand without or with what was measured there.

    Nobody is notified. Safe to repeat.
    """
    measured = ClaimMeasurement.objects.filter(claim__project=project_id, commit__in=commits)
    with transaction.atomic():
        claims = Claim.objects.select_for_update(of=("self",)).filter(pk__in=measured.values("claim"))
        for claim in claims.select_related("project").order_by("pk"):
            _keep_standing(claim)


def _keep_standing(claim: Claim) -> BranchStanding | None:
    """By what was measured along the branch; None where nothing was."""
    rows = ClaimMeasurement.objects.filter(
        claim=claim,
        digest=claim.digest,
        state=ClaimMeasurement.State.DONE,
        commit__branch=claim.project.branch,
    ).order_by("-commit__position", "-pk")
    values = rows.values_list("commit__position", "pk", "commit", "verdict")[:MOST_READ]
    found = stand_along_branch([MeasuredVerdict(*row) for row in values], better=counts_more_as_gain(claim))
    if found is None:
        claim.verdict, claim.standing = "", str(Standing.NOTHING)
        claim.newest_id = claim.since_id = None
    else:
        claim.verdict, claim.standing = found.verdict, found.standing
        claim.newest_id, claim.since_id = found.newest, found.since
    claim.save(update_fields=["verdict", "standing", "newest", "since"])
    return found


def announce_turn(claim: Claim, measurement: ClaimMeasurement, before: str) -> None:
    """Tell once where what held is refuted, and once where what was reported as refuted holds again."""
    if (before, claim.standing) == (Standing.HOLDS, Standing.REFUTED):
        alerts.announce_claim(measurement, Delivery.Event.CLAIM_REFUTED)
    elif (before, claim.standing) == (Standing.REFUTED, Standing.HOLDS):
        alerts.announce_claim(measurement, Delivery.Event.CLAIM_HOLDS)


def counts_more_as_gain(claim: Claim) -> bool:
    """Whether more than claimed is good news: of a gain between two cases."""
    raw = claim.definition
    return "before" in raw and raw.get("direction", "better") == "better"
