"""System checks: what an operator should know before it does harm, each with an id and what to do."""

from __future__ import annotations

import shutil
from typing import Any

from django.conf import settings
from django.core import checks

from dashboard.mail_server import sends_mail

# What this machine has to have for the site's own commands.
PROGRAMS = "programs"


@checks.register(PROGRAMS)
def check_git(**_: Any) -> list[checks.CheckMessage]:
    if shutil.which("git"):
        return []
    hint = "Install git: commits are read with it."
    return [checks.Error("git is not on the PATH.", hint=hint, id="paceline.E001")]


@checks.register(deploy=True)
def check_email(**_: Any) -> list[checks.CheckMessage]:
    if sends_mail():
        return []
    hint = "Set EMAIL_URL, for example smtp://user:password@mail.example.org:587."
    message = "Alerts by e-mail are printed to the log, not sent."
    return [checks.Warning(message, hint=hint, id="paceline.W001")]


@checks.register(deploy=True)
def check_openid_people(**_: Any) -> list[checks.CheckMessage]:
    chosen = settings.PACELINE_OIDC
    if chosen is None or chosen.allowed_domains or chosen.allowed_groups:
        return []
    hint = "Set PACELINE_OIDC_ALLOWED_DOMAINS or PACELINE_OIDC_ALLOWED_GROUPS, unless the provider chooses."
    message = f"Everybody with an account at {chosen.issuer} may sign in."
    return [checks.Warning(message, hint=hint, id="paceline.W003")]


@checks.register(deploy=True)
def check_public_address(**_: Any) -> list[checks.CheckMessage]:
    if not settings.PACELINE_URL.startswith(("http://127.0.0.1", "http://localhost")):
        return []
    hint = "Set PACELINE_URL to the address that people use."
    message = "Links in alerts lead to this machine alone."
    return [checks.Warning(message, hint=hint, id="paceline.W002")]
