"""Guessing gets slower with each guess, for an account and for an address, and locks no owner out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client

from dashboard.models import Throttle
from tests.dashboard.accounts.conftest import is_signed_in, sign_in


def guess_passwords(client: Client, times: int, name: str = "ada", **more: object) -> list[int]:
    return [sign_in(client, name, f"guess {number}", **more).status_code for number in range(times)]


def pass_time(seconds: int) -> None:
    Throttle.objects.update(free_at=F("free_at") - timedelta(seconds=seconds))


@pytest.mark.usefixtures("stopped_clock")
def test_after_five_guesses_one_waits(client: Client, ada: User) -> None:
    assert guess_passwords(client, 6) == [200] * 5 + [429]
    refused = sign_in(client)
    assert (refused.status_code, refused["Retry-After"] in "12") == (429, True)
    assert "Too many failed sign-ins: try again in " in refused.content.decode()
    assert not is_signed_in(client)
    pass_time(2)
    sign_in(client)
    assert is_signed_in(client)


@pytest.mark.usefixtures("stopped_clock")
def test_an_unknown_name_is_answered_alike(client: Client, ada: User) -> None:
    answers = [sign_in(client, name, "a guess").content for name in ("ada", "nobody")]
    assert b"The name or the password is wrong." in answers[0]
    assert guess_passwords(client, 5, "nobody") == [200] * 4 + [429]


@pytest.mark.usefixtures("stopped_clock")
def test_capitals_make_no_other_account(client: Client, ada: User) -> None:
    assert guess_passwords(client, 3, "ada") + guess_passwords(client, 3, "ADA") == [200] * 5 + [429]


@pytest.mark.usefixtures("stopped_clock")
def test_an_address_is_slow_whatever_accounts_it_tries(ada: User) -> None:
    client = Client(headers={"X-Forwarded-For": "192.0.2.1"})
    answers = [sign_in(client, f"name {number}", "a guess").status_code for number in range(21)]
    assert answers == [200] * 20 + [429]
    elsewhere = Client(headers={"X-Forwarded-For": "192.0.2.2"})
    assert sign_in(elsewhere).status_code == 302


@pytest.mark.usefixtures("stopped_clock")
def test_who_is_refused_at_an_account_pays_nothing_at_the_address(ada: User) -> None:
    client = Client(headers={"X-Forwarded-For": "192.0.2.1"})
    assert guess_passwords(client, 30).count(429) == 25
    assert sign_in(client, "another", "a guess").status_code == 200


@pytest.mark.usefixtures("stopped_clock")
def test_an_account_of_ones_own_gives_no_free_guesses(ada: User) -> None:
    User.objects.create_user("eve", password="a long secret")
    client = Client(headers={"X-Forwarded-For": "192.0.2.1"})
    answers = []
    for number in range(21):
        answers.append(sign_in(client, f"name {number}", "a guess").status_code)
        sign_in(Client(headers={"X-Forwarded-For": "192.0.2.1"}), "eve")
    assert answers == [200] * 20 + [429]


@pytest.mark.usefixtures("stopped_clock")
def test_guessing_does_not_lock_the_owner_out(client: Client, ada: User) -> None:
    sign_in(client)
    client.post("/sign-out/")
    eve = Client(headers={"X-Forwarded-For": "192.0.2.1"})
    assert guess_passwords(eve, 6)[-1] == 429
    assert sign_in(client).status_code == 302


@pytest.mark.usefixtures("stopped_clock")
def test_a_cookie_that_was_written_by_hand_is_none(client: Client, ada: User) -> None:
    assert guess_passwords(client, 6)[-1] == 429
    client.cookies["knownbrowser"] = "eyJhIjoxfQ:1abc:forged"
    assert sign_in(client).status_code == 429


@pytest.mark.django_db(transaction=True)
def test_delays_need_no_queue(client: Client, settings: LazySettings) -> None:
    settings.BROKER_URL = "redis://127.0.0.1:1/0"
    User.objects.create_user("ada", password="a long secret")
    assert guess_passwords(client, 6)[-1] == 429
    pass_time(10)
    assert sign_in(client).status_code == 302
