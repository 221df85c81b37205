from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from dashboard import alerts
from dashboard.models import Commit, Delivery, Regression
from dashboard.sentences.formatting.change_sizes import format_levels
from dashboard.sentences.regressions import regressions as sentences
from tests.dashboard.alerts.conftest import OPERATION
from tests.dashboard.alerts.sinks import MailSink

Make = Callable[..., Delivery]


def test_the_mail_says_in_words_what_happened(make_delivery: Make, mailbox: MailSink) -> None:
    alerts.attempt_delivery(make_delivery("email", "training@example.org").pk)
    message = mailbox.messages[0]
    text = message.get_body(("plain",))
    assert text is not None
    first = text.get_content().splitlines()[0]
    assert message["To"] == "training@example.org"
    assert message["Subject"].startswith("[snakes] step time +38 % [35, 41] since ")
    assert "“Change number 1”; replay/sample explains 92 %; replay.py:ReplayBuffer.sample takes" in first
    assert first.endswith("takes 4.10 ms per profiled step instead of 1.20 ms and was changed in that commit")


def test_the_mail_names_the_operations_that_grew(make_delivery: Make, mailbox: MailSink) -> None:
    alerts.attempt_delivery(make_delivery("email", "training@example.org").pk)
    plain, html = (mailbox.messages[0].get_body((kind,)) for kind in ("plain", "html"))
    assert plain
    assert html
    sentence = "aten::stack in replay/sample is done 256 times per step instead of once"
    assert f"  {sentence}" in plain.get_content().splitlines()
    assert f"<li>{sentence}</li>" in html.get_content()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"count_before": 0}, "aten::stack in replay/sample is new, done 256 times per step"),
        (
            {"count_before": 256.0},
            "aten::stack in replay/sample is done as often as before "
            "and takes 2.10 ms per profiled step instead of 100 µs",
        ),
        ({"phase": ""}, "aten::stack is done 256 times per step instead of once"),
    ],
)
def test_an_operation_says_what_is_otherwise(fields: dict[str, Any], sentence: str) -> None:
    assert sentences.describe_operation(OPERATION | fields) == sentence


@pytest.mark.parametrize(
    ("phase", "place", "expected"),
    [
        ("replay/sample", "device", "replay/sample explains 92 %, on the device; "),
        ("replay/sample", Regression.Place.HOST_ALONE, "replay/sample explains 92 %; "),
        ("(unattributed)", "", "; code outside of phases explains 92 %; "),
    ],
)
def test_the_title_says_phase_and_place(make_delivery: Make, phase: str, place: str, expected: str) -> None:
    regression = make_delivery("email", "training@example.org").regression
    regression.phase, regression.place = phase, place
    assert expected in sentences.regression_title(regression)


def test_an_exponent_is_told_as_it_was_and_is(make_delivery: Make) -> None:
    regression = make_delivery("email", "training@example.org").regression
    regression.series.metric.name, regression.series.metric.unit = "scaling_exponent", "1"
    # Such a ratio is e ** difference: an exponent may be 0, or less.
    regression.before = -0.02
    sizes = {"ratio": math.exp(0.42), "low": math.exp(0.38), "high": math.exp(0.45)}
    for name, value in sizes.items():
        setattr(regression, name, value)
    assert sentences.describe_change(regression) == "scaling exponent +0.42 [0.38, 0.45]"
    assert format_levels(regression) == "\N{MINUS SIGN}0.0200 → 0.400"


def test_the_mail_links_to_the_regression(make_delivery: Make, mailbox: MailSink, settings: Settings) -> None:
    settings.PACELINE_URL = "https://pace.example.org"
    delivery = make_delivery("email", "training@example.org")
    alerts.attempt_delivery(delivery.pk)
    link = f"https://pace.example.org{delivery.regression.get_absolute_url()}"
    assert [link in part.get_content() for part in mailbox.messages[0].iter_parts()] == [True, True]


def test_a_subject_of_a_commit_is_only_text(make_delivery: Make, mailbox: MailSink) -> None:
    Commit.objects.update(subject="<b>Bold</b>\nBcc: eve@example.org")
    alerts.attempt_delivery(make_delivery("email", "training@example.org").pk)
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
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == "pending"
    assert delivery.errors[0].startswith("The mail server did not take the message: [Errno 111]")


def test_an_address_that_the_server_does_not_know_is_given_up(make_delivery: Make, mailbox: MailSink) -> None:
    mailbox.refuse = "550 no such user"
    delivery = make_delivery("email", "nobody@example.org")
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.errors) == (
        "failed",
        ["The mail server refused nobody@example.org: 550 no such user."],
    )


def test_a_busy_mail_server_is_tried_again(make_delivery: Make, mailbox: MailSink) -> None:
    mailbox.refuse = "450 mailbox busy"
    delivery = make_delivery("email", "somebody@example.org")
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == "pending"
