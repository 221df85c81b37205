"""The series that are judged: those that may open a regression, and exact counters of the whole step.

The qualities that a manifest guards are judged as its headlines are."""

from __future__ import annotations

from django.db.models import Q

from dashboard.judged_counters import JUDGED_COUNTERS

JUDGED = Q(headline=True) | Q(guarded=True) | Q(exact=True, phase="", metric__name__in=JUDGED_COUNTERS)
