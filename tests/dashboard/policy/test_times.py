"""Quiet hours and schedules over midnight and over changes of summer time."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from paceline.manifest.policy import QuietHours

from dashboard.policy.cron import NeverDue, next_due
from dashboard.policy.quiet_hours import next_quiet_hours

BERLIN = ZoneInfo("Europe/Berlin")


def at_berlin(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("now", "begins", "ends"),
    [
        ("2026-06-01T12:00", "2026-06-01T22:00", "2026-06-02T06:00"),
        ("2026-06-01T23:00", "2026-06-01T22:00", "2026-06-02T06:00"),
        ("2026-06-02T05:59", "2026-06-01T22:00", "2026-06-02T06:00"),
        ("2026-06-02T06:00", "2026-06-02T22:00", "2026-06-03T06:00"),
    ],
)
def test_quiet_hours_may_reach_over_midnight(now: str, begins: str, ends: str) -> None:
    hours = QuietHours(time(22), time(6))
    assert next_quiet_hours(hours, "Europe/Berlin", at_berlin(now)) == (at_berlin(begins), at_berlin(ends))


def test_quiet_hours_of_some_days() -> None:
    hours = QuietHours(time(8), time(18), ("mon", "fri"))
    # 2026-06-05 is a Friday.
    begins, _ = next_quiet_hours(hours, "Europe/Berlin", at_berlin("2026-06-05T18:00"))
    assert begins == at_berlin("2026-06-08T08:00")


def test_the_night_in_which_summer_time_ends_is_an_hour_longer() -> None:
    begins, ends = next_quiet_hours(
        QuietHours(time(22), time(6)), "Europe/Berlin", at_berlin("2026-10-24T23:00")
    )
    assert ends.timestamp() - begins.timestamp() == timedelta(hours=9).total_seconds()


def due_times(cron: str, start: str, count: int) -> list[str]:
    found, moment = [], at_berlin(start)
    for _ in range(count):
        moment = next_due(cron, "Europe/Berlin", moment)
        found.append(f"{moment.astimezone(BERLIN):%m-%d %H:%M%z}")
    return found


def test_a_time_that_a_spring_night_leaves_out_is_due_right_after() -> None:
    assert due_times("30 2 * * *", "2026-03-28T12:00", 2) == ["03-29 03:00+0200", "03-30 02:30+0200"]


def test_a_time_that_an_autumn_night_has_twice_is_due_once() -> None:
    assert due_times("30 2 * * *", "2026-10-24T12:00", 2) == ["10-25 02:30+0200", "10-26 02:30+0100"]


def test_an_unknown_zone_is_taken_for_utc() -> None:
    due = next_due("0 3 * * *", "Nowhere/Land", datetime.fromisoformat("2026-06-01T00:00+00:00"))
    assert due == datetime.fromisoformat("2026-06-01T03:00+00:00")


def test_a_date_that_no_year_has_is_never_due() -> None:
    with pytest.raises(NeverDue):
        next_due("0 0 30 2 *", "UTC", at_berlin("2026-06-01T00:00"))
