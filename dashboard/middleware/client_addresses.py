"""Who a request comes from: the address that a trusted proxy names, else the one that is connected."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

GetResponse = Callable[[HttpRequest], HttpResponseBase]


def name_clients(get_response: GetResponse) -> GetResponse:
    """Return the middleware: REMOTE_ADDR is the client's from here on, whatever proxies are between."""

    def answer_request(request: HttpRequest) -> HttpResponseBase:
        request.META["REMOTE_ADDR"] = client_address(
            request.META.get("REMOTE_ADDR", ""),
            request.META.get("HTTP_X_FORWARDED_FOR", ""),
            settings.FORWARDED_ALLOW_IPS,
        )
        return get_response(request)

    return answer_request


def client_address(connected: str, forwarded: str, proxies: str) -> str:
    """The newest address of X-Forwarded-For that isn't a trusted proxy's; what is left of it anybody writes.

    `proxies` is spelt as gunicorn's FORWARDED_ALLOW_IPS: addresses and networks, or `*` for the one proxy
    that is connected. What comes through a unix socket comes from a proxy.
    """
    client = connected
    for hop in reversed(forwarded.split(",")):
        named = plain_address(hop)
        if not named or not is_trusted(client, proxies):
            break
        client = named
        if proxies == "*":
            break
    return client


def is_trusted(address: str, proxies: str) -> bool:
    if not address or proxies == "*":
        return True
    return any(ipaddress.ip_address(address) in network for network in parse_networks(proxies))


@functools.lru_cache(maxsize=8)
def parse_networks(proxies: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """ValueError for what is no address and no network."""
    return tuple(
        ipaddress.ip_network(part.strip(), strict=False) for part in proxies.split(",") if part.strip()
    )


def plain_address(text: str) -> str:
    """An address as it is spelt by a proxy, without brackets and port; empty where it is none."""
    address = text.strip()
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return ""
