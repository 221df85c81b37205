"""When a project's machines are left alone. Pure: the clock is given."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone
from paceline.manifest.policy import DAYS, QuietHours


def read_time_zone(name: str) -> ZoneInfo | None:
    """None where this system doesn't know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def zone_or_utc(name: str) -> ZoneInfo:
    """A zone that this system doesn't know is taken for UTC: better at another hour than never."""
    return read_time_zone(name) or ZoneInfo("UTC")


def next_quiet_hours(hours: QuietHours, time_zone: str, now: datetime) -> tuple[datetime, datetime]:
    """The beginning and the end of those that are, or that come next."""
    zone = zone_or_utc(time_zone)
    # Those of yesterday may reach into today.
    day = timezone.localtime(now, zone).date() - timedelta(days=1)
    while True:
        begins = datetime.combine(day, hours.start, zone)
        last_day = day + timedelta(days=1) if hours.start > hours.until else day
        ends = datetime.combine(last_day, hours.until, zone)
        # Compared as moments: two of one zone would be compared by what its clocks show.
        if DAYS[day.weekday()] in hours.days and ends.timestamp() > now.timestamp():
            return begins, ends
        day += timedelta(days=1)
