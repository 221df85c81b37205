"""Sessions that are over go, and with them their line on the account's page, and old counts of visitors."""

from __future__ import annotations

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models import F
from django.test import Client

from dashboard import retention
from dashboard.models import Throttle
from tests.dashboard.accounts.conftest import is_signed_in, sign_in


def test_what_is_over_goes_and_what_lasts_stays(client: Client, ada: User) -> None:
    for browser in (client, Client()):
        sign_in(browser, password="a guess")
        sign_in(browser)
    Session.objects.exclude(pk=client.session.session_key).update(
        expire_date=F("expire_date") - timedelta(15)
    )
    Throttle.objects.update(started_at=F("started_at") - timedelta(days=2), free_at=F("started_at"))
    sign_in(Client(), "another", "a guess")
    retention.drop_expired_sessions()
    assert is_signed_in(client)
    assert UserSession.objects.get().session_key == Session.objects.get().pk == client.session.session_key
    assert Throttle.objects.count() == 2
