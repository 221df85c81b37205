"""What requests are counted by: an account, or the network of an address, as a hash."""

from __future__ import annotations

import hashlib
import ipaddress

# One customer's network: a computer may take any address in it.
IPV6_NETWORK = 64


def hash_key(*parts: str) -> str:
    """The key of a row: names and addresses of people aren't kept in plain."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


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
