"""What comes with time: reminders of what waits for triage, snoozes that end, and digests that are due."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import DurationField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Now
from django.utils import timezone

from dashboard import dispatch
from dashboard.alerts import announcing, reported_states, snoozing
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.send_times import next_digest
from dashboard.models import Channel, Delivery, Regression, Snooze
from dashboard.querysets.regressions import IS_OPEN, regressions_with_related

MOST_AT_ONCE = 200


def queue_reminders() -> None:
    """Remind each channel once of what was reported so long ago and nobody has triaged."""
    end_snoozes()
    due = list(due_reminders()[:MOST_AT_ONCE])
    regressions = regressions_with_related().in_bulk({row.regression_id for row in due if row.regression_id})
    for row in due:
        announcing.remind_channels(regressions[row.regression_id or 0], [row.channel])


def due_reminders() -> QuerySet[Delivery]:
    """Without those of snoozed regressions: they would take the places of others for as long as they wait."""
    waited = ExpressionWrapper(
        F("channel__remind_days") * Value(timedelta(days=1)), output_field=DurationField()
    )
    waiting = Regression.objects.filter(IS_OPEN, triaged=Regression.Triaged.OPEN)
    reminded = Delivery.objects.filter(
        regression=OuterRef("regression"), channel=OuterRef("channel"), event=Delivery.Event.REMINDER
    )
    rows = Delivery.objects.filter(
        ~Exists(reminded),
        ~Exists(Snooze.objects.filter(regression=OuterRef("regression"))),
        event=Delivery.Event.OPENED,
        state=Delivery.State.DELIVERED,
        delivered_at__lte=Now() - waited,
        regression__in=waiting.filter(state__in=announcing.ALERTED_STATES, proving=False),
        channel__enabled=True,
        channel__remind_days__gt=0,
    )
    incidents = [name for name, kind in KINDS.items() if kind.keeps_incidents]
    return rows.exclude(channel__kind__in=incidents).select_related("channel").order_by("pk")


def end_snoozes(now: datetime | None = None) -> None:
    """End those whose day has come or whose regression has grown, and tell what happened meanwhile."""
    moment = now or timezone.now()
    rows = Snooze.objects.filter(Q(until__lte=moment) | Q(growth_percent__isnull=False))
    for snooze in rows.order_by("pk"):
        regression = regressions_with_related().get(pk=snooze.regression_id)
        grown = snoozing.has_grown(snooze, regression)
        if grown or snoozing.has_ended(snooze, moment):
            end_snooze(regression, grown=grown)


@transaction.atomic
def end_snooze(regression: Regression, *, grown: bool = False) -> None:
    """`grown`: it is said again, for it is worse than what was put up with."""
    Snooze.objects.filter(regression=regression).delete()
    if not announcing.announce_changes(regression) and grown:
        announcing.announce_again(regression)


def queue_digests(now: datetime | None = None) -> None:
    """Make the digests that are due; one that would say nothing new isn't sent."""
    moment = now or timezone.now()
    due = Channel.objects.filter(enabled=True, next_digest_at__lte=moment).exclude(digest="")
    for channel in due.order_by("pk"):
        following = next_digest(channel, moment)
        # Of two sweeps one makes it.
        still_due = Channel.objects.filter(pk=channel.pk, next_digest_at=channel.next_digest_at)
        with transaction.atomic():
            if still_due.update(next_digest_at=following):
                create_digest(channel)


def create_digest(channel: Channel) -> Delivery | None:
    """A digest of what was collected; what is no longer true is dropped, as nobody was notified of it."""
    rows = channel.deliveries.filter(state=Delivery.State.COLLECTED, digest=None)
    rows = rows.select_related("regression").select_for_update(of=("self",))
    kept = [row for row in rows.order_by("pk") if is_news(row)]
    channel.deliveries.filter(state=Delivery.State.COLLECTED, digest=None).exclude(
        pk__in=[row.pk for row in kept]
    ).delete()
    if not kept:
        return None
    digest = Delivery.objects.create(channel=channel, event=Delivery.Event.DIGEST, next_attempt_at=Now())
    Delivery.objects.filter(pk__in=[row.pk for row in kept]).update(digest=digest)
    dispatch.send_task(dispatch.DELIVER, digest.pk)
    return digest


def is_news(row: Delivery) -> bool:
    """Whether what was collected still says something: what nobody was notified of needs no taking back."""
    if row.regression is None:
        return False
    if row.event == Delivery.Event.WITHDRAWN:
        delivered = row.regression.deliveries.filter(channel=row.channel_id, state=Delivery.State.DELIVERED)
        if not delivered.exists():
            return False
    return reported_states.is_still_true(row.event, reported_states.reported_state(row.regression))


def schedule_digests(channel: Channel, now: datetime | None = None) -> None:
    """After a change of its settings: when the next is due; without digests, what was collected goes out."""
    collects = announcing.collects_messages(channel)
    channel.next_digest_at = next_digest(channel, now or timezone.now()) if collects else None
    channel.save(update_fields=["next_digest_at"])
    if not collects:
        channel.deliveries.filter(state=Delivery.State.COLLECTED, digest=None).update(
            state=Delivery.State.PENDING, next_attempt_at=Now()
        )
