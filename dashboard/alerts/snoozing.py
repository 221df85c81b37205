"""A regression of which nobody is notified for a while: until a day, or until it has grown."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from dashboard.alerts.channel_settings import read_day_ahead, read_number
from dashboard.alerts.errors import ChannelError
from dashboard.models import Regression, Snooze
from dashboard.sentences.formatting import numbers

LEAST_GROWTH = 0.1


def snooze_regression(
    regression: Regression, person: Any, until: str = "", growth: str = "", now: datetime | None = None
) -> Snooze:
    """Of texts as a form has them: a day like 2026-03-31, per cent like 10, or both; the first ends it.

    Raises ChannelError with the field.
    """
    if not until.strip() and not growth.strip():
        raise ChannelError("Name a day, or by how much it may grow.", "until")
    day, percent = None, None
    if until.strip():
        try:
            day = read_day_ahead(until, now or timezone.now())
        except ChannelError as error:
            raise ChannelError(str(error), "until") from None
    if growth.strip():
        percent = read_growth(regression, growth.strip())
    values = {"until": day, "growth_percent": percent, "ratio": regression.ratio, "person": person}
    snooze, _ = Snooze.objects.update_or_create(regression=regression, defaults=values)
    return snooze


def read_growth(regression: Regression, text: str) -> float:
    try:
        percent = read_number(text, "Growth")
    except ChannelError as error:
        raise ChannelError(str(error), "growth") from None
    if not LEAST_GROWTH <= percent <= 1000:
        raise ChannelError(f"Growth is {numbers.format_field(LEAST_GROWTH)} to 1000 %.", "growth")
    if regression.ratio is None:
        why = (
            "It is reported by its levels"
            if regression.kind == regression.Kind.QUALITY
            else "It grew from nothing"
        )
        raise ChannelError(f"{why}, so that it has no percentage: name a day.", "until")
    return percent


def is_snoozed(regression: Regression, now: datetime | None = None) -> bool:
    snooze = Snooze.objects.filter(regression=regression).first()
    if snooze is None or has_ended(snooze, now or timezone.now()):
        return False
    return not has_grown(snooze, regression)


def has_ended(snooze: Snooze, now: datetime) -> bool:
    return snooze.until is not None and snooze.until <= now


def has_grown(snooze: Snooze, regression: Regression) -> bool:
    """Whether its level is now so much worse than it was when the snooze began."""
    then, now = snooze.ratio, regression.ratio
    if snooze.growth_percent is None or not then or not now:
        return False
    # Of a rate the level falls as it gets worse.
    further = now / then if then >= 1 else then / now
    return further >= 1 + snooze.growth_percent / 100
