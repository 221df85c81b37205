"""A regression as an issue of the connected repository: opened once, commented, closed at its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard import alerts
from dashboard.alerts.kinds.forge_issue import issue_marker
from dashboard.alerts.messages import compose_message
from dashboard.models import Channel, Commit, Delivery, Regression
from tests.dashboard.forges.conftest import OpenStandIn, connection_to, open_stand_in
from tests.dashboard.forges.stand_ins import Forced, Sent, StandIn
from tests.dashboard.forges.test_answers import BUCKET, HUB, ISSUES, LAB, OWN, comment_of

__all__ = ["open_stand_in"]

KINDS = ("github", "gitlab", "gitea", "bitbucket")
CHANGE = {
    "github": f"PATCH {HUB}/issues/{{issue_number}}",
    "gitlab": f"PUT {LAB}/issues/{{issue_iid}}",
    "gitea": f"PATCH {HUB}/issues/{{index}}",
    "bitbucket": f"PUT {BUCKET}/issues/{{issue_id}}",
}
COMMENT = {
    "github": f"POST {HUB}/issues/{{issue_number}}/comments",
    "gitlab": f"POST {LAB}/issues/{{issue_iid}}/notes",
    "gitea": f"POST {HUB}/issues/{{index}}/comments",
    "bitbucket": f"POST {BUCKET}/issues/{{issue_id}}/comments",
}
CLOSED = {
    "github": {"state": "closed"},
    "gitlab": {"state_event": "close"},
    "gitea": {"state": "closed"},
    "bitbucket": {"type": "issue", "state": "resolved"},
}
URL = "https://forge.example/i/9"
Tell = Callable[[list[Delivery]], Delivery]

pytestmark = pytest.mark.django_db


def issue_of(kind: str, text: str = "", author: int = 7) -> dict[str, Any]:
    row = comment_of(kind, 9, text, author)
    row |= {"number": 9, "iid": 9, "html_url": URL, "web_url": URL, "description": text}
    return row | {"links": {"html": {"href": URL}}, "reporter": row.get("user")}


@pytest.fixture(params=KINDS)
def forge(request: pytest.FixtureRequest, regression: Regression, open_stand_in: OpenStandIn) -> StandIn:
    """That the project is connected with; it has the channel."""
    kind = request.param
    stand_in = open_stand_in(kind)
    connection_to(stand_in, regression.project).save()
    Channel.objects.create(project=regression.project, kind="issue", address="issues")
    answer = issue_of(kind)
    stand_in.responses |= {
        ISSUES[kind]: answer,
        CHANGE[kind]: answer,
        COMMENT[kind]: answer,
        "GET /user": OWN,
    }
    return stand_in


@pytest.fixture
def tell(forge: StandIn, sent: list[object]) -> Tell:
    def attempt(deliveries: list[Delivery]) -> Delivery:
        (delivery,) = deliveries
        Delivery.objects.filter(pk=delivery.pk).update(next_attempt_at=timezone.now())
        alerts.attempt_delivery(delivery.pk)
        delivery.refresh_from_db()
        return delivery

    return attempt


def request_names(forge: StandIn) -> list[str]:
    return [request.name for request in forge.requests]


def test_it_is_opened_commented_and_closed(forge: StandIn, tell: Tell, regression: Regression) -> None:
    Commit.objects.update(subject="@everyone | <b>faster</b>")
    opened = tell(alerts.announce_regression(Regression.objects.get()))
    assert (opened.errors, opened.state, opened.opened) == ([], "delivered", "9")
    text = str(forge.last.body)
    assert "step time +38 %" in text
    assert regression.get_absolute_url() in text
    assert "@everyone" not in text
    assert "<b>" not in text
    Regression.objects.update(recovered_by=regression.first_bad)
    ended = tell(alerts.announce_changes(Regression.objects.get()))
    assert ended.state == "delivered"
    kind = forge.kind
    assert request_names(forge) == [ISSUES[kind], CHANGE[kind], COMMENT[kind]]
    assert forge.requests[1].body == CLOSED[kind]
    assert {request.places.get("repo") for request in forge.requests} <= {"Hello-World", None}


def test_an_answer_that_is_lost_opens_no_second_one(forge: StandIn, tell: Tell) -> None:
    kind = forge.kind
    written: list[str] = []

    def lose(sent: Sent) -> Forced:
        body = sent.body
        written.append(body.get("body") or body.get("description") or body["content"]["raw"])
        return Forced(502)

    forge.responses[ISSUES[kind]] = lose
    first = tell(alerts.announce_regression(Regression.objects.get()))
    assert first.state == "pending"
    forge.responses[ISSUES[kind].replace("POST", "GET")] = [issue_of(kind, "x"), issue_of(kind, written[0])]
    again = tell([first])
    assert (again.state, again.opened) == ("delivered", "9")
    assert request_names(forge).count(ISSUES[kind]) == 1
    assert COMMENT[kind] not in request_names(forge)


def test_a_marker_of_somebody_else_is_not_taken(forge: StandIn, tell: Tell) -> None:
    kind = forge.kind
    forge.forced = [Forced(503)]
    first = tell(alerts.announce_regression(Regression.objects.get()))
    marker = issue_marker(compose_message(first))
    forge.responses[ISSUES[kind].replace("POST", "GET")] = [issue_of(kind, marker, author=8)]
    assert tell([first]).state == "delivered"
    assert request_names(forge)[-1] == ISSUES[kind]


def test_a_test_opens_one_and_closes_it(forge: StandIn, tell: Tell) -> None:
    tested = tell([alerts.request_test(Channel.objects.get())])
    assert (tested.errors, tested.state) == ([], "delivered")
    assert request_names(forge) == [ISSUES[forge.kind], CHANGE[forge.kind]]


def test_it_waits_until_the_forge_wants_to_hear_again(forge: StandIn, tell: Tell) -> None:
    forge.forced = [Forced(429, {"Retry-After": "1200"})]
    delivery = tell(alerts.announce_regression(Regression.objects.get()))
    assert delivery.state == "pending"
    assert delivery.next_attempt_at - timezone.now() > timedelta(minutes=19)


def test_what_the_forge_refuses_is_given_up(forge: StandIn, tell: Tell) -> None:
    forge.forced = [Forced(403, body=b'{"message": "Resource not accessible"}')]
    delivery = tell(alerts.announce_regression(Regression.objects.get()))
    assert delivery.state == "failed"
    assert "403" in delivery.errors[0]


def test_without_a_connection_it_says_so(regression: Regression, sent: list[object]) -> None:
    Channel.objects.create(project=regression.project, kind="issue", address="issues")
    (delivery,) = alerts.announce_regression(Regression.objects.get())
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.errors == ["The project isn't connected with a forge: its Settings, Forge do that."]
