"""The kinds of channels: one file each.

A new one: a value of Channel.Kind, a file with its KIND, a line here, a stand-in for its service in the
tests, a section of docs/alerts.md.
"""

from __future__ import annotations

from dashboard.alerts.kinds import (
    discord,
    email,
    forge_issue,
    matrix,
    mattermost,
    pagerduty,
    slack,
    teams,
    webhook,
)
from dashboard.alerts.kinds.channel_kind import ChannelKind
from dashboard.models import Channel, Delivery

KINDS: dict[str, ChannelKind] = {
    Channel.Kind.EMAIL: email.KIND,
    Channel.Kind.SLACK: slack.KIND,
    Channel.Kind.DISCORD: discord.KIND,
    Channel.Kind.TEAMS: teams.KIND,
    Channel.Kind.MATTERMOST: mattermost.KIND,
    Channel.Kind.MATRIX: matrix.KIND,
    Channel.Kind.PAGERDUTY: pagerduty.KIND,
    Channel.Kind.ISSUE: forge_issue.KIND,
    Channel.Kind.WEBHOOK: webhook.KIND,
}


def kind_of(channel: Channel) -> ChannelKind:
    return KINDS[channel.kind]


def send_delivery(delivery: Delivery) -> None:
    """Raises DeliveryError, PermanentDeliveryError."""
    kind_of(delivery.channel).send(delivery)
