"""Requests that nobody would think of: how many, and that each finds what the one before it found.

FUZZ_CASES=5000 makes so many, others at each run; a few hundred are made otherwise, always the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from hypothesis import HealthCheck, Phase, settings

FUZZ_CASES = int(os.environ.get("FUZZ_CASES", "0"))


def fuzz_settings(few: int, parts: int) -> settings:
    """Of one of so many `parts` that together make FUZZ_CASES, or `few`, requests."""
    return settings(
        max_examples=-(-(FUZZ_CASES or few) // parts),
        derandomize=not FUZZ_CASES,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def effects_taken_back() -> Iterator[None]:
    """Not a transaction of Django's: within one the product may not start git."""
    before = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(before)
