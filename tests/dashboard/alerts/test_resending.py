"""A message that was given up is sent again: when a person asks for it, or its channel works again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard import alerts, dispatch
from dashboard.access import Visitor
from dashboard.alerts.channels import update_channel
from dashboard.alerts.resending import ResendError, resend_delivery
from dashboard.models import AuditEntry, Channel, Delivery, Regression
from dashboard.sentences.administration.audit import describe_entry
from tests.dashboard import factories
from tests.dashboard.access.conftest import create_member
from tests.dashboard.alerts.sinks import MailSink

NOBODY = Visitor()


@pytest.fixture
def failed(regression: Regression) -> Delivery:
    """One that was given up after its last attempt."""
    channel = Channel.objects.create(project=regression.project, kind="email", address="team@example.org")
    return Delivery.objects.create(
        regression=regression,
        channel=channel,
        event="opened",
        state="failed",
        attempt=Delivery.MOST_ATTEMPTS,
        errors=["Nobody answered."],
        next_attempt_at=timezone.now(),
    )


def test_it_arrives(failed: Delivery, mailbox: MailSink, sent: list[object]) -> None:
    resend_delivery(NOBODY, failed)
    alerts.attempt_delivery(failed.pk)
    failed.refresh_from_db()
    assert (failed.state, failed.attempt, failed.errors) == ("delivered", 1, ["Nobody answered."])
    assert len(mailbox.messages) == 1
    assert describe_entry(AuditEntry.objects.get()) == "sent a message again to the email channel: opened"


@pytest.mark.parametrize(
    ("fields", "of", "sentence"),
    [
        ({"state": "delivered"}, Delivery, "It isn't given up"),
        ({"event": "digest", "regression": None}, Delivery, "comes with the next one"),
        ({"enabled": False}, Channel, "Its channel is turned off"),
        ({"state": "refuted"}, Regression, "What it says isn't so any more"),
    ],
)
def test_what_would_be_wrong_is_not_sent(
    failed: Delivery, fields: dict[str, object], of: type, sentence: str
) -> None:
    of.objects.update(**fields)  # type: ignore[attr-defined]
    before = Delivery.objects.values().get()
    with pytest.raises(ResendError, match=sentence):
        resend_delivery(NOBODY, failed)
    assert Delivery.objects.values().get() == before


def test_an_operator_presses_a_button(client: Client, failed: Delivery, sent: list[object]) -> None:
    where = f"/deliveries/{failed.pk}/resend/"
    assert where not in client.get("/deliveries/").content.decode()
    assert client.post(where)["Location"] == "/sign-in/?next=/deliveries/"
    client.force_login(create_member("ada", "operator", failed.channel.project))
    assert where in client.get("/deliveries/").content.decode()
    assert client.post(where)["Location"] == "/deliveries/"
    assert Delivery.objects.get().state == "pending"
    again = client.post(where, {"from": "regression"}, follow=True)
    assert again.redirect_chain == [(f"/regressions/{failed.regression_id}/", 302)]
    assert "there is nothing to send again" in again.content.decode()


def test_a_channel_that_works_again_is_told_what_it_missed(
    failed: Delivery, mailbox: MailSink, sent: list[object]
) -> None:
    trial = alerts.request_test(failed.channel)
    alerts.attempt_delivery(trial.pk)
    alerts.attempt_delivery(failed.pk)
    failed.refresh_from_db()
    assert (failed.state, len(mailbox.messages)) == ("delivered", 2)


def test_what_was_given_up_after_a_success_is_made_up_for(
    failed: Delivery, mailbox: MailSink, sent: list[object]
) -> None:
    """It was due before that: when it was given up counts."""
    due = timezone.now() - timedelta(hours=1)
    Delivery.objects.filter(pk=failed.pk).update(state="pending", attempt=0, errors=[], next_attempt_at=due)
    alerts.attempt_delivery(alerts.request_test(failed.channel).pk)
    Channel.objects.update(enabled=False)
    alerts.attempt_delivery(failed.pk)
    assert Delivery.objects.get(pk=failed.pk).state == "failed"
    Channel.objects.update(enabled=True)
    alerts.attempt_delivery(alerts.request_test(failed.channel).pk)
    assert Delivery.objects.get(pk=failed.pk).state == "pending"


def test_changed_settings_send_what_was_missed(failed: Delivery, sent: list[object]) -> None:
    update_channel(failed.channel, {"name": "The team"})
    assert Delivery.objects.get().state == "pending"
    assert sent == [(dispatch.DELIVER, failed.pk)]


def test_what_a_working_channel_refuses_is_not_tried_for_ever(
    failed: Delivery, mailbox: MailSink, sent: list[object]
) -> None:
    alerts.attempt_delivery(alerts.request_test(failed.channel).pk)
    Delivery.objects.filter(pk=failed.pk).update(state="failed")
    alerts.attempt_delivery(alerts.request_test(failed.channel).pk)
    failed.refresh_from_db()
    assert failed.state == "failed"
    # However long its attempts took.
    many = ["500"] * (2 * Delivery.MOST_ATTEMPTS)
    Delivery.objects.filter(pk=failed.pk).update(next_attempt_at=timezone.now(), errors=many)
    alerts.attempt_delivery(alerts.request_test(failed.channel).pk)
    failed.refresh_from_db()
    assert failed.state == "failed"


@pytest.mark.parametrize(
    ("fields", "of"),
    [
        ({"created_at": timezone.now() - timedelta(days=15)}, Delivery),
        ({"event": "reminder"}, Delivery),
        ({"triaged": "intended"}, Regression),
        ({"minimum_percent": 50}, Channel),
        ({"enabled": False}, Channel),
    ],
)
def test_what_is_no_news_any_more_stays_given_up(
    failed: Delivery, fields: dict[str, object], of: type, sent: list[object]
) -> None:
    of.objects.update(**fields)  # type: ignore[attr-defined]
    update_channel(Channel.objects.get(), {"name": "The team"})
    assert (Delivery.objects.get().state, sent) == ("failed", [])


def test_what_has_recovered_meanwhile_stays_given_up(failed: Delivery, sent: list[object]) -> None:
    Regression.objects.update(recovered_by=factories.create_commit(failed.channel.project, 9))
    update_channel(failed.channel, {"name": "The team"})
    assert Delivery.objects.get().state == "failed"


def test_the_end_of_an_incident_is_made_up_for(failed: Delivery, sent: list[object]) -> None:
    Delivery.objects.update(state="delivered", reported_state="confirmed")
    Regression.objects.update(recovered_by=factories.create_commit(failed.channel.project, 9))
    ending = Delivery.objects.create(
        regression=failed.regression,
        channel=failed.channel,
        event="recovered",
        state="failed",
        next_attempt_at=timezone.now(),
    )
    update_channel(failed.channel, {"name": "The team"})
    assert sent == [(dispatch.DELIVER, ending.pk)]
