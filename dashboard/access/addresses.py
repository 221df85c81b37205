"""From where a request came."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def request_address(request: HttpRequest) -> str | None:
    """The client's address; None where it has none that can be believed.

    Behind a proxy that is believed it is the last that this one added to X-Forwarded-For.
    """
    peer = request.META.get("REMOTE_ADDR", "")
    if peer in settings.FORWARDED_ALLOW_IPS or "*" in settings.FORWARDED_ALLOW_IPS:
        forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        peer = forwarded or peer
    try:
        return str(ipaddress.ip_address(peer))
    except ValueError:
        return None
