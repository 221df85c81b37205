"""A delivery's life: announced, claimed by one worker at a time, tried until it gets through."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta

from django.db.models import F, Func, QuerySet, Value
from django.utils import timezone

from dashboard import dispatch
from dashboard.alerts import email, webhook
from dashboard.alerts.errors import DeliveryError, Refused
from dashboard.models import Channel, Delivery, Regression

SENDERS = {Channel.Kind.EMAIL: email.send, Channel.Kind.WEBHOOK: webhook.send}

# A worker that died while it sent is given up for lost after this time: longer than any sender takes.
CLAIM = timedelta(minutes=3)
FIRST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(hours=6)
# Twelve attempts then last a little over a day: a receiver may be down for a night.
LONGER = 3
# How long a message waits whose regression has become a suspicion again on the message's way.
UNPROVED = timedelta(minutes=1)
MOST_DUE = 200
SUSPICIOUS = (Regression.State.SUSPECTED, Regression.State.CONFIRMED)


def announce(regression: Regression, event: str = Delivery.Event.OPENED) -> list[Delivery]:
    """Tell a project's channels of an event, each once for ever; new deliveries are sent on commit.

    What isn't confirmed goes to those channels alone that ask for suspicions.
    """
    now = regression.change_percent
    return tell(regression, event, [one for one in open_to(regression) if is_worth_telling(now, one)])


def announce_growth(regression: Regression, earlier: float | None) -> list[Delivery]:
    """Tell the channels for which a regression of its `earlier` size, in percent, was too small."""
    now = regression.change_percent
    grown = [
        one
        for one in open_to(regression)
        if is_worth_telling(now, one) and not is_worth_telling(earlier, one)
    ]
    return tell(regression, Delivery.Event.OPENED, grown)


def hand_over(regression: Regression, heir: Regression) -> None:
    """Give the deliveries of a regression to the one that it turned out to be, save what that one has itself.

    Waiting ones aren't lost then, and who was told isn't told of the same cause again.
    """
    own = {(one.channel_id, one.event) for one in heir.deliveries.all()}
    theirs = regression.deliveries.all()
    keys = [one.pk for one in theirs if (one.channel_id, one.event) not in own]
    Delivery.objects.filter(pk__in=keys).update(regression=heir)


def open_to(regression: Regression) -> QuerySet[Channel]:
    if regression.is_away:
        return Channel.objects.none()
    channels = Channel.objects.filter(project=regression.project_id, enabled=True).order_by("pk")
    if regression.state == Regression.State.CONFIRMED and not regression.proving:
        return channels
    return channels.filter(suspicions=True) if regression.state in SUSPICIOUS else channels.none()


def tell(regression: Regression, event: str, channels: Iterable[Channel]) -> list[Delivery]:
    made = []
    for channel in channels:
        delivery, new = Delivery.objects.get_or_create(
            regression=regression, channel=channel, event=event, defaults={"next_attempt_at": timezone.now()}
        )
        if new:
            made.append(delivery)
            dispatch.send(dispatch.DELIVER, delivery.pk)
    return made


def is_worth_telling(change: float | None, channel: Channel) -> bool:
    """What has no ratio (from nothing to something) is always worth telling."""
    return change is None or abs(change) >= channel.minimum_percent


def due() -> list[int]:
    """The deliveries whose time has come, longest waiting first."""
    waiting = Delivery.objects.filter(state=Delivery.State.PENDING, next_attempt_at__lte=timezone.now())
    return list(waiting.order_by("next_attempt_at").values_list("pk", flat=True)[:MOST_DUE])


def deliver(delivery_id: int) -> None:
    """Try once to send a delivery whose time has come. Of several workers one tries; the others return."""
    delivery = claim(delivery_id)
    if delivery is None:
        return
    regression = delivery.regression
    if regression.withdrawn_at or regression.is_away or regression.state not in SUSPICIOUS:
        # Nobody was told, so there is nothing to log, and should it come back it is told then.
        held(delivery).delete()
        return
    if regression.state != Regression.State.CONFIRMED and not delivery.channel.suspicions:
        put_off(delivery)
        return
    try:
        refuse_hopeless(delivery)
        SENDERS[Channel.Kind(delivery.channel.kind)](delivery)
    except DeliveryError as error:
        last = delivery.attempts >= Delivery.MOST_ATTEMPTS
        fail(delivery, str(error), final=last or isinstance(error, Refused))
    else:
        held(delivery).update(state=Delivery.State.DELIVERED, delivered_at=timezone.now())


def put_off(delivery: Delivery) -> None:
    """Wait for a proof, which is no attempt: a counter's regression that a time has joined says that time."""
    later = timezone.now() + UNPROVED
    held(delivery).update(next_attempt_at=later, attempts=F("attempts") - 1)


def refuse_hopeless(delivery: Delivery) -> None:
    if delivery.attempts > Delivery.MOST_ATTEMPTS:
        raise Refused("The last attempt was cut off before its end.")
    if not delivery.channel.enabled:
        raise Refused("The channel was turned off.")


def claim(delivery_id: int) -> Delivery | None:
    """Take a pending delivery by compare-and-swap on its time; None where there is nothing to take.

    The time moves ahead by CLAIM at once, so that nobody else finds it due while this worker sends.
    """
    now = timezone.now()
    taken = Delivery.objects.filter(
        pk=delivery_id, state=Delivery.State.PENDING, next_attempt_at__lte=now
    ).update(attempts=F("attempts") + 1, next_attempt_at=now + CLAIM)
    if not taken:
        return None
    return Delivery.objects.select_related(
        "channel",
        "regression__project",
        "regression__first_bad",
        "regression__culprit",
        "regression__last_good",
        "regression__series__metric",
        "regression__series__case",
        "regression__series__pool",
    ).get(pk=delivery_id)


def held(delivery: Delivery) -> QuerySet[Delivery]:
    """The delivery as long as this attempt is its newest."""
    return Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.PENDING, attempts=delivery.attempts)


def fail(delivery: Delivery, sentence: str, *, final: bool) -> None:
    """Keep why the attempt failed, and when the next one comes."""
    appended = Func(F("errors"), Value(sentence[:1000]), function="array_append")
    if final:
        held(delivery).update(errors=appended, state=Delivery.State.FAILED)
    else:
        held(delivery).update(errors=appended, next_attempt_at=timezone.now() + wait(delivery.attempts))


def wait(attempts: int) -> timedelta:
    """Longer after each attempt, up to LONGEST_WAIT; spread, so that a receiver isn't met by all at once."""
    longest = min(FIRST_WAIT * LONGER ** (attempts - 1), LONGEST_WAIT)
    spread = random.uniform(0.75, 1.0)  # noqa: S311 - keeps no secret
    return timedelta(seconds=longest.total_seconds() * spread)
