"""Whether the site has a mail server: EMAIL_URL."""

from __future__ import annotations

from django.conf import settings

PRINTED = "This site has no mail server (EMAIL_URL): its mail is printed to the log of the service worker."


def sends_mail() -> bool:
    """Whether mail leaves the site."""
    return not settings.EMAIL_BACKEND.endswith("console.EmailBackend")
