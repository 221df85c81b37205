"""What is said of a regression, and to whom: each event once for each channel, as rows to be delivered."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now

from dashboard import dispatch
from dashboard.alerts import reported_states, rules, snoozing
from dashboard.alerts.kinds import kind_of
from dashboard.alerts.reported_states import NextMessage, ReportedState, SentMessage
from dashboard.alerts.rules import RegressionFacts
from dashboard.models import AlertRule, Channel, Delivery, Regression, Snooze
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

ALERTED_STATES = (Regression.State.SUSPECTED, Regression.State.CONFIRMED)


def announce_regression(regression: Regression, event: str = Delivery.Event.OPENED) -> list[Delivery]:
    """Tell a project's channels of an event, each once for ever; new deliveries are sent on commit.

    What isn't confirmed goes to those channels alone whose rules ask for suspicions.
    """
    channels = open_channels(regression) if may_be_announced(regression) else []
    if not channels:
        return []
    facts = rules.facts_of(regression)
    reached = [channel for channel in channels if rules.wants_regression(rules.rules_of(channel), facts)]
    return create_deliveries(regression, NextMessage(event, state_when_opened(regression), 0), reached)


def announce_growth(regression: Regression, earlier: float | None) -> list[Delivery]:
    """Tell the channels for which the regression's `earlier` change, in percent, was too small."""
    channels = open_channels(regression) if may_be_announced(regression) else []
    if not channels:
        return []
    facts = rules.facts_of(regression)
    before = RegressionFacts(facts.subjects, facts.branch, facts.state, earlier)
    newly_reached = []
    for channel in channels:
        asked = rules.rules_of(channel)
        if rules.wants_regression(asked, facts) and not rules.wants_regression(asked, before):
            newly_reached.append(channel)
    opening = NextMessage(Delivery.Event.OPENED, state_when_opened(regression), 0)
    return create_deliveries(regression, opening, newly_reached)


def announce_again(regression: Regression) -> list[Delivery]:
    """Say once more, to those who were notified of it, what has grown since; an incident is open as it is.

    Of a snoozed one the end of that says it.
    """
    if not may_be_announced(regression) or Snooze.objects.filter(regression=regression).exists():
        return []
    created = []
    for channel, messages in notified_channels(regression):
        if messages[-1].reported_state not in reported_states.ENDED:
            next_round = 1 + max(message.round for message in messages)
            created += remind_channels(regression, [channel], next_round)
    return created


def state_when_opened(regression: Regression) -> str:
    """What the first message says of it: never that it is none."""
    reported = reported_states.reported_state(regression)
    return ReportedState.CONFIRMED if reported in ("", ReportedState.WITHDRAWN) else reported


def may_be_announced(regression: Regression) -> bool:
    return not regression.is_triaged_away and regression.state in ALERTED_STATES


def _build_open_channels() -> QuerySet[Channel]:
    channels = Channel.objects.filter(project=Parameter("project"), enabled=True)
    return channels.prefetch_related("rules").order_by("pk")


def _build_messages() -> QuerySet[Delivery]:
    rows = Delivery.objects.filter(regression=Parameter("regression"), channel__enabled=True)
    rows = rows.exclude(state=Delivery.State.FAILED).select_related("channel__project")
    return rows.order_by("channel_id", "pk")


_OPEN_CHANNELS: CompiledQuery[Any] = CompiledQuery(_build_open_channels)
_MESSAGES: CompiledQuery[Any] = CompiledQuery(_build_messages)


def open_channels(regression: Regression) -> list[Channel]:
    """The channels of its project that are turned on, with their rules."""
    return _OPEN_CHANNELS.read_rows(project=regression.project_id)


def announce_changes(regression: Regression) -> list[Delivery]:
    """Tell each channel what has changed since its last message about the regression, and nobody else."""
    reported = reported_states.reported_state(regression)
    if reported == ReportedState.NOTHING:
        return []
    notified = notified_channels(regression)
    # Of most nobody was notified, and most judgements announce something.
    if not notified or snoozing.is_snoozed(regression):
        return []
    created = []
    for channel, messages in notified:
        kind = kind_of(channel)
        suspicions = reported != AlertRule.State.SUSPECTED or takes_suspicions(channel)
        following = reported_states.next_message(
            messages, reported, suspicions=suspicions, keeps_incidents=kind.keeps_incidents
        )
        if following:
            created += create_deliveries(regression, following, [channel])
    return created


def takes_suspicions(channel: Channel) -> bool:
    return rules.wants_suspicions(rules.rules_of(channel))


def notified_channels(regression: Regression) -> list[tuple[Channel, list[SentMessage]]]:
    """The channels that were notified of it, or are about to be, each with its messages in order."""
    ordered = _MESSAGES.read_rows(regression=regression.pk)
    return [
        (channel, [SentMessage(row.event, row.reported_state, row.round) for row in messages])
        for channel, messages in groupby(ordered, key=lambda row: row.channel)
    ]


def remind_channels(
    regression: Regression, channels: Iterable[Channel], round_number: int = 0
) -> list[Delivery]:
    """Say again what still stands; `round_number` 0 is the reminder that comes once by itself."""
    reported = reported_states.reported_state(regression)
    if reported not in (ReportedState.SUSPECTED, ReportedState.CONFIRMED):
        return []
    wanted = [channel for channel in channels if not kind_of(channel).keeps_incidents]
    return create_deliveries(regression, NextMessage(Delivery.Event.REMINDER, reported, round_number), wanted)


def create_deliveries(
    regression: Regression, message: NextMessage, channels: Iterable[Channel]
) -> list[Delivery]:
    """The new ones alone: a channel that was notified of the event isn't notified again."""
    created = []
    for channel in channels:
        state = Delivery.State.COLLECTED if collects_messages(channel) else Delivery.State.PENDING
        delivery, new = Delivery.objects.get_or_create(
            regression=regression,
            channel=channel,
            event=message.event,
            round=message.round,
            defaults={"next_attempt_at": Now(), "reported_state": message.reported_state, "state": state},
        )
        if new:
            created.append(delivery)
        if new and state == Delivery.State.PENDING:
            dispatch.send_task(dispatch.DELIVER, delivery.pk)
    return created


def collects_messages(channel: Channel) -> bool:
    """Whether it gets digests: an incident can't wait for one."""
    return bool(channel.digest) and not kind_of(channel).keeps_incidents


def transfer_deliveries(source: Regression, target: Regression) -> None:
    """Give the deliveries of a regression to the one that it turned out to be, save what that one has itself.

    Waiting ones aren't lost then, and who was notified isn't notified again. Its snooze goes along.
    """
    existing = {delivery_key(delivery) for delivery in target.deliveries.all()}
    keys = [delivery.pk for delivery in source.deliveries.all() if delivery_key(delivery) not in existing]
    Delivery.objects.filter(pk__in=keys).update(regression=target)
    if not Snooze.objects.filter(regression=target).exists():
        Snooze.objects.filter(regression=source).update(regression=target)


def delivery_key(delivery: Delivery) -> tuple[int, str, int]:
    return delivery.channel_id, delivery.event, delivery.round
