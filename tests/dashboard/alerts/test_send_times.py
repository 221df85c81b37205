"""Mute, quiet hours and digests, by a clock that is given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard import alerts
from dashboard.alerts.messages import compose_message
from dashboard.alerts.send_times import earliest_send, next_digest
from dashboard.models import Channel, Delivery, Regression
from tests.dashboard import factories
from tests.dashboard.alerts.sinks import MailSink

Make = Callable[..., Delivery]
NIGHT = {"quiet_from": time(22), "quiet_until": time(7), "time_zone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("now", "earliest"),
    [
        ("2026-01-10T20:59", "2026-01-10T20:59"),  # 21:59 in Berlin
        ("2026-01-10T21:00", "2026-01-11T06:00"),
        ("2026-01-11T05:59", "2026-01-11T06:00"),
        ("2026-01-11T06:00", "2026-01-11T06:00"),
        ("2026-07-10T20:00", "2026-07-11T05:00"),  # summer time
        ("2026-03-28T21:30", "2026-03-29T05:00"),  # the night in which it begins
    ],
)
def test_messages_wait_for_the_end_of_the_night(now: str, earliest: str) -> None:
    moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (now, earliest)]
    assert earliest_send(Channel(**NIGHT), moments[0]) == moments[1]


def test_a_mute_that_ends_at_night_waits_for_the_morning() -> None:
    channel = Channel(**NIGHT, muted_until=datetime(2026, 1, 12, 23, tzinfo=UTC))
    assert earliest_send(channel, datetime(2026, 1, 10, 12, tzinfo=UTC)) == datetime(
        2026, 1, 13, 6, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("digest", "expected"),
    [("daily", "2026-01-08T08:00"), ("weekly", "2026-01-12T08:00")],
)
def test_digests_come_in_the_morning_and_on_mondays(digest: str, expected: str) -> None:
    channel = Channel(digest=digest, digest_at=time(9), time_zone="Europe/Berlin")
    due = next_digest(channel, datetime(2026, 1, 7, 8, tzinfo=UTC))
    assert due == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_message_waits_and_costs_no_attempt(make_delivery: Make, mailbox: MailSink) -> None:
    until = timezone.now() + timedelta(hours=5)
    delivery = make_delivery("email", "team@example.org", muted_until=until)
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempt, delivery.next_attempt_at) == ("pending", 0, until)
    assert mailbox.messages == []


@pytest.fixture
def collecting(regression: Regression, sent: list[object]) -> Channel:
    channel = Channel.objects.create(
        project=regression.project, kind="email", address="team@example.org", digest="daily"
    )
    alerts.schedule_digests(channel)
    alerts.announce_regression(regression)
    return channel


def send_digest() -> None:
    Channel.objects.update(next_digest_at=timezone.now())
    alerts.queue_digests()
    for key in Delivery.objects.filter(event="digest", state="pending").values_list("pk", flat=True):
        alerts.attempt_delivery(key)


def test_a_digest_tells_what_was_collected_once(collecting: Channel, mailbox: MailSink) -> None:
    assert Delivery.objects.get().state == "collected"
    for _ in range(2):
        send_digest()
    assert [message["Subject"] for message in mailbox.messages] == ["[snakes] Digest of snakes: 1 new"]
    body = mailbox.messages[0].get_body(("plain",))
    assert body is not None
    assert "New:\n  step time +38 % [35, 41] since" in body.get_content().replace("\r\n", "\n")
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


def test_a_longer_digest_takes_no_more_queries(collecting: Channel, regression: Regression) -> None:
    digest = Delivery.objects.create(channel=collecting, event="digest", next_attempt_at=timezone.now())
    counted = []
    for commit in factories.create_commits(regression.project, 3, first=2):
        regression.pk, regression.first_bad = None, commit
        regression.save()
        alerts.announce_regression(regression)
        digest.collected.set(Delivery.objects.filter(state="collected"))
        with CaptureQueriesContext(connection) as queries:
            title = compose_message(digest).title
        counted.append((title, len(queries)))
    assert [title for title, _ in counted] == [f"Digest of snakes: {count} new" for count in (2, 3, 4)]
    assert len({asked for _, asked in counted}) == 1


def test_a_digest_says_what_became_of_it_and_what_waits(
    collecting: Channel, regression: Regression, mailbox: MailSink
) -> None:
    send_digest()
    Regression.objects.update(recovered_by=regression.last_good)
    alerts.announce_changes(Regression.objects.get())
    send_digest()
    assert mailbox.messages[1]["Subject"] == "[snakes] Digest of snakes: 1 recovered"
    # It comes back, recovers and comes back within a day.
    for commit in (None, regression.last_good, None):
        Regression.objects.update(recovered_by=commit)
        alerts.announce_changes(Regression.objects.get())
    send_digest()
    assert mailbox.messages[2]["Subject"] == "[snakes] Digest of snakes: 1 new"


def test_what_was_withdrawn_before_its_digest_is_dropped(collecting: Channel, mailbox: MailSink) -> None:
    Regression.objects.update(withdrawn_at=timezone.now())
    alerts.announce_changes(Regression.objects.get())
    send_digest()
    assert mailbox.messages == []


def test_a_digest_that_fails_is_told_by_the_next(collecting: Channel, mailbox: MailSink) -> None:
    mailbox.refuse = "550 no such user"
    send_digest()
    mailbox.refuse = ""
    send_digest()
    assert [message["Subject"] for message in mailbox.messages] == ["[snakes] Digest of snakes: 1 new"]


def test_without_digests_what_was_collected_goes_out(collecting: Channel) -> None:
    collecting.digest = ""
    collecting.save()
    alerts.schedule_digests(collecting)
    assert Delivery.objects.get().state == "pending"
