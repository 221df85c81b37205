"""Sessions, throttle counts and deliveries of forges that are over: removed whatever a policy says."""

from __future__ import annotations

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from dashboard.models import ForgeDelivery, Throttle
from dashboard.throttling.attempts import FORGOTTEN_AFTER_SECONDS

# How long a forge's request isn't taken a second time.
KEEP_DELIVERIES = timedelta(days=400)


def drop_old_deliveries() -> None:
    """Forget which requests of forges were received long ago."""
    ForgeDelivery.objects.filter(received_at__lt=Now() - KEEP_DELIVERIES).delete()


def drop_expired_sessions() -> None:
    """Sessions that are over, and counts of visitors that say nothing any more."""
    Session.objects.filter(expire_date__lt=Now()).delete()
    there = Session.objects.filter(session_key=OuterRef("session_key"))
    UserSession.objects.filter(~Exists(there)).delete()
    old = Now() - timedelta(seconds=FORGOTTEN_AFTER_SECONDS)
    Throttle.objects.filter(free_at__lt=Now(), started_at__lt=old).delete()
