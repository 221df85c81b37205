"""What a digest lists: the events that were collected for it, and what still waits for triage."""

from __future__ import annotations

from dashboard.models import ClaimMeasurement, Delivery, Regression
from dashboard.querysets.regressions import IS_OPEN, regressions_with_related, with_titles

# So many of what waits are listed; the page has all of them.
MOST_WAITING = 20
NEW_EVENTS = (Delivery.Event.OPENED, Delivery.Event.CONFIRMED, Delivery.Event.REOPENED)
GROUPED_EVENTS = (*NEW_EVENTS, Delivery.Event.RECOVERED, Delivery.Event.WITHDRAWN)


def group_regressions(digest: Delivery) -> list[tuple[str, list[Regression]]]:
    """(group, its regressions): what is new, what recovered or was withdrawn, and what still waits."""
    collected = digest.collected.filter(regression__isnull=False).order_by("created_at")
    rows = list(collected.values_list("event", "regression_id"))
    # What recovered and came back within a day is back.
    last = {key: event for event, key in rows if event in GROUPED_EVENTS}
    new, recovered, withdrawn = (
        _read_regressions([key for key, event in last.items() if event in events])
        for events in (NEW_EVENTS, [Delivery.Event.RECOVERED], [Delivery.Event.WITHDRAWN])
    )
    listed = {regression.pk for regression in (*new, *recovered, *withdrawn)}
    return [
        ("New", new),
        ("Recovered", recovered),
        ("Withdrawn", withdrawn),
        ("Waiting for triage", waiting_regressions(digest, listed)),
    ]


def collected_claims(digest: Delivery) -> list[tuple[str, ClaimMeasurement]]:
    """(event, measurement) of the claims that were refuted or hold again."""
    rows = digest.collected.filter(claim_measurement__isnull=False).order_by("created_at")
    related = ("claim__project", "commit", "head__case", "head__pool")
    found = rows.select_related(*(f"claim_measurement__{name}" for name in related))
    return [(row.event, row.claim_measurement) for row in found if row.claim_measurement is not None]


def _read_regressions(keys: list[int | None]) -> list[Regression]:
    rows = with_titles(regressions_with_related())
    return list(rows.in_bulk([key for key in keys if key]).values())


def waiting_regressions(digest: Delivery, without: set[int]) -> list[Regression]:
    """What the channel was notified of before and nobody has triaged."""
    opened = Delivery.objects.filter(
        channel=digest.channel_id, event=Delivery.Event.OPENED, state=Delivery.State.DELIVERED
    )
    rows = with_titles(regressions_with_related()).filter(
        IS_OPEN, triaged=Regression.Triaged.OPEN, pk__in=opened.values("regression")
    )
    return list(rows.exclude(pk__in=without).order_by("opened_at")[:MOST_WAITING])
