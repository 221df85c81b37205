"""The IP address that a request came from."""

from __future__ import annotations

import ipaddress

from django.http import HttpRequest


def request_address(request: HttpRequest) -> str | None:
    """The client's, as dashboard.middleware.client_addresses found it; None of a Unix socket."""
    try:
        return str(ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return None
