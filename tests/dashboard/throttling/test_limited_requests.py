"""Which requests are limited, of whom they are counted, and what the answer is."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver

from dashboard.access.rules import OPERATION_RULES, RULES, Audience
from dashboard.middleware.limited_requests import LIMITED_REQUESTS, find_group
from dashboard.models import Run, Throttle
from dashboard.throttling.keys import network_of
from dashboard.throttling.rates import DEFAULT_RATES, Rate
from dashboard.throttling.refusals import waiting_time
from tests.pages import builders

pytestmark = pytest.mark.django_db


def test_every_limited_address_and_group_is_there() -> None:
    names = {str(name) for name in get_resolver().reverse_dict if isinstance(name, str)}
    assert set(LIMITED_REQUESTS) <= names
    assert {group for group, _ in LIMITED_REQUESTS.values()} <= set(DEFAULT_RATES)


# What operators do that makes no machine work: it ends work, says something or sends a message.
CHEAP = {
    *("project-trigger-cancel", "run-cancel", "experiment-cancel", "delivery-resend"),
    *("remeasuring-cancel", "api-remeasuring-cancel", "waiting-cancel", "api-waiting-cancel"),
    *("regression-triage", "regression-snooze", "series-share", "regression-share", "run-share"),
    *("api-trigger-cancel", "api-run-cancel", "api-experiment-cancel", "api-check-cancel"),
    "api-regression-triage",
}


def test_whatever_makes_machines_work_has_a_rate_of_its_own() -> None:
    pages = {name for name, rule in RULES.items() if rule.who is Audience.OPERATE}
    operations = {
        name
        for name, rules in OPERATION_RULES.items()
        if "POST" in rules and rules["POST"].who is Audience.OPERATE
    }
    costly = (pages | operations) - CHEAP
    assert {name for name in costly if find_group(name, "POST") in ("", "api")} == set()
    assert pages | operations >= CHEAP


# What scripts fetch beside the API that reads little.
SMALL = {"project-feed", "series-badge", "series-embed"}


def test_what_scripts_fetch_has_a_rate() -> None:
    fetched = {name for name, rule in RULES.items() if rule.api and rule.who is Audience.VIEW}
    assert {name for name in fetched if not find_group(name, "GET")} == SMALL


def test_who_comes_too_often_is_told_when_to_come_again(client: Client, settings: LazySettings) -> None:
    settings.PACELINE_RATES = {"triggers": Rate(1, 60)}
    builders.create_project("snake")
    client.force_login(User.objects.create_superuser("ada"))
    assert client.post("/projects/snake/trigger/", {"which": "newest"}).status_code == 302
    refused = client.post("/projects/snake/trigger/", {"which": "newest"})
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    assert "Too many requests: try again in 60 seconds." in refused.content.decode()


def test_only_what_costs_is_counted(client: Client, settings: LazySettings) -> None:
    settings.PACELINE_RATES = {"triggers": Rate(1, 60), "pages": None}
    builders.create_project("snake")
    for where in ("/", "/projects/snake/", "/healthz"):
        client.get(where)
    assert not Throttle.objects.exists()


def test_visitors_are_counted_each_on_their_own(client: Client, settings: LazySettings) -> None:
    settings.PACELINE_RATES = {"pages": Rate(1, 60)}
    builders.create_history()
    where = f"/runs/{Run.objects.latest('pk').pk}/"
    assert client.get(where, headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 200
    assert client.get(where, headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 429
    assert client.get(where, headers={"X-Forwarded-For": "192.0.2.2"}).status_code == 200
    client.force_login(User.objects.create_user("ada"))
    assert client.get(where, headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 200


def test_a_network_of_ipv6_is_one_visitor() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2") == "2001:db8::/64"
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"


@pytest.mark.parametrize(("seconds", "text"), [(1, "1 second"), (90, "90 seconds"), (121, "3 minutes")])
def test_the_time_to_wait_is_readable(seconds: int, text: str) -> None:
    assert waiting_time(seconds) == text
