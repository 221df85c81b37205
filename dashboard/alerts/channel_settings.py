"""What a form says of a channel, read into columns: one sentence for each field that is wrong."""

from __future__ import annotations

import math
import zoneinfo
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from dashboard.alerts.errors import ChannelError
from dashboard.models import Channel
from dashboard.sentences.formatting import numbers

LONGEST_NAME = 100
MOST_REMIND_DAYS = 365
MOST_MUTED = timedelta(days=366)


def read_settings(
    written: Mapping[str, str], *, with_rule: bool, incidents: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """(columns and their values, field and what is wrong with it).

    `with_rule`: minimum and suspicions are read too; a channel that has rules has no use for them.
    `incidents`: the kind has neither reminders nor digests.
    """
    readers: dict[str, Callable[[str], Any]] = {
        "name": read_name,
        "quiet_from": read_quiet_time,
        "quiet_until": read_quiet_time,
        "time_zone": read_time_zone,
    }
    if with_rule:
        readers |= {"minimum_percent": read_minimum}
    if not incidents:
        readers |= {"remind_days": read_remind_days, "digest": read_digest, "digest_at": read_digest_time}
    values: dict[str, Any] = {"pictures": written.get("pictures") == "on"}
    if with_rule:
        values["suspicions"] = written.get("suspicions") == "on"
    errors: dict[str, str] = {}
    for field, read in readers.items():
        try:
            values[field] = read(written.get(field, "").strip())
        except ChannelError as error:
            errors[field] = str(error)
    if not errors:
        errors = check_quiet_hours(values["quiet_from"], values["quiet_until"])
    return values, errors


def write_settings(channel: Channel) -> dict[str, str]:
    """The settings of a channel as `read_settings` reads them."""
    return {
        "name": channel.name,
        "minimum_percent": numbers.format_field(channel.minimum_percent),
        "suspicions": "on" if channel.suspicions else "",
        "pictures": "on" if channel.pictures else "",
        "remind_days": str(channel.remind_days),
        "quiet_from": f"{channel.quiet_from:%H:%M}" if channel.quiet_from else "",
        "quiet_until": f"{channel.quiet_until:%H:%M}" if channel.quiet_until else "",
        "time_zone": channel.time_zone,
        "digest": channel.digest,
        "digest_at": f"{channel.digest_at:%H:%M}",
    }


def read_name(text: str) -> str:
    if len(text) > LONGEST_NAME or not text.isprintable():
        raise ChannelError(f"Name has at most {LONGEST_NAME} printable letters.")
    return text


def read_minimum(text: str) -> float:
    value = read_number(text or "0", "Least change")
    if value < 0:
        raise ChannelError("Least change is 0 % or more.")
    return value


def read_number(text: str, label: str) -> float:
    try:
        value = float(text.removesuffix("%").strip())
    except ValueError:
        raise ChannelError(f"{label} is a number of per cent, such as 5.") from None
    if not math.isfinite(value) or abs(value) > 1e6:
        raise ChannelError(f"{label} is a number of per cent, such as 5.")
    return value


def read_remind_days(text: str) -> int:
    if text and not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= MOST_REMIND_DAYS):
        raise ChannelError(f"Days until a reminder are a whole number up to {MOST_REMIND_DAYS}; 0 is never.")
    return int(text or 0)


def read_quiet_time(text: str) -> time | None:
    return read_time(text, "Quiet hours") if text else None


def read_digest_time(text: str) -> time:
    return read_time(text, "Times of digests") if text else time(9)


def read_time(text: str, label: str) -> time:
    """A time of day to the minute; browsers may send seconds too."""
    try:
        return time.fromisoformat(text).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError:
        raise ChannelError(f"{label} are written like 22:00.") from None


def read_digest(text: str) -> str:
    if text not in Channel.Digest.values:
        raise ChannelError("Messages come at once, daily or weekly.")
    return text


def read_time_zone(text: str) -> str:
    name = text or "UTC"
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ChannelError("Time zone is a name like Europe/Berlin, or UTC.") from None
    return name


def check_quiet_hours(start: time | None, end: time | None) -> dict[str, str]:
    if (start is None) != (end is None):
        field = "quiet_until" if end is None else "quiet_from"
        return {field: "Quiet hours have a beginning and an end, or neither."}
    if start is not None and start == end:
        return {"quiet_until": "Quiet hours end at another time than they begin."}
    return {}


def read_day_ahead(text: str, now: datetime) -> datetime:
    """The beginning of a day to come, in the zone of `now`: the end of a mute or of a snooze."""
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise ChannelError("The day is written like 2026-03-31.") from None
    end = datetime.combine(day, time(), now.tzinfo)
    if end <= now:
        raise ChannelError("The day lies behind us: name one to come.")
    if end - now > MOST_MUTED:
        raise ChannelError("The day is more than a year away.")
    return end
