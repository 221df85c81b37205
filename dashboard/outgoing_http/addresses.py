"""Which addresses a request may go to: the public internet's, unless an administrator allows others."""

from __future__ import annotations

import ipaddress
import socket

from django.conf import settings

from dashboard.outgoing_http.errors import InternalAddressError, OutgoingError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# IPv6 ranges that hold an IPv4 address of another network, and how many bits stand behind it.
IPV4_EMBEDDING_NETWORKS = (
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
)

# Not the public internet's either, though `is_global` says so: site-local addresses, the relays of 6to4,
# and those set aside for documentation.
NON_PUBLIC_NETWORKS = tuple(
    ipaddress.ip_network(network) for network in ("fec0::/10", "192.88.99.0/24", "3fff::/20")
)


def resolve_public_address(host: str, port: int, permission: str) -> str:
    """The address to connect to for a host name, looked up once. The caller connects to it and to no other.

    `permission` names the setting by which an administrator allows internal addresses. Raises OutgoingError
    where the name has no address now, InternalAddressError where all are internal.
    """
    addresses = resolve_host(host, port)
    if getattr(settings, permission):
        return addresses[0]
    for address in addresses:
        if is_public_address(address):
            return address
    named = "an internal address" if host == addresses[0] else f"the internal address {addresses[0]}"
    raise InternalAddressError(f"{host} is {named}; an administrator can allow those with {permission}.")


def resolve_host(host: str, port: int) -> list[str]:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        text = error.strerror if isinstance(error, socket.gaierror) else "it isn't a host name"
        raise OutgoingError(f"The address of {host} can't be found: {text}.") from error
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


def is_public_address(text: str) -> bool:
    # A link-local address may carry a zone: fe80::1%eth0.
    address = embedded_ipv4_address(ipaddress.ip_address(text.partition("%")[0]))
    if any(address in network for network in NON_PUBLIC_NETWORKS):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def embedded_ipv4_address(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    for network, shift in IPV4_EMBEDDING_NETWORKS:
        if address in network:
            return ipaddress.IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return address
