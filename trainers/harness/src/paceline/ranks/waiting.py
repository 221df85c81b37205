"""How long each rank waits at collectives for ranks that come later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def waiting_seconds(logs: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return each rank's seconds of the window, of ranks that took the same collectives.

    A rank waits for others while it is blocked and not all have come: what follows is the transfer. Beyond
    the collectives whose times were kept, waiting is taken to have the same share of the blocked time.
    """
    latest = [max(times) for times in zip(*(log["arrived"] for log in logs), strict=True)]
    return [_waiting_of_rank(log, latest) for log in logs]


def _waiting_of_rank(log: Mapping[str, Any], latest: Sequence[float]) -> float:
    waited = blocked = 0.0
    for all_here, began, left in zip(latest, log["blocked"], log["left"], strict=True):
        # Nobody waited for a collective that was only launched.
        if not math.isnan(left):
            waited += max(0.0, min(left, all_here) - began)
            blocked += left - began
    return waited * log["blocked_seconds"] / blocked if blocked else 0.0
