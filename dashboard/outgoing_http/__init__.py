"""Requests to other machines, whose names people typed in: guarded, limited in time and in size."""

from dashboard.outgoing_http.addresses import resolve_public_address
from dashboard.outgoing_http.errors import InternalAddressError, OutgoingError, WrongUrlError
from dashboard.outgoing_http.sending import HttpAnswer, parse_url, port_of, send_request

__all__ = [
    "HttpAnswer",
    "InternalAddressError",
    "OutgoingError",
    "WrongUrlError",
    "parse_url",
    "port_of",
    "resolve_public_address",
    "send_request",
]
