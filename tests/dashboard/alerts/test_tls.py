"""Webhooks over TLS, against a real server with a certificate of its own."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_django import Settings

from dashboard import alerts
from dashboard.models import Delivery
from tests.dashboard.alerts.sinks import HttpSink

Make = Callable[..., Delivery]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that signs itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - timedelta(days=1))
    builder = builder.not_valid_after(now + timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    path = tmp_path / "localhost.pem"
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    pem = serialization.Encoding.PEM
    path.write_bytes(signed.public_bytes(pem) + key.private_bytes(pem, form, plain))
    return path


@pytest.fixture
def secure(certificate: Path, settings: Settings) -> Iterator[HttpSink]:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with HttpSink(tls=context).open() as sink:
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
