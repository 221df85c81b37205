"""What a channel is notified of, and when, in words."""

from __future__ import annotations

from datetime import datetime

from dashboard.models import AlertRule, Channel, Delivery, Snooze
from dashboard.sentences.formatting import numbers


def alert_scope(channel: Channel) -> str:
    """`confirmed regressions of 5 % and more`, or how many rules decide."""
    rules = list(channel.rules.all())
    if rules:
        return "by its rule" if len(rules) == 1 else f"by its {len(rules)} rules"
    what = "suspicions and confirmed regressions" if channel.suspicions else "confirmed regressions"
    least = channel.minimum_percent
    return f"{what} of {numbers.format_field(least)} % and more" if least else f"all {what}"


def rule_text(rule: AlertRule) -> str:
    """`report suspected or confirmed, of snake_*, metric *memory, on release/*, of 5 % and more`."""
    parts = [f"{'report' if rule.notifies else 'leave out'} {' or '.join(rule.states)}"]
    parts += [f"of {rule.case}"] if rule.case else []
    parts += [f"metric {rule.metric}"] if rule.metric else []
    parts += [f"on branch {rule.branch}"] if rule.branch else []
    least = rule.minimum_percent
    parts += [f"of {numbers.format_field(least)} % and more"] if least else []
    return ", ".join(parts)


def timing_text(channel: Channel, now: datetime) -> str:
    """`at once; quiet from 22:00 to 07:00, Europe/Berlin`."""
    text = f"{channel.digest} at {channel.digest_at:%H:%M}" if channel.digest else "at once"
    if channel.digest == Channel.Digest.WEEKLY:
        text = f"each Monday at {channel.digest_at:%H:%M}"
    if channel.quiet_from and channel.quiet_until:
        text += f"; quiet from {channel.quiet_from:%H:%M} to {channel.quiet_until:%H:%M}"
    if channel.digest or channel.quiet_from:
        text += f", {channel.time_zone}"
    if channel.muted_until and channel.muted_until > now:
        text += f"; muted until {channel.muted_until:%Y-%m-%d}"
    return text


def snooze_text(snooze: Snooze) -> str:
    """`until 2026-03-31, or until it is 10 % worse than when ada snoozed it`."""
    parts = []
    if snooze.until:
        parts.append(f"until {snooze.until:%Y-%m-%d}")
    if snooze.growth_percent is not None:
        parts.append(f"until it is {numbers.format_field(snooze.growth_percent)} % worse than it was then")
    person = f", by {snooze.person.get_username()}" if snooze.person else ""
    return " or ".join(parts) + person


def channel_state(channel: Channel, now: datetime) -> str:
    if not channel.enabled:
        return "off"
    return "muted" if channel.muted_until and channel.muted_until > now else "on"


def outcome_of_test(delivery: Delivery) -> str:
    """`Delivered in 0.31 s.`, or why not; empty while it is under way."""
    if delivery.state == Delivery.State.DELIVERED:
        return f"Delivered in {numbers.format_quantity(delivery.seconds, 's')}."
    if delivery.state == Delivery.State.FAILED:
        return delivery.errors[-1] if delivery.errors else "It was not delivered."
    return ""
