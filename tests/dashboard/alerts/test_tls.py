"""Webhooks over TLS, against a real server with a certificate of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from dashboard import alerts
from dashboard.models import Delivery
from tests.dashboard.alerts.sinks import HttpSink
from tests.dashboard.certificates import create_certificate, server_context

Make = Callable[..., Delivery]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that signs itself, with its key, in one file."""
    return create_certificate(tmp_path / "localhost.pem")


@pytest.fixture
def secure(certificate: Path, settings: Settings) -> Iterator[HttpSink]:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    with HttpSink(tls=server_context(certificate)).open() as sink:
        yield sink


def test_a_trusted_receiver_gets_it(
    make_delivery: Make, secure: HttpSink, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    delivery = make_delivery("webhook", secure.url)
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, len(secure.requests)) == ("delivered", 1)


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(make_delivery: Make, secure: HttpSink) -> None:
    delivery = make_delivery("webhook", secure.url)
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert "certificate verify failed" in delivery.errors[0]
    assert secure.requests == []


def test_a_certificate_of_another_host_is_not_trusted(
    make_delivery: Make, secure: HttpSink, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    delivery = make_delivery("webhook", secure.url.replace("localhost", "127.0.0.1"))
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert "certificate is not valid for '127.0.0.1'" in delivery.errors[0]
