"""Each change of a regression is told once, to those alone who were told of it before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard import alerts
from dashboard.alerts import reminders
from dashboard.models import Channel, Delivery, Regression, Snooze
from tests.dashboard import factories
from tests.dashboard.alerts.sinks import MailSink

AWAY = "quiet@example.org"


@pytest.fixture
def channel(regression: Regression, mailbox: MailSink, sent: list[object]) -> Channel:
    """One that was told that the regression opened, beside one that never was."""
    told = Channel.objects.create(project=regression.project, kind="email", address="team@example.org")
    alerts.announce_regression(regression)
    deliver_all()
    Channel.objects.create(project=regression.project, kind="email", address=AWAY)
    mailbox.messages.clear()
    return told


def deliver_all() -> None:
    for key in Delivery.objects.filter(state="pending").order_by("pk").values_list("pk", flat=True):
        alerts.attempt_delivery(key)


def told_after(**fields: Any) -> list[str]:
    """The events that are told once the regression has these fields."""
    Regression.objects.update(**fields)
    made = alerts.announce_changes(Regression.objects.get())
    assert alerts.announce_changes(Regression.objects.get()) == []
    deliver_all()
    return [delivery.event for delivery in made]


def test_what_recovers_comes_back_and_recovers_is_told_each_time(
    channel: Channel, regression: Regression, mailbox: MailSink
) -> None:
    good = regression.last_good
    events = [told_after(recovered_by=commit) for commit in (good, None, good)]
    assert events == [["recovered"], ["reopened"], ["recovered"]]
    heads = [message["Subject"].split("] ")[1].split(":")[0] for message in mailbox.messages]
    assert heads == ["Recovered", "Back", "Recovered"]
    assert {message["To"] for message in mailbox.messages} == {"team@example.org"}


def test_one_conversation_holds_all_mails_of_a_regression(
    channel: Channel, regression: Regression, mailbox: MailSink
) -> None:
    told_after(recovered_by=regression.last_good)
    told_after(recovered_by=None)
    assert len({message["References"] for message in mailbox.messages}) == 1
    assert len({message["Message-ID"] for message in mailbox.messages}) == 2


def test_what_is_proved_once_it_is_repaired_says_so_at_once(
    regression: Regression, mailbox: MailSink, sent: list[object]
) -> None:
    Channel.objects.create(project=regression.project, kind="email", address="team@example.org")
    Regression.objects.update(recovered_by=regression.last_good)
    alerts.announce_regression(Regression.objects.get())
    deliver_all()
    (message,) = mailbox.messages
    good = regression.last_good
    body = message.get_body(("plain",))
    assert body is not None
    assert f"; repaired by {good.short} “{good.subject}”" in " ".join(body.get_content().split())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"withdrawn_at": timezone.now()}, "no longer finds the step"),
        ({"state": "refuted"}, "interleaved runs of both commits don't show it"),
        ({"triaged": "not real"}, "a person has called it not real"),
    ],
)
def test_what_is_none_is_taken_back(
    channel: Channel, mailbox: MailSink, fields: dict[str, Any], reason: str
) -> None:
    assert told_after(**fields) == ["withdrawn"]
    body = mailbox.messages[0].get_body(("plain",))
    assert body is not None
    assert reason in body.get_content()


@pytest.mark.parametrize("fields", [{"triaged": "intended"}, {"triaged": "acknowledged"}, {"proving": True}])
def test_what_a_person_puts_away_is_no_news(channel: Channel, fields: dict[str, Any]) -> None:
    assert told_after(**fields) == []


def test_a_suspicion_that_was_told_is_told_as_confirmed(channel: Channel) -> None:
    Delivery.objects.update(reported_state="suspected")
    assert told_after(state="suspected") == []
    assert told_after(state="confirmed") == ["confirmed"]


def test_who_was_never_reached_hears_of_no_end(channel: Channel, regression: Regression) -> None:
    Delivery.objects.update(state="failed")
    assert told_after(recovered_by=regression.last_good) == []


def test_nobody_is_told_of_an_end_before_the_beginning(
    channel: Channel, regression: Regression, mailbox: MailSink
) -> None:
    later = timezone.now() + timedelta(hours=1)
    Delivery.objects.update(state="pending", next_attempt_at=later)
    assert told_after(recovered_by=regression.last_good) == ["recovered"]
    assert mailbox.messages == []
    for _ in range(2):
        Delivery.objects.update(next_attempt_at=timezone.now())
        deliver_all()
    # The first message says already that it has recovered: a second would say nothing new.
    assert [message["Subject"].startswith("[snakes] step time") for message in mailbox.messages] == [True]


def test_it_is_reminded_of_once_after_seven_days(channel: Channel, mailbox: MailSink) -> None:
    for days, count in ((6, 0), (8, 1), (30, 1)):
        Delivery.objects.filter(event="opened").update(delivered_at=timezone.now() - timedelta(days=days))
        alerts.queue_reminders()
        deliver_all()
        assert len(mailbox.messages) == count, days
    assert mailbox.messages[0]["Subject"].startswith("[snakes] Waits for triage: step time +38 %")


def test_what_is_snoozed_takes_no_place_of_other_reminders(
    channel: Channel, regression: Regression, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts.snooze_regression(regression, None, growth="10 %")
    other = Regression.objects.get()
    other.pk, other.first_bad = None, factories.create_commit(other.project, 9)
    other.save(force_insert=True)
    alerts.announce_regression(other)
    opened = Delivery.objects.filter(event="opened")
    opened.update(state="delivered", delivered_at=timezone.now() - timedelta(days=8))
    monkeypatch.setattr(reminders, "MOST_AT_ONCE", 1)
    alerts.queue_reminders()
    assert Delivery.objects.get(event="reminder", channel=channel).regression == other


@pytest.mark.parametrize("triaged", ["acknowledged", "intended"])
def test_what_was_triaged_is_not_reminded_of(channel: Channel, triaged: str) -> None:
    Delivery.objects.update(delivered_at=timezone.now() - timedelta(days=8))
    Regression.objects.update(triaged=triaged)
    alerts.queue_reminders()
    assert Delivery.objects.count() == 1


def test_a_channel_without_reminders_gets_none(channel: Channel) -> None:
    Channel.objects.update(remind_days=0)
    Delivery.objects.update(delivered_at=timezone.now() - timedelta(days=80))
    alerts.queue_reminders()
    assert Delivery.objects.count() == 1


def test_what_is_snoozed_is_told_when_its_day_has_come(channel: Channel, regression: Regression) -> None:
    day = (timezone.now() + timedelta(days=3)).date().isoformat()
    alerts.snooze_regression(regression, None, until=day)
    assert told_after(recovered_by=regression.last_good) == []
    Snooze.objects.update(until=timezone.now())
    alerts.queue_reminders()
    assert Delivery.objects.latest("pk").event == "recovered"
    assert not Snooze.objects.exists()


@pytest.mark.parametrize(("ratio", "count"), [(1.43, 1), (1.56, 2)])
def test_a_snooze_ends_where_it_has_grown(
    channel: Channel, regression: Regression, ratio: float, count: int
) -> None:
    alerts.snooze_regression(regression, None, growth="10 %")
    Regression.objects.update(ratio=ratio)
    alerts.queue_reminders()
    assert Delivery.objects.count() == count


@pytest.mark.parametrize(
    ("until", "growth", "sentence"),
    [
        ("", "", "Name a day"),
        ("2020-01-01", "", "lies behind us"),
        ("soon", "", "written like 2026-03-31"),
        ("", "-1", "Growth is 0.1 to 1000 %"),
        ("", "much", "Growth is a number of per cent"),
    ],
)
def test_a_wrong_snooze_is_refused(regression: Regression, until: str, growth: str, sentence: str) -> None:
    with pytest.raises(alerts.ChannelError, match=sentence):
        alerts.snooze_regression(regression, None, until, growth)
    assert not Snooze.objects.exists()
