"""What is said of a claim, and to whom: that it is refuted, and that it holds again. Each turn once."""

from __future__ import annotations

from django.db.models.functions import Now

from dashboard import dispatch
from dashboard.alerts import rules
from dashboard.alerts.announcing import collects_messages
from dashboard.alerts.rules import MeasuredSubject, RegressionFacts
from dashboard.models import AlertRule, Channel, Claim, ClaimMeasurement, Delivery

Event = Delivery.Event
TRUE_WHILE = {
    Event.CLAIM_REFUTED: Claim.Standing.REFUTED,
    Event.CLAIM_HOLDS: Claim.Standing.HOLDS,
}


def announce_claim(measurement: ClaimMeasurement, event: str) -> list[Delivery]:
    """Tell the channels whose rules want it; that it holds again those alone that heard of its end."""
    claim, created = measurement.claim, []
    facts = facts_of_claim(measurement)
    channels = Channel.objects.filter(project=claim.project_id, enabled=True).prefetch_related("rules")
    for channel in channels.order_by("pk"):
        if event == Event.CLAIM_HOLDS:
            reached = was_refutation_announced(channel, claim)
        else:
            reached = rules.wants_regression(rules.rules_of(channel), facts)
        if reached:
            created += create_claim_delivery(measurement, channel, event)
    return created


def facts_of_claim(measurement: ClaimMeasurement) -> RegressionFacts:
    """What the rules of channels look at: an experiment proved it, so it is confirmed."""
    claim, case = measurement.claim, measurement.head.case
    metric = str(claim.definition.get("metric", "throughput")).partition(":")[0]
    return RegressionFacts(
        subjects=(MeasuredSubject(claim.benchmark, str(case), metric),),
        branch=measurement.commit.branch,
        state=AlertRule.State.CONFIRMED,
        percent=lost_percent(measurement),
    )


def lost_percent(measurement: ClaimMeasurement) -> float | None:
    """By how much less than before it is worth, in percent; None where nothing measured before tells."""
    before = (
        ClaimMeasurement.objects.filter(
            claim=measurement.claim_id, digest=measurement.digest, verdict="holds", value__isnull=False
        )
        .exclude(pk=measurement.pk)
        .order_by("-commit__position", "-pk")
        .first()
    )
    if before is None or not before.value or measurement.value is None:
        return None
    return 100 * (measurement.value / before.value - 1)


def was_refutation_announced(channel: Channel, claim: Claim) -> bool:
    """Whether the last that a channel was notified of the claim, or is about to be, is that it is refuted."""
    deliveries = Delivery.objects.filter(channel=channel, claim_measurement__claim=claim)
    newest = deliveries.exclude(state=Delivery.State.FAILED).order_by("-pk").first()
    return newest is not None and newest.event == Event.CLAIM_REFUTED


def create_claim_delivery(measurement: ClaimMeasurement, channel: Channel, event: str) -> list[Delivery]:
    """The new one, sent on commit; none where the channel was notified by this measurement already."""
    state = Delivery.State.COLLECTED if collects_messages(channel) else Delivery.State.PENDING
    delivery, new = Delivery.objects.get_or_create(
        claim_measurement=measurement,
        channel=channel,
        defaults={"event": event, "next_attempt_at": Now(), "state": state},
    )
    if new and state == Delivery.State.PENDING:
        dispatch.send_task(dispatch.DELIVER, delivery.pk)
    return [delivery] if new else []


def is_claim_outdated(delivery: Delivery) -> bool:
    """Whether the claim stands otherwise by now, or says something else."""
    measurement = delivery.claim_measurement
    return measurement is not None and measurement.claim.standing != TRUE_WHILE.get(Event(delivery.event))
