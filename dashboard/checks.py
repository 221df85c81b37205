"""System checks: what an operator should know before it bites, each with an id and what to do."""

from __future__ import annotations

import shutil
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register


@register()
def tools(**_: Any) -> list[CheckMessage]:
    if shutil.which("git"):
        return []
    return [Error("git is not on the PATH.", hint="Install git: commits are read with it.", id="paceline.E001")]


@register(deploy=True)
def mail(**_: Any) -> list[CheckMessage]:
    if not settings.EMAIL_BACKEND.endswith("console.EmailBackend"):
        return []
    return [
        Warning(
            "Alerts by e-mail are printed to the log, not sent.",
            hint="Set EMAIL_URL, for example smtp://user:password@mail.example.org:587.",
            id="paceline.W001",
        )
    ]


@register(deploy=True)
def public_address(**_: Any) -> list[CheckMessage]:
    if not settings.PACELINE_URL.startswith(("http://127.0.0.1", "http://localhost")):
        return []
    return [
        Warning(
            "Links in alerts lead to this machine alone.",
            hint="Set PACELINE_URL to the address that people use.",
            id="paceline.W002",
        )
    ]
