"""PostgreSQL's advisory locks: on what no row can be locked for, by two numbers that stand for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

# The first number, by what the second one is the key of.
CONFIGURATION = 0x50ACE
PULL_REQUEST = 0x50ACF


def lock_until_commit(space: int, key: int) -> None:
    """Wait for the lock, and hold it until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [space, _four_bytes(key)])


@contextmanager
def try_session_lock(space: int, key: int) -> Iterator[bool]:
    """Hold the lock inside the block, over several transactions; False where another process holds it.

    It ends with the process too, however that ends: the server lets go what a lost connection held.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [space, _four_bytes(key)])
        (held,) = cursor.fetchone()
    try:
        yield held
    finally:
        if held:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [space, _four_bytes(key)])


def _four_bytes(key: int) -> int:
    """As the server's four bytes can hold it: two keys that share one only wait for each other."""
    return key % 2**31
