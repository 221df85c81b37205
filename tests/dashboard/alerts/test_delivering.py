from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard import alerts, dispatch, failed_jobs
from dashboard.alerts import delivering
from dashboard.models import Channel, Delivery, Regression
from tests.dashboard.alerts.sinks import HttpSink

Make = Callable[..., Delivery]


def now_due(delivery: Delivery) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(next_attempt_at=timezone.now())


def test_each_channel_is_told_once(regression: Regression, sent: list[object]) -> None:
    for address in ("one@example.org", "two@example.org"):
        Channel.objects.create(project=regression.project, kind="email", address=address)
    made = alerts.announce_regression(regression) + alerts.announce_regression(regression)
    assert sent == [(dispatch.DELIVER, delivery.pk) for delivery in made]
    assert len(made) == Delivery.objects.count() == 2


def test_a_small_change_is_not_told_where_only_large_ones_are(regression: Regression) -> None:
    for least in (38.5, 37.5):
        Channel.objects.create(
            project=regression.project, kind="email", address=f"{least}@example.org", minimum_percent=least
        )
    made = alerts.announce_regression(regression)
    assert [delivery.channel.minimum_percent for delivery in made] == [37.5]


def test_a_channel_that_is_turned_off_is_not_told(regression: Regression) -> None:
    Channel.objects.create(project=regression.project, kind="email", address="a@example.org", enabled=False)
    assert alerts.announce_regression(regression) == []


def test_a_delivery_whose_job_pauses_holds_up_no_other(make_delivery: Make, receiver: HttpSink) -> None:
    odd, other = make_delivery("webhook", receiver.url), make_delivery("email", "a@example.org")
    failed_jobs.note_failure(dispatch.DELIVER, (odd.pk,), KeyError("x"))
    assert alerts.due_deliveries() == [other.pk]


def test_a_delivery_is_due_until_it_is_delivered(make_delivery: Make, receiver: HttpSink) -> None:
    delivery = make_delivery("webhook", receiver.url)
    assert alerts.due_deliveries() == [delivery.pk]
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempt, alerts.due_deliveries()) == ("delivered", 1, [])
    assert delivery.delivered_at is not None


def test_what_is_delivered_is_not_sent_again(make_delivery: Make, receiver: HttpSink) -> None:
    delivery = make_delivery("webhook", receiver.url)
    for _ in range(2):
        alerts.attempt_delivery(delivery.pk)
    assert len(receiver.requests) == 1


def test_a_receiver_that_is_down_is_tried_again_later(make_delivery: Make, receiver: HttpSink) -> None:
    receiver.answers = [503]
    delivery = make_delivery("webhook", receiver.url)
    alerts.attempt_delivery(delivery.pk)
    alerts.attempt_delivery(delivery.pk)  # Too early: nothing happens.
    delivery.refresh_from_db()
    assert (delivery.state, len(receiver.requests)) == ("pending", 1)
    assert delivery.errors == ["127.0.0.1 answered 503 Service Unavailable."]
    assert timedelta(seconds=7) < delivery.next_attempt_at - timezone.now() < timedelta(seconds=10)
    now_due(delivery)
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, len(receiver.requests)) == ("delivered", 2)


def test_a_receiver_that_was_away_gets_it_when_it_is_back(make_delivery: Make, settings: object) -> None:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True  # type: ignore[attr-defined]
    with HttpSink().open() as first:
        port = int(first.url.split(":")[2].split("/")[0])
    delivery = make_delivery("webhook", first.url)
    alerts.attempt_delivery(delivery.pk)
    now_due(delivery)
    with HttpSink().open(port) as second:
        alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.errors == ["127.0.0.1 could not be reached: Connection refused."]
    assert (delivery.state, len(second.requests)) == ("delivered", 1)


def test_after_the_last_attempt_it_has_failed(make_delivery: Make, receiver: HttpSink) -> None:
    receiver.answers = [500] * Delivery.MOST_ATTEMPTS
    delivery = make_delivery("webhook", receiver.url)
    for _ in range(Delivery.MOST_ATTEMPTS + 1):
        now_due(delivery)
        alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempt) == ("failed", Delivery.MOST_ATTEMPTS)
    assert len(delivery.errors) == len(receiver.requests) == Delivery.MOST_ATTEMPTS


def test_the_wait_grows_to_six_hours_and_not_beyond() -> None:
    longest = [delivering.retry_delay(attempts).total_seconds() for attempts in range(1, 13)]
    assert 7.5 <= longest[0] <= 10
    assert all(4.5 * 3600 <= seconds <= 6 * 3600 for seconds in longest[7:])


def test_a_regression_withdrawn_in_time_is_not_told(make_delivery: Make, receiver: HttpSink) -> None:
    delivery = make_delivery("webhook", receiver.url)
    Regression.objects.update(withdrawn_at=timezone.now())
    alerts.attempt_delivery(delivery.pk)
    assert (receiver.requests, Delivery.objects.count()) == ([], 0)


@pytest.mark.parametrize("state", ["refuted", "undecided"])
def test_what_was_not_proved_in_the_end_is_not_told(
    make_delivery: Make, receiver: HttpSink, state: str
) -> None:
    delivery = make_delivery("webhook", receiver.url)
    Regression.objects.update(state=state)
    alerts.attempt_delivery(delivery.pk)
    assert (receiver.requests, Delivery.objects.count()) == ([], 0)


def test_what_became_a_suspicion_on_its_way_waits_for_its_proof(
    make_delivery: Make, receiver: HttpSink
) -> None:
    delivery = make_delivery("webhook", receiver.url)
    Regression.objects.update(state="suspected")
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (receiver.requests, delivery.attempt, alerts.due_deliveries()) == ([], 0, [])
    Regression.objects.update(state="confirmed")
    now_due(delivery)
    alerts.attempt_delivery(delivery.pk)
    assert len(receiver.requests) == 1


def test_a_channel_that_asks_for_suspicions_is_told_of_one(make_delivery: Make, receiver: HttpSink) -> None:
    delivery = make_delivery("webhook", receiver.url)
    Channel.objects.update(suspicions=True)
    Regression.objects.update(state="suspected")
    alerts.attempt_delivery(delivery.pk)
    assert len(receiver.requests) == 1


def test_a_channel_turned_off_since_is_not_told(make_delivery: Make, receiver: HttpSink) -> None:
    delivery = make_delivery("webhook", receiver.url)
    Channel.objects.update(enabled=False)
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (receiver.requests, delivery.errors) == ([], ["The channel was turned off."])
