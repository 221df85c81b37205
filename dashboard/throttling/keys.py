"""Of whom it is counted: an account, a signed-in person, or an address."""

from __future__ import annotations

import hashlib
import ipaddress

from django.http import HttpRequest

# One customer's network: a computer may take any address in it.
IPV6_NETWORK = 64


def hash_key(*parts: str) -> str:
    """The key of a row: names and addresses of people aren't kept in plain."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def requester_key(request: HttpRequest) -> str:
    """Who asks: the account where there is one, else the address."""
    if request.user.is_authenticated:
        return f"account {request.user.pk}"
    return f"address {network_of(request.META.get('REMOTE_ADDR', ''))}"


def network_of(address: str) -> str:
    """The address itself; of IPv6 the network that one customer has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_NETWORK), strict=False))
