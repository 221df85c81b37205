"""So many requests in so many seconds: a window begins with the first request and is counted in one row."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from dashboard.throttling.keys import hash_key

# Group -> its rate for each visitor, where PACELINE_RATES says nothing else.
DEFAULT_RATES = {
    "triggers": "30/min",
    "experiments": "30/min",
    "documents": "120/min",
    "codes": "20/min",
    "messages": "20/min",
    "repositories": "20/min",
    "pages": "240/min",
    "api": "600/min",
    "passwords": "20/10min",
    "provider": "20/min",
}
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
SPELLING = re.compile(r"([1-9]\d{0,6})/(\d{0,4})(s|min|h|d)")
# `clock_timestamp()`: a transaction that takes long counts by the clock too.
COUNT = """
    INSERT INTO dashboard_throttle AS kept (key, count, started_at, free_at)
    VALUES (%(key)s, 1, clock_timestamp(), clock_timestamp() + make_interval(secs => %(seconds)s))
    ON CONFLICT (key) DO UPDATE SET
        count = CASE WHEN kept.free_at <= clock_timestamp() THEN 1 ELSE kept.count + 1 END,
        started_at = CASE WHEN kept.free_at <= clock_timestamp()
            THEN excluded.started_at ELSE kept.started_at END,
        free_at = CASE WHEN kept.free_at <= clock_timestamp() THEN excluded.free_at ELSE kept.free_at END
    RETURNING count, extract(epoch FROM free_at - clock_timestamp())
"""


@dataclass(frozen=True)
class Rate:
    """`most` requests within `seconds`."""

    most: int
    seconds: int


def count_request(rate: Rate, *key: str) -> int:
    """Count one more; 0 where it may be answered, else the seconds until the window ends."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"key": hash_key("rate", *key), "seconds": rate.seconds})
        count, left = cursor.fetchone()
    return 0 if count <= rate.most else max(1, math.ceil(left))


def parse_rates(name: str, words: list[str], defaults: Mapping[str, str]) -> dict[str, Rate | None]:
    """The rate of each group: `triggers=30/min` changes one, `triggers=off` lifts it.

    ImproperlyConfigured names the variable `name`.
    """
    rates = dict(defaults)
    for word in words:
        group, equals, rate = (part.strip() for part in word.partition("="))
        if not equals or group not in defaults:
            known = ", ".join(sorted(defaults))
            raise ImproperlyConfigured(f"{name} has {word!r}; it must be like triggers=30/min, of: {known}.")
        rates[group] = rate
    return {group: _parse_rate(name, group, rate) for group, rate in rates.items()}


def _parse_rate(name: str, group: str, text: str) -> Rate | None:
    if text == "off":
        return None
    match = SPELLING.fullmatch(text)
    if not match or not int(match[2] or 1):
        raise ImproperlyConfigured(
            f"{name}: {group} must be like 30/min, 100/h, 5/10s, or off, not {text!r}."
        )
    return Rate(int(match[1]), int(match[2] or 1) * UNITS[match[3]])
