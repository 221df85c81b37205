"""Schedules of policies whose time has come."""

from __future__ import annotations

import logging

from django.db import transaction
from django.utils import timezone

from dashboard.models import Schedule, Trigger
from dashboard.policy.cron import NeverDue, next_due
from dashboard.policy.project_policy import plan_next_quiet_hours
from dashboard.triggers.receiving import TriggerOrigin, receive_trigger

logger = logging.getLogger(__name__)

MOST_DUE = 100


def send_due_schedules() -> None:
    """Ask for what each schedule that is due measures; and plan the quiet hours that come next."""
    plan_next_quiet_hours()
    for schedule in Schedule.objects.filter(next_at__lte=timezone.now()).order_by("next_at", "pk")[:MOST_DUE]:
        trigger_schedule(schedule)


def trigger_schedule(schedule: Schedule) -> Trigger | None:
    """Once, however many times it was due while the site was away; None where another sweep was first."""
    now = timezone.now()
    with transaction.atomic():
        due = Schedule.objects.filter(pk=schedule.pk, next_at=schedule.next_at)
        try:
            taken = due.update(next_at=next_due(schedule.cron, schedule.time_zone, now), last_at=now)
        except NeverDue as error:
            logger.warning("%s: %s", schedule, error)
            due.delete()
            return None
        if not taken:
            return None
        origin = TriggerOrigin(Trigger.Source.SCHEDULE, schedule=schedule.name)
        return receive_trigger(schedule.project, origin, {})
