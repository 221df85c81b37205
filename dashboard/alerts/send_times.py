"""When a channel may be sent something: its mute, its quiet hours, its digests. Pure: the clock is given."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone

from dashboard.models import Channel


def zone_of(channel: Channel) -> tzinfo:
    """A zone that this system no longer knows is taken for UTC: a late message is better than none."""
    try:
        return ZoneInfo(channel.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return timezone.get_default_timezone()


def earliest_send(channel: Channel, now: datetime) -> datetime:
    """The first moment, `now` or later, at which neither mute nor quiet hours hold a message back."""
    moment = max(now, channel.muted_until) if channel.muted_until else now
    return end_of_quiet_hours(channel, moment)


def end_of_quiet_hours(channel: Channel, moment: datetime) -> datetime:
    """The moment itself where it isn't quiet then."""
    start, end = channel.quiet_from, channel.quiet_until
    if start is None or end is None or start == end:
        return moment
    local = moment.astimezone(zone_of(channel))
    if not is_within(local.time(), start, end):
        return moment
    over_midnight = start > end and local.time() >= start
    day = local.date() + timedelta(days=1 if over_midnight else 0)
    return max(moment, datetime.combine(day, end, local.tzinfo))


def is_within(moment: time, start: time, end: time) -> bool:
    """Whether a time of day lies in hours that may reach over midnight."""
    return start <= moment < end if start < end else moment >= start or moment < end


def next_digest(channel: Channel, now: datetime) -> datetime:
    """When the channel's next digest is due: each day, or each Monday, at its time."""
    local = now.astimezone(zone_of(channel))
    moment = datetime.combine(local.date(), channel.digest_at, local.tzinfo)
    if channel.digest == Channel.Digest.WEEKLY:
        moment += timedelta(days=-moment.weekday() % 7)
    step = timedelta(days=7 if channel.digest == Channel.Digest.WEEKLY else 1)
    while moment <= now:
        moment += step
    return moment
