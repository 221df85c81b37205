"""Who signed in, failed to, and signed out: whatever page or library does it, Django tells of it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import signals
from django.contrib.auth.models import User
from django.dispatch import receiver
from django.http import HttpRequest

from dashboard.access.addresses import request_address
from dashboard.access.audit import AuditAction, record_action
from dashboard.access.visitors import Visitor


@receiver(signals.user_logged_in)
def record_sign_in(request: HttpRequest | None, user: User, **_: Any) -> None:
    record_action(_visitor_from(request, user), AuditAction.SIGNED_IN)


@receiver(signals.user_logged_out)
def record_sign_out(request: HttpRequest | None, user: User | None, **_: Any) -> None:
    if user is not None:
        record_action(_visitor_from(request, user), AuditAction.SIGNED_OUT)


@receiver(signals.user_login_failed)
def record_failed_sign_in(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """The name is kept where it is an account's: in the wrong field people type passwords."""
    typed = str(credentials.get("username", "")).replace("\0", "")
    known = User.objects.filter(username=typed).exists()
    record_action(_visitor_from(request, None), AuditAction.SIGN_IN_FAILED, account=typed if known else "")


def _visitor_from(request: HttpRequest | None, user: User | None) -> Visitor:
    return Visitor(user, address=request_address(request) if request is not None else None)
