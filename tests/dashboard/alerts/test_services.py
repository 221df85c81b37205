"""Each service gets what it documents, within its limits, and its answers are understood."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from dashboard import alerts
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.kinds.http_exchange import json_reason
from dashboard.models import Channel, Commit, Delivery, Regression
from tests.dashboard.alerts.services import PAGERDUTY_KEY, SERVICES, ServiceStandIn

NASTY = "<!channel> @everyone @all &amp; <b>*bold* [x](http://evil.example) `tick` _it_ ~s~ | # \\"
Send = Callable[..., Delivery]


@pytest.fixture(params=sorted(SERVICES))
def service(request: pytest.FixtureRequest, settings: Settings) -> Iterator[ServiceStandIn]:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    settings.PACELINE_URL = "https://pace.example.org"
    with ServiceStandIn(request.param).open() as stand_in:
        yield stand_in


@pytest.fixture
def send(regression: Regression, service: ServiceStandIn, sent: list[object]) -> Send:
    """Announce the regression to the service, try to deliver it, and return the delivery."""

    def attempt(**fields: Any) -> Delivery:
        channel = Channel.objects.create(
            project=regression.project, kind=service.kind, **service.channel_fields, **fields
        )
        (delivery,) = alerts.announce_regression(Regression.objects.get())
        assert delivery.channel == channel
        alerts.attempt_delivery(delivery.pk)
        delivery.refresh_from_db()
        return delivery

    return attempt


def test_every_service_has_a_stand_in() -> None:
    assert set(SERVICES) == set(KINDS) - {"email", "issue", "webhook"}


def test_a_message_is_as_the_service_wants_it(send: Send, service: ServiceStandIn) -> None:
    delivery = send()
    assert (service.complaints, delivery.errors, delivery.state) == ([], [], "delivered")
    text = json.dumps(service.bodies, ensure_ascii=False)
    assert "step time +38 %" in text
    assert f"https://pace.example.org{delivery.regression.get_absolute_url()}" in text
    assert delivery.seconds is not None


def test_texts_without_end_stay_within_its_limits(
    send: Send, service: ServiceStandIn, regression: Regression
) -> None:
    Commit.objects.update(subject="&" * 500, author="@" * 200)
    long = {**regression.suspects[0], "function": "*" * 3000, "file": "&" * 3000}
    Regression.objects.update(suspects=[long] * 30, operations=[])
    delivery = send()
    assert (service.complaints, delivery.state) == ([], "delivered")


def test_a_subject_is_only_text(send: Send, service: ServiceStandIn) -> None:
    Commit.objects.update(subject=NASTY)
    assert send().state == "delivered"
    text = json.dumps(service.bodies, ensure_ascii=False)
    raw = {"slack": "<!channel>", "discord": "<b>*bold*", "teams": "[x](", "mattermost": "@all"}
    assert raw.get(service.kind, "@nobody") not in text
    if service.kind == "matrix":
        assert "&lt;b&gt;" in service.bodies[0]["formatted_body"]
        assert "<b>" not in service.bodies[0]["formatted_body"]
        assert service.bodies[0]["m.mentions"] == {}


def test_it_waits_as_long_as_it_is_asked_to(send: Send, service: ServiceStandIn) -> None:
    service.answers = [(429, "", {"Retry-After": "1200"})]
    delivery = send()
    assert delivery.state == "pending"
    assert timedelta(seconds=1190) < delivery.next_attempt_at - timezone.now() < timedelta(seconds=1201)
    Delivery.objects.update(next_attempt_at=timezone.now())
    alerts.attempt_delivery(delivery.pk)
    assert Delivery.objects.get().state == "delivered"


def test_a_service_that_is_down_is_tried_again(send: Send, service: ServiceStandIn) -> None:
    service.answers = [(503, "down", {})]
    delivery = send()
    assert delivery.state == "pending"
    assert delivery.errors[0].startswith("127.0.0.1 answered 503 Service Unavailable")


def test_a_channel_that_is_gone_is_given_up_at_once(send: Send, service: ServiceStandIn) -> None:
    answer = '{"message": "gone", "errcode": "gone", "error": "gone"}'
    service.answers = [(404, "gone" if service.kind == "slack" else answer, {})]
    delivery = send()
    assert delivery.state == "failed"
    assert delivery.errors[0].startswith("127.0.0.1 answered 404 Not Found")
    assert "gone" in delivery.errors[0] or service.kind == "teams"


def test_no_secret_is_in_sentences_or_logs(
    send: Send, service: ServiceStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service.answers = [(500, "", {}), (404, "", {})]
    delivery = send()
    Delivery.objects.update(next_attempt_at=timezone.now())
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    secret = delivery.channel.secret.rpartition("/")[2]
    assert len(delivery.errors) == 2
    assert secret not in " ".join(delivery.errors) + caplog.text + str(delivery.channel)


def test_a_test_message_says_that_it_is_one(
    regression: Regression, service: ServiceStandIn, sent: list[object]
) -> None:
    channel = Channel.objects.create(
        project=regression.project, kind=service.kind, enabled=False,
        muted_until=timezone.now() + timedelta(days=1), **service.channel_fields,
    )  # fmt: skip
    delivery = alerts.request_test(channel)
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (service.complaints, delivery.errors, delivery.state) == ([], [], "delivered")
    assert "This is a test of Paceline's alerts of snakes" in json.dumps(service.bodies)


def test_a_test_is_tried_once(regression: Regression, service: ServiceStandIn, sent: list[object]) -> None:
    service.answers = [(503, "", {})]
    channel = Channel.objects.create(project=regression.project, kind=service.kind, **service.channel_fields)
    delivery = alerts.request_test(channel)
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, len(delivery.errors)) == ("failed", 1)


def test_internal_addresses_are_refused(send: Send, service: ServiceStandIn, settings: Settings) -> None:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = False
    delivery = send()
    assert (delivery.state, service.bodies) == ("failed", [])
    assert delivery.errors[0].startswith("127.0.0.1 is an internal address")


@pytest.mark.parametrize("service", ["matrix"], indirect=True)
def test_a_room_gets_one_message_however_often_it_is_sent(send: Send, service: ServiceStandIn) -> None:
    service.answers = [(502, "", {})]
    delivery = send()
    Delivery.objects.update(next_attempt_at=timezone.now())
    alerts.attempt_delivery(delivery.pk)
    assert len(service.paths) == 2
    assert service.paths[0] == service.paths[1]
    assert service.headers[0]["Authorization"] == "Bearer a token"


@pytest.mark.parametrize("service", ["slack"], indirect=True)
def test_slack_gets_it_without_a_picture_that_it_can_not_fetch(
    send: Send, service: ServiceStandIn, regression: Regression
) -> None:
    service.answers = [(400, "invalid_blocks", {})]
    assert send().state == "delivered"
    kinds = [{block["type"] for block in body["blocks"]} for body in service.bodies]
    assert kinds[0] - kinds[1] == {"image"}


@pytest.mark.parametrize("service", ["pagerduty"], indirect=True)
def test_an_incident_ends_with_its_regression(
    send: Send, service: ServiceStandIn, regression: Regression
) -> None:
    send()
    Regression.objects.update(recovered_by=regression.first_bad)
    (ended,) = alerts.announce_changes(Regression.objects.get())
    alerts.attempt_delivery(ended.pk)
    assert [body["event_action"] for body in service.bodies] == ["trigger", "resolve"]
    assert len({body["dedup_key"] for body in service.bodies}) == 1
    assert service.bodies[0]["routing_key"] == PAGERDUTY_KEY


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "[" * 4096, '{"message": 7}'])
def test_an_answer_that_gives_no_reason_is_read(text: str) -> None:
    assert json_reason("message")(text) == ""
