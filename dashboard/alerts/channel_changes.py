"""What a person changes of a project's channels: all of it or nothing, with its line in the audit log."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from dashboard.access import Actor, AuditAction, record_action
from dashboard.alerts.channel_rules import append_rule, move_rule, read_rule
from dashboard.alerts.channel_settings import read_day_ahead, read_settings
from dashboard.alerts.channel_tests import request_test
from dashboard.alerts.channels import change_destination, recorded_address, store_channel, update_channel
from dashboard.alerts.errors import ChannelError
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.reminders import schedule_digests
from dashboard.alerts.send_times import zone_of
from dashboard.models import AlertRule, Channel, Delivery, Project


class WrongSettings(Exception):  # noqa: N818 - reads as a fact
    """What is wrong with each field, in one sentence."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = dict(errors)


def create_channel(actor: Actor, project: Project, kind: str, written: Mapping[str, str]) -> Channel:
    """`written`: the texts of the kind's fields and of the settings, as the form has them.

    Raises WrongSettings.
    """
    made = KINDS[kind]
    values, errors = read_settings(written, with_rule=True, incidents=made.keeps_incidents)
    try:
        if errors:
            made.read_fields(written)
            raise WrongSettings(errors)
        with transaction.atomic():
            channel, _ = store_channel(project, kind, written, values, only_new=True)
            record_channel(actor, channel, "added")
    except ChannelError as error:
        raise WrongSettings({**errors, error.field: str(error)}) from error
    schedule_digests(channel)
    return channel


def edit_channel(actor: Actor, channel: Channel, written: Mapping[str, str]) -> None:
    """All settings as they are written; a field of its destination that is empty stays as it is.

    Raises WrongSettings.
    """
    made = KINDS[channel.kind]
    ruled = channel.rules.exists()
    values, errors = read_settings(written, with_rule=not ruled, incidents=made.keeps_incidents)
    try:
        with transaction.atomic():
            change_destination(channel, written)
            if errors:
                raise WrongSettings(errors)
            update_channel(channel, values)
            record_channel(actor, channel, "edited")
    except ChannelError as error:
        raise WrongSettings({**errors, error.field: str(error)}) from error
    schedule_digests(channel)


def enable_channel(actor: Actor, channel: Channel, *, enabled: bool) -> None:
    with transaction.atomic():
        update_channel(channel, {"enabled": enabled})
        record_channel(actor, channel, "turn-on" if enabled else "turn-off")


def mute_channel(actor: Actor, channel: Channel, day: str) -> datetime:
    """Until the beginning of a day to come in its zone, written as a form has it. Raises ChannelError."""
    until = read_day_ahead(day, timezone.now().astimezone(zone_of(channel)))
    with transaction.atomic():
        update_channel(channel, {"muted_until": until})
        record_channel(actor, channel, "mute")
    return until


def unmute_channel(actor: Actor, channel: Channel) -> None:
    """What waited for its end is sent now."""
    with transaction.atomic():
        update_channel(channel, {"muted_until": None})
        waiting = channel.deliveries.filter(state=Delivery.State.PENDING, attempt=0)
        waiting.update(next_attempt_at=timezone.now())
        record_channel(actor, channel, "unmute")


def renew_secret(actor: Actor, channel: Channel) -> str:
    """A new secret, which its receiver must learn. Raises ChannelError where the site doesn't make it."""
    if not KINDS[channel.kind].makes_secret:
        raise ChannelError("Its secret is made by its service: edit the channel to change it.")
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        update_channel(channel, {"secret": secret})
        record_channel(actor, channel, "renew-secret")
    return secret


def add_rule(actor: Actor, channel: Channel, written: Mapping[str, str], states: Sequence[str]) -> AlertRule:
    """Behind those that are there. Raises ChannelError with the field."""
    values = read_rule(written, states)
    with transaction.atomic():
        rule = append_rule(channel, values)
        record_channel(actor, channel, "rules")
    return rule


def shift_rule(actor: Actor, rule: AlertRule, by: int) -> None:
    """Up or down by one."""
    with transaction.atomic():
        move_rule(rule, by)
        record_channel(actor, rule.channel, "rules")


def remove_rule(actor: Actor, rule: AlertRule) -> None:
    """The channel's others decide, or the channel itself where it has no other."""
    with transaction.atomic():
        rule.delete()
        record_channel(actor, rule.channel, "rules")


def remove_channel(actor: Actor, channel: Channel) -> None:
    """With the log of its messages."""
    with transaction.atomic():
        record_channel(actor, channel, "remove")
        channel.delete()


def send_test(actor: Actor, channel: Channel) -> Delivery:
    """Send it a message at once, by a worker."""
    with transaction.atomic():
        record_channel(actor, channel, "test")
        return request_test(channel)


def record_channel(actor: Actor, channel: Channel, change: str) -> None:
    """Call it within the transaction of the change."""
    about = {"kind": channel.kind, "address": recorded_address(channel), "change": change}
    record_action(actor, AuditAction.CHANNEL_CHANGED, channel.project, channel, **about)
