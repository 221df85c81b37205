"""A delivery's life: claimed by one worker at a time, tried until it gets through or is no longer true."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Func, Max, Q, QuerySet, Value
from django.db.models.functions import Now
from django.utils import timezone

from dashboard import dispatch, failed_jobs, leases
from dashboard.alerts import announcing, kinds, reported_states, rules, snoozing
from dashboard.alerts.announcing import ALERTED_STATES
from dashboard.alerts.claims import is_claim_outdated
from dashboard.alerts.errors import DeliveryError, PermanentDeliveryError
from dashboard.alerts.messages import ONGOING_EVENTS
from dashboard.alerts.send_times import earliest_send
from dashboard.models import Channel, Delivery, Regression
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

# A worker that died while it sent is given up for lost after this time: longer than any sender takes.
CLAIM_LEASE = timedelta(minutes=3)
FIRST_RETRY_DELAY = timedelta(seconds=10)
LONGEST_RETRY_DELAY = timedelta(hours=6)
# Each wait is so many times as long as the one before. Twelve attempts then last a little over a day: a
# receiver may be down for a night.
RETRY_FACTOR = 3
# How long a message waits whose regression has become a suspicion again before it was sent.
PROOF_WAIT = timedelta(minutes=1)
SNOOZE_WAIT = timedelta(hours=1)
MOST_DUE = 200
# What was given up is made up for so long, should its channel work again. What is older is no news.
MISSED_FOR = timedelta(days=14)
# Given up so often as this it is left, whatever else its channel takes.
MOST_FAILURES = 2 * Delivery.MOST_ATTEMPTS
# Events that begin with the regression; all others follow one of these.
FIRST_EVENTS = (Delivery.Event.OPENED,)


def due_deliveries() -> list[int]:
    """The deliveries whose time has come, longest waiting first; not those whose job pauses."""
    trying = waiting_deliveries().exclude(pk__in=failed_jobs.failing_keys(dispatch.DELIVER))
    return list(trying.values_list("pk", flat=True)[:MOST_DUE])


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
    if is_outdated(delivery):
        # Nobody was notified, so there is nothing to log, and should it come back it is reported then.
        claimed_delivery(delivery).delete()
        return
    if later := time_to_wait_for(delivery, timezone.now()):
        postpone_delivery(delivery, later)
        return
    send_claimed(delivery)


def send_claimed(delivery: Delivery) -> None:
    """Send what this worker has claimed, and keep what came of it: delivered, or when to try again."""
    began = time.monotonic()
    reported = reported_states.reported_state(delivery.regression) if delivery.regression else ""
    try:
        refuse_undeliverable(delivery)
        kinds.send_delivery(delivery)
    except DeliveryError as error:
        once = delivery.event == Delivery.Event.TEST
        last = once or delivery.attempt >= Delivery.MOST_ATTEMPTS
        final = last or isinstance(error, PermanentDeliveryError)
        record_failure(
            delivery, str(error), final=final, wait=error.retry_after, seconds=time.monotonic() - began
        )
    else:
        done = {
            "state": Delivery.State.DELIVERED,
            "delivered_at": Now(),
            "lease_until": None,
            "reported_state": reported or delivery.reported_state,
            "seconds": time.monotonic() - began,
        }
        before = last_success(delivery.channel)
        with transaction.atomic():
            claimed_delivery(delivery).update(**done)
            delivered = {"state": Delivery.State.DELIVERED, "delivered_at": Now()}
            delivery.collected.filter(state=Delivery.State.COLLECTED).update(**delivered)
        send_missed(delivery.channel, since=before, due=last_success(delivery.channel))


def last_success(channel: Channel) -> datetime | None:
    """When a message got through last, within the time that is made up for."""
    through = channel.deliveries.filter(delivered_at__gt=Now() - MISSED_FOR)
    newest: datetime | None = through.aggregate(newest=Max("delivered_at"))["newest"]
    return newest


def send_missed(channel: Channel, since: datetime | None = None, due: datetime | None = None) -> None:
    """Begin anew with what was given up, is still so and not old: the channel works again, or is another.

    `since`: only what failed after it. `due`: when the success that shows it was, so that what a
    working channel refuses isn't begun anew at the next one.
    """
    if not channel.enabled:
        return
    failed = channel.deliveries.filter(
        state=Delivery.State.FAILED,
        regression__isnull=False,
        created_at__gt=Now() - MISSED_FOR,
        errors__len__lt=MOST_FAILURES,
    ).exclude(event=Delivery.Event.REMINDER)
    if since:
        failed = failed.filter(next_attempt_at__gt=since)
    collects = announcing.collects_messages(channel)
    state = Delivery.State.COLLECTED if collects else Delivery.State.PENDING
    restarted = {"state": state, "attempt": 0, "next_attempt_at": due or Now(), "lease_until": None}
    for row in failed.select_related("channel", "regression").order_by("pk")[:MOST_DUE]:
        if not is_missed(row):
            continue
        # Of two workers one begins anew.
        still_failed = Delivery.objects.filter(pk=row.pk, state=Delivery.State.FAILED)
        if still_failed.update(**restarted) and not collects:
            dispatch.send_task(dispatch.DELIVER, row.pk)


def is_missed(delivery: Delivery) -> bool:
    """Whether its channel would still get the messages that were given up."""
    regression = delivery.regression
    if regression is None or is_outdated(delivery):
        return False
    if delivery.event not in FIRST_EVENTS:
        return True
    ended = reported_states.reported_state(regression) in reported_states.ENDED
    return not ended and rules.wants_regression(rules.rules_of(delivery.channel), rules.facts_of(regression))


def is_outdated(delivery: Delivery) -> bool:
    """Whether what it would say isn't so any more, or follows something that its channel never got."""
    regression = delivery.regression
    if regression is None:
        return is_claim_outdated(delivery)
    reported = reported_states.reported_state(regression)
    if delivery.event in FIRST_EVENTS:
        ended = (
            bool(regression.withdrawn_at)
            or regression.is_triaged_away
            or regression.state not in ALERTED_STATES
        )
        # An incident that nothing would end any more.
        incident = kinds.kind_of(delivery.channel).keeps_incidents and reported in reported_states.ENDED
        return ended or incident
    before = earlier_deliveries(delivery)
    if not before.exclude(state=Delivery.State.FAILED).exists():
        return True
    newest = before.filter(state=Delivery.State.DELIVERED).order_by("-delivered_at", "-pk").first()
    repeats = delivery.event == Delivery.Event.REMINDER
    if newest is not None and newest.reported_state == reported and not repeats:
        return True
    return not reported_states.is_still_true(delivery.event, reported)


def earlier_deliveries(delivery: Delivery) -> QuerySet[Delivery]:
    """What its channel was notified of the same regression before."""
    rows = Delivery.objects.filter(regression=delivery.regression_id, channel=delivery.channel_id)
    return rows.filter(pk__lt=delivery.pk)


def time_to_wait_for(delivery: Delivery, now: datetime) -> datetime | None:
    """The next moment to look at it again; None where it is to be sent now. A test waits for nothing."""
    if delivery.event == Delivery.Event.TEST:
        return None
    regression = delivery.regression
    if regression is not None:
        unproved = regression.state != Regression.State.CONFIRMED
        suspected = unproved and delivery.event in ONGOING_EVENTS
        if suspected and not announcing.takes_suspicions(delivery.channel):
            return now + PROOF_WAIT
        if earlier_deliveries(delivery).filter(state=Delivery.State.PENDING).exists():
            # One after the other: nobody is notified that something is over before that it began.
            return now + PROOF_WAIT
        if snoozing.is_snoozed(regression, now):
            return now + SNOOZE_WAIT
    earliest = earliest_send(delivery.channel, now)
    return earliest if earliest > now else None


def postpone_delivery(delivery: Delivery, later: datetime) -> None:
    """Wait, which is no attempt: for a proof, for the end of quiet hours, for an earlier message."""
    claimed_delivery(delivery).update(next_attempt_at=later, lease_until=None, attempt=F("attempt") - 1)


def refuse_undeliverable(delivery: Delivery) -> None:
    if delivery.attempt > Delivery.MOST_ATTEMPTS:
        raise PermanentDeliveryError("The last attempt was cut off before its end.")
    if not delivery.channel.enabled and delivery.event != Delivery.Event.TEST:
        raise PermanentDeliveryError("The channel was turned off.")


_CLAIMED_DELIVERY = CompiledQuery(
    lambda: Delivery.objects.select_related(
        "channel__project",
        "regression__project",
        "regression__first_bad",
        "regression__culprit",
        "regression__recovered_by",
        "regression__last_good",
        "regression__series__metric",
        "regression__series__configuration__case",
        "regression__series__configuration__pool",
        "claim_measurement__claim__project",
        "claim_measurement__commit",
        "claim_measurement__head__case",
        "claim_measurement__head__pool",
    ).filter(pk=Parameter("key"))
)


def claim_delivery(delivery_id: int) -> Delivery | None:
    """Take a delivery whose time has come; None where there is nothing to take."""
    waiting = waiting_deliveries().filter(pk=delivery_id)
    key = leases.claim_first(waiting, seconds=CLAIM_LEASE.total_seconds())
    return None if key is None else next(iter(_CLAIMED_DELIVERY.read_rows(key=key)), None)


def claimed_delivery(delivery: Delivery) -> QuerySet[Delivery]:
    """The delivery as long as this attempt holds it."""
    return leases.held_row(Delivery, leases.lease_of(delivery), state=Delivery.State.PENDING)


def record_failure(
    delivery: Delivery, sentence: str, *, final: bool, wait: float | None = None, seconds: float | None = None
) -> None:
    """Keep why the attempt failed, and when the next one comes: not before the `wait` it was asked for."""
    appended = Func(F("errors"), Value(sentence[:1000]), function="array_append")
    if final:
        failed: dict[str, Any] = {"state": Delivery.State.FAILED, "lease_until": None}
        if len(delivery.errors) < delivery.attempt:
            # Given up for the first time: its channel may have got others through since this was due. Begun
            # anew it keeps its time, so that what a working channel refuses isn't tried at each success.
            failed["next_attempt_at"] = Now()
        claimed_delivery(delivery).update(errors=appended, seconds=seconds, **failed)
        # What a digest would have had waits for the next one.
        delivery.collected.filter(state=Delivery.State.COLLECTED).update(digest=None)
    else:
        asked = min(timedelta(seconds=wait or 0), LONGEST_RETRY_DELAY)
        later = Now() + max(retry_delay(delivery.attempt), asked)
        claimed_delivery(delivery).update(
            errors=appended, seconds=seconds, next_attempt_at=later, lease_until=None
        )


def retry_delay(attempts: int) -> timedelta:
    """Longer after each attempt, up to the longest; spread, so that a receiver isn't met by all at once."""
    longest = min(FIRST_RETRY_DELAY * RETRY_FACTOR ** (attempts - 1), LONGEST_RETRY_DELAY)
    spread = random.uniform(0.75, 1.0)  # noqa: S311 - keeps no secret
    return timedelta(seconds=longest.total_seconds() * spread)
