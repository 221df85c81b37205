"""Only a trusted proxy says who the client is."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard.environment_variables import read_networks
from dashboard.middleware.client_addresses import client_address


@pytest.mark.parametrize(
    ("connected", "forwarded", "proxies", "client"),
    [
        ("127.0.0.1", "", "127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "192.0.2.7", "127.0.0.1", "192.0.2.7"),
        ("192.0.2.9", "192.0.2.7", "127.0.0.1", "192.0.2.9"),
        ("127.0.0.1", "1.1.1.1, 192.0.2.7", "127.0.0.1", "192.0.2.7"),
        ("10.0.0.1", "1.1.1.1, 192.0.2.7, 10.0.0.2", "10.0.0.0/8", "192.0.2.7"),
        ("127.0.0.1", "1.1.1.1, unknown", "127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "[2001:db8::1]:4711", "127.0.0.1", "2001:db8::1"),
        ("127.0.0.1", "192.0.2.7:80", "127.0.0.1", "192.0.2.7"),
        ("10.0.0.1", "1.1.1.1, 192.0.2.7", "*", "192.0.2.7"),
        ("", "192.0.2.7", "127.0.0.1", "192.0.2.7"),
    ],
)
def test_the_client_is_what_the_last_untrusted_hop_was(
    connected: str, forwarded: str, proxies: str, client: str
) -> None:
    assert client_address(connected, forwarded, proxies) == client


def test_proxies_are_addresses_or_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "10.0.0.0/8, ::1")
    assert read_networks("FORWARDED_ALLOW_IPS", "") == "10.0.0.0/8, ::1"
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "the proxy")
    with pytest.raises(ImproperlyConfigured, match=r"^FORWARDED_ALLOW_IPS has no address"):
        read_networks("FORWARDED_ALLOW_IPS", "")
