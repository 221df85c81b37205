"""When a cron expression is due, in its time zone and over its changes of summer time. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from dashboard.policy.quiet_hours import zone_or_utc


class NeverDue(Exception):  # noqa: N818 - reads as a fact
    """No day has such a date."""


def next_due(cron: str, time_zone: str, after: datetime) -> datetime:
    """The first time after a moment. As Debian's cron: what a spring night leaves out is due right after it,
    what an autumn night has twice is due once. Raises NeverDue."""
    try:
        return next(CronSim(cron, after.astimezone(zone_or_utc(time_zone)))).astimezone(UTC)
    except (CronSimError, StopIteration) as error:
        raise NeverDue(f"{cron!r} is never due.") from error
