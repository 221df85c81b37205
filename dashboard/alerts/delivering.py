"""A delivery's life: announced, claimed by one worker at a time, tried until it gets through."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta

from django.db.models import F, Func, Q, QuerySet, Value
from django.db.models.functions import Now

from dashboard import dispatch, leases
from dashboard.alerts import email, webhook
from dashboard.alerts.errors import DeliveryError, PermanentDeliveryError
from dashboard.models import Channel, Delivery, Regression

SENDERS = {Channel.Kind.EMAIL: email.send_email, Channel.Kind.WEBHOOK: webhook.send_webhook}

# A worker that died while it sent is given up for lost after this time: longer than any sender takes.
CLAIM_LEASE = timedelta(minutes=3)
FIRST_RETRY_DELAY = timedelta(seconds=10)
LONGEST_RETRY_DELAY = timedelta(hours=6)
# Each wait is so many times as long as the one before. Twelve attempts then last a little over a day: a
# receiver may be down for a night.
RETRY_FACTOR = 3
# How long a message waits whose regression has become a suspicion again before it was sent.
PROOF_WAIT = timedelta(minutes=1)
MOST_DUE = 200
ALERTED_STATES = (Regression.State.SUSPECTED, Regression.State.CONFIRMED)


def announce_regression(regression: Regression, event: str = Delivery.Event.OPENED) -> list[Delivery]:
    """Tell a project's channels of an event, each once for ever; new deliveries are sent on commit.

    What isn't confirmed goes to those channels alone that ask for suspicions.
    """
    change = regression.change_percent
    channels = eligible_channels(regression)
    reached = [channel for channel in channels if reaches_channel_minimum(change, channel)]
    return create_deliveries(regression, event, reached)


def announce_growth(regression: Regression, earlier: float | None) -> list[Delivery]:
    """Tell the channels for which the regression's `earlier` change, in percent, was too small."""
    change = regression.change_percent
    newly_reached = [
        channel
        for channel in eligible_channels(regression)
        if reaches_channel_minimum(change, channel) and not reaches_channel_minimum(earlier, channel)
    ]
    return create_deliveries(regression, Delivery.Event.OPENED, newly_reached)


def transfer_deliveries(source: Regression, target: Regression) -> None:
    """Give the deliveries of a regression to the one that it turned out to be, save what that one has itself.

    Waiting ones aren't lost then, and who was told isn't told of the same cause again.
    """
    existing = {(delivery.channel_id, delivery.event) for delivery in target.deliveries.all()}
    keys = [
        delivery.pk
        for delivery in source.deliveries.all()
        if (delivery.channel_id, delivery.event) not in existing
    ]
    Delivery.objects.filter(pk__in=keys).update(regression=target)


def eligible_channels(regression: Regression) -> QuerySet[Channel]:
    """The channels that may hear of a regression in its present state, whatever their minimum."""
    if regression.is_away:
        return Channel.objects.none()
    channels = Channel.objects.filter(project=regression.project_id, enabled=True).order_by("pk")
    if regression.state == Regression.State.CONFIRMED and not regression.proving:
        return channels
    return channels.filter(suspicions=True) if regression.state in ALERTED_STATES else channels.none()


def create_deliveries(regression: Regression, event: str, channels: Iterable[Channel]) -> list[Delivery]:
    """The new ones alone: a channel that was told of the event already isn't told again."""
    created = []
    for channel in channels:
        delivery, new = Delivery.objects.get_or_create(
            regression=regression, channel=channel, event=event, defaults={"next_attempt_at": Now()}
        )
        if new:
            created.append(delivery)
            dispatch.send_task(dispatch.DELIVER, delivery.pk)
    return created


def reaches_channel_minimum(change: float | None, channel: Channel) -> bool:
    """What has no ratio (from nothing to something) is always worth telling."""
    return change is None or abs(change) >= channel.minimum_percent


def due_deliveries() -> list[int]:
    """The deliveries whose time has come, longest waiting first."""
    return list(waiting_deliveries().values_list("pk", flat=True)[:MOST_DUE])


def waiting_deliveries() -> QuerySet[Delivery]:
    """Those whose time has come by the database's clock, and that nobody is sending."""
    free = Q(lease_until=None) | Q(lease_until__lte=Now())
    due = Delivery.objects.filter(free, state=Delivery.State.PENDING, next_attempt_at__lte=Now())
    return due.order_by("next_attempt_at", "pk")


def attempt_delivery(delivery_id: int) -> None:
    """Try once to send a delivery whose time has come. Of several workers one tries; the others return."""
    delivery = claim_delivery(delivery_id)
    if delivery is None:
        return
    regression = delivery.regression
    if regression.withdrawn_at or regression.is_away or regression.state not in ALERTED_STATES:
        # Nobody was told, so there is nothing to log, and should it come back it is told then.
        claimed_delivery(delivery).delete()
        return
    if regression.state != Regression.State.CONFIRMED and not delivery.channel.suspicions:
        postpone_delivery(delivery)
        return
    try:
        refuse_undeliverable(delivery)
        SENDERS[Channel.Kind(delivery.channel.kind)](delivery)
    except DeliveryError as error:
        last = delivery.attempt >= Delivery.MOST_ATTEMPTS
        record_failure(delivery, str(error), final=last or isinstance(error, PermanentDeliveryError))
    else:
        done = {"state": Delivery.State.DELIVERED, "delivered_at": Now(), "lease_until": None}
        claimed_delivery(delivery).update(**done)


def postpone_delivery(delivery: Delivery) -> None:
    """Wait for a proof, which is no attempt: a counter's regression that a time has joined says that time."""
    later = Now() + PROOF_WAIT
    claimed_delivery(delivery).update(next_attempt_at=later, lease_until=None, attempt=F("attempt") - 1)


def refuse_undeliverable(delivery: Delivery) -> None:
    if delivery.attempt > Delivery.MOST_ATTEMPTS:
        raise PermanentDeliveryError("The last attempt was cut off before its end.")
    if not delivery.channel.enabled:
        raise PermanentDeliveryError("The channel was turned off.")


def claim_delivery(delivery_id: int) -> Delivery | None:
    """Take a delivery whose time has come; None where there is nothing to take."""
    waiting = waiting_deliveries().filter(pk=delivery_id)
    claimed = leases.claim_first(waiting, seconds=CLAIM_LEASE.total_seconds())
    if claimed is None:
        return None
    return Delivery.objects.select_related(
        "channel",
        "regression__project",
        "regression__first_bad",
        "regression__culprit",
        "regression__last_good",
        "regression__series__metric",
        "regression__series__configuration__case",
        "regression__series__configuration__pool",
    ).get(pk=delivery_id)


def claimed_delivery(delivery: Delivery) -> QuerySet[Delivery]:
    """The delivery as long as this attempt holds it."""
    return leases.held_row(Delivery, leases.lease_of(delivery), state=Delivery.State.PENDING)


def record_failure(delivery: Delivery, sentence: str, *, final: bool) -> None:
    """Keep why the attempt failed, and when the next one comes."""
    appended = Func(F("errors"), Value(sentence[:1000]), function="array_append")
    if final:
        claimed_delivery(delivery).update(errors=appended, state=Delivery.State.FAILED, lease_until=None)
    else:
        later = Now() + retry_delay(delivery.attempt)
        claimed_delivery(delivery).update(errors=appended, next_attempt_at=later, lease_until=None)


def retry_delay(attempts: int) -> timedelta:
    """Longer after each attempt, up to the longest; spread, so that a receiver isn't met by all at once."""
    longest = min(FIRST_RETRY_DELAY * RETRY_FACTOR ** (attempts - 1), LONGEST_RETRY_DELAY)
    spread = random.uniform(0.75, 1.0)  # noqa: S311 - keeps no secret
    return timedelta(seconds=longest.total_seconds() * spread)
