from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_django import Settings

from dashboard import alerts
from dashboard.alerts import sentences
from dashboard.models import Commit, Delivery, Regression
from tests.dashboard.alerts.sinks import MailSink

Make = Callable[..., Delivery]


def test_the_mail_says_in_words_what_happened(make_delivery: Make, mailbox: MailSink) -> None:
    alerts.deliver(make_delivery("email", "training@example.org").pk)
    message = mailbox.messages[0]
    text = message.get_body(("plain",))
    assert text is not None
    first = text.get_content().splitlines()[0]
    assert message["To"] == "training@example.org"
    assert message["Subject"].startswith("[snakes] step time +38 % [35, 41] since ")
    assert "“Change number 1”; replay/sample explains 92 %; replay.py:ReplayBuffer.sample takes" in first
    assert first.endswith("takes 4.1 ms per profiled step instead of 1.2 ms and was changed in that commit")


def test_the_mail_names_the_operations_that_grew(make_delivery: Make, mailbox: MailSink) -> None:
    alerts.deliver(make_delivery("email", "training@example.org").pk)
    plain, html = (mailbox.messages[0].get_body((kind,)) for kind in ("plain", "html"))
    assert plain
    assert html
    assert "  aten::stack in replay/sample: 1 -> 256" in plain.get_content().splitlines()
    assert "<code>aten::stack</code> in <code>replay/sample</code>: 1 &rarr; 256" in html.get_content()


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("on the device", "replay/sample explains 92 %, on the device; "),
        (Regression.HOST_ALONE, "replay/sample explains 92 %; "),
    ],
)
def test_the_title_says_host_or_device_where_there_is_one(
    make_delivery: Make, place: str, expected: str
) -> None:
    regression = make_delivery("email", "training@example.org").regression
    regression.place = place
    assert expected in sentences.title(regression)


def test_an_exponent_is_told_as_it_was_and_is(make_delivery: Make) -> None:
    regression = make_delivery("email", "training@example.org").regression
    regression.series.metric.name = "scaling_exponent"
    regression.before = 1.1
    assert sentences.size(regression) == "scaling exponent 1.10 -> 1.52 [1.49, 1.55]"


def test_the_mail_links_to_the_regression(make_delivery: Make, mailbox: MailSink, settings: Settings) -> None:
    settings.PACELINE_URL = "https://pace.example.org"
    delivery = make_delivery("email", "training@example.org")
    alerts.deliver(delivery.pk)
    link = f"https://pace.example.org{delivery.regression.get_absolute_url()}"
    assert all(link in part.get_content() for part in mailbox.messages[0].iter_parts())


def test_a_subject_of_a_commit_is_only_text(make_delivery: Make, mailbox: MailSink) -> None:
    Commit.objects.update(subject="<b>Bold</b>\nBcc: eve@example.org")
    alerts.deliver(make_delivery("email", "training@example.org").pk)
    message = mailbox.messages[0]
    html = message.get_body(("html",))
    assert html is not None
    assert "&lt;b&gt;Bold" in html.get_content()
    assert message["Bcc"] is None


def test_a_mail_server_that_is_down_is_tried_again(
    make_delivery: Make, mailbox: MailSink, settings: Settings
) -> None:
    settings.EMAIL_PORT = 9
    delivery = make_delivery("email", "training@example.org")
    alerts.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == "pending"
    assert delivery.errors[0].startswith("The mail server did not take the message: [Errno 111]")


def test_an_address_that_the_server_does_not_know_is_given_up(make_delivery: Make, mailbox: MailSink) -> None:
    mailbox.refuse = "550 no such user"
    delivery = make_delivery("email", "nobody@example.org")
    alerts.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.errors) == (
        "failed",
        ["The mail server refused nobody@example.org: 550 no such user."],
    )


def test_a_busy_mail_server_is_tried_again(make_delivery: Make, mailbox: MailSink) -> None:
    mailbox.refuse = "450 mailbox busy"
    delivery = make_delivery("email", "somebody@example.org")
    alerts.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == "pending"
