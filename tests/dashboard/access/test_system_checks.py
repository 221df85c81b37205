"""An address without a rule, and a rule without an address, stop the site before it starts."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from dashboard.access.rules import ANYBODY, RULES
from dashboard.access.system_checks import check_rules


def answer_anybody(_: HttpRequest) -> HttpResponse:
    return HttpResponse("unguarded")


urlpatterns = [
    path("planted/", answer_anybody, name="planted"),
    path("nameless/", answer_anybody),
    path("", include("dashboard.urls")),
]


def test_every_address_has_a_rule() -> None:
    assert check_rules() == []


@pytest.mark.urls(__name__)
def test_an_address_without_a_rule_is_told() -> None:
    told = {(message.id, message.msg) for message in check_rules()}
    assert told == {
        ("paceline.E002", f"No rule says who may use the address {name!r}.")
        for name in ("planted", "nameless/")
    }


def test_a_rule_without_an_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "removed", ANYBODY)
    assert [message.id for message in check_rules()] == ["paceline.E003"]


@pytest.mark.urls(__name__)
@pytest.mark.django_db
def test_nobody_may_use_an_address_without_a_rule(client: Client) -> None:
    assert [client.get(address).status_code for address in ("/planted/", "/nameless/")] == [403, 403]
