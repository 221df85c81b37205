"""What a person changes of a project's channels: all of it or nothing, with its line in the audit log."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from dashboard.access import Actor, AuditAction, record_action
from dashboard.alerts.channel_settings import read_settings
from dashboard.alerts.channels import change_destination, recorded_address, store_channel, update_channel
from dashboard.alerts.errors import ChannelError
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.reminders import schedule_digests
from dashboard.alerts.trials import request_test
from dashboard.models import Channel, Delivery, Project


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


def remove_channel(actor: Actor, channel: Channel) -> None:
    """With the log of what it was told."""
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
