"""The headers of every answer for browsers: which code may run in a page, and who may look into it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

GetResponse = Callable[[HttpRequest], HttpResponseBase]

# Plotly writes these two into the attribute `style` of a link and of bold text; no other one is obeyed.
PLOTLY_STYLES = ("cursor:pointer", "font-weight:bold")


def hash_source(text: str) -> str:
    """The source expression that allows this very text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Scripts and styles are files of the site: what a log, a commit or a document says can't run in a page.
CONTENT_SECURITY_POLICY = {
    "default-src": ("'none'",),
    "script-src": ("'self'",),
    "style-src": ("'self'", "'unsafe-hashes'", *map(hash_source, PLOTLY_STYLES)),
    "img-src": ("'self'", "data:"),
    "font-src": ("'self'",),
    "connect-src": ("'self'",),
    "manifest-src": ("'self'",),
    "base-uri": ("'none'",),
    "form-action": ("'self'",),
    "frame-ancestors": ("'none'",),
    "object-src": ("'none'",),
}
# What no page asks of a browser. Copying to the clipboard is a button of some pages.
REFUSED_FEATURES = (
    *(
        "accelerometer",
        "autoplay",
        "camera",
        "display-capture",
        "encrypted-media",
        "fullscreen",
        "geolocation",
    ),
    *("gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture", "screen-wake-lock"),
    *("sync-xhr", "usb", "xr-spatial-tracking"),
)


def format_policy(policy: dict[str, tuple[str, ...]]) -> str:
    return "; ".join(" ".join((name, *sources)) for name, sources in policy.items())


HEADERS = {
    "Content-Security-Policy": format_policy(CONTENT_SECURITY_POLICY),
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in REFUSED_FEATURES),
    "Cross-Origin-Resource-Policy": "same-origin",
    # For browsers that don't know frame-ancestors, and with the answers that come before Django's own.
    "X-Frame-Options": "DENY",
}


def restrict_browsers(get_response: GetResponse) -> GetResponse:
    """Return the middleware: HEADERS on each answer that doesn't have them already.

    Django's own middleware sends the others: nosniff, Referrer-Policy, Cross-Origin-Opener-Policy.
    """

    def answer_request(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if not is_debug_page(response):
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    return answer_request


def is_debug_page(response: HttpResponseBase) -> bool:
    """Whether this is Django's own page of an error, whose scripts and styles are inline."""
    return settings.DEBUG and response.status_code in (
        HTTPStatus.NOT_FOUND,
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )
