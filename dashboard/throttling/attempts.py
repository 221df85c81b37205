"""Growing delays after failed attempts: each is counted before it is looked at, so many at once gain nothing.

A delay doubles with each further attempt, up to the longest; whoever asks within it is refused, and that is
not counted. A day without an attempt forgets all.
"""

from __future__ import annotations

import math

from django.db import connection

from dashboard.models import Throttle
from dashboard.throttling.keys import hash_key

FORGOTTEN_AFTER_SECONDS = 86_400
# 2 ** 30 seconds is longer than any longest delay.
MOST_DOUBLINGS = 30
RESERVE = """
    INSERT INTO dashboard_throttle AS kept (key, count, started_at, free_at)
    VALUES (%(key)s, 1, clock_timestamp(), clock_timestamp())
    ON CONFLICT (key) DO UPDATE SET
        count = 1 + remembered(kept),
        started_at = clock_timestamp(),
        free_at = clock_timestamp() + make_interval(secs => CASE WHEN remembered(kept) + 1 < %(free)s THEN 0
            ELSE least(%(longest)s, 2.0 ^ least(remembered(kept) + 2 - %(free)s, %(doublings)s)) END)
    WHERE kept.free_at <= clock_timestamp()
    RETURNING 0
""".replace(
    "remembered(kept)",
    "(CASE WHEN kept.started_at < clock_timestamp() - make_interval(secs => %(forgotten)s)"
    " THEN 0 ELSE kept.count END)",
)
LEFT = "SELECT extract(epoch FROM free_at - clock_timestamp()) FROM dashboard_throttle WHERE key = %s"


def reserve_attempt(*key: str, free: int, longest: int) -> int:
    """0 where an attempt may be made now, which is counted as failed; else the seconds to wait.

    `free` attempts (two at least) may be made at once; no delay is longer than `longest` seconds.
    """
    kept = hash_key("attempts", *key)
    numbers = {"doublings": MOST_DOUBLINGS, "forgotten": FORGOTTEN_AFTER_SECONDS}
    with connection.cursor() as cursor:
        cursor.execute(RESERVE, {"key": kept, "free": free, "longest": longest, **numbers})
        if cursor.fetchone():
            return 0
        cursor.execute(LEFT, [kept])
        found = cursor.fetchone()
    return max(1, math.ceil(found[0])) if found else 1


def forget_attempts(*key: str) -> None:
    """It has succeeded: nothing is left of those before."""
    Throttle.objects.filter(key=hash_key("attempts", *key)).delete()


def forgive_attempt(*key: str) -> None:
    """The newest one has succeeded; those before are still counted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE dashboard_throttle SET count = greatest(count - 1, 0), free_at = clock_timestamp()"
            " WHERE key = %s",
            [hash_key("attempts", *key)],
        )
