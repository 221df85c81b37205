"""A rule as a form has it, read into columns; and the order of a channel's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Max

from dashboard.alerts.channel_settings import read_minimum
from dashboard.alerts.errors import ChannelError
from dashboard.models import AlertRule, Channel

PATTERNS = {"case": ("Case", 300), "metric": ("Metric", 150), "branch": ("Branch", 250)}
MOST_RULES = 50


def read_rule(written: Mapping[str, str], states: Sequence[str]) -> dict[str, Any]:
    """Raises ChannelError with the field."""
    values: dict[str, Any] = {"notifies": written.get("notifies", "yes") != "no"}
    for name, (label, most) in PATTERNS.items():
        text = written.get(name, "")
        if len(text) > most or not text.isprintable():
            raise ChannelError(f"{label} has at most {most} printable letters.", name)
        values[name] = text
    try:
        values["minimum_percent"] = read_minimum(written.get("minimum_percent", ""))
    except ChannelError as error:
        raise ChannelError(str(error), "minimum_percent") from None
    chosen = [state for state in AlertRule.State.values if state in states]
    if not chosen:
        raise ChannelError("Choose in which states: suspected, confirmed or both.", "states")
    return values | {"states": chosen}


def append_rule(channel: Channel, values: Mapping[str, Any]) -> AlertRule:
    """Behind those that are there. Raises ChannelError."""
    if channel.rules.count() >= MOST_RULES:
        raise ChannelError(f"A channel has at most {MOST_RULES} rules.", "case")
    last = channel.rules.aggregate(last=Max("position"))["last"]
    return channel.rules.create(position=0 if last is None else last + 1, **values)


@transaction.atomic
def move_rule(rule: AlertRule, by: int) -> None:
    """Up or down by one; positions are counted anew, so that no two are alike."""
    rows = AlertRule.objects.filter(channel=rule.channel_id).order_by("position", "pk")
    rules = list(rows.select_for_update())
    place = next((index for index, row in enumerate(rules) if row.pk == rule.pk), None)
    if place is None:
        return
    rules.insert(min(max(place + by, 0), len(rules) - 1), rules.pop(place))
    for position, row in enumerate(rules):
        row.position = position
    AlertRule.objects.bulk_update(rules, ["position"])
