from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import DataError, connection

from dashboard.postgresql.timestamps import IsoTimestampLoader

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("microsecond", [0, 120_000, 1, 999_999])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York"])
def test_a_moment_is_read_in_utc_wherever_the_session_is(zone: str, microsecond: int) -> None:
    moment = datetime(2026, 7, 5, 23, 59, 59, microsecond, tzinfo=UTC)
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL TIME ZONE '{zone}'")
        cursor.execute("SELECT %s::timestamptz, ARRAY[%s]::timestamptz[]", [moment, moment])
        found, (listed,) = cursor.fetchone()
        cursor.execute("RESET TIME ZONE")
    assert (found, listed) == (moment, moment)
    assert found.utcoffset() == listed.utcoffset() == timedelta()


def test_django_leaves_the_loader_in_place() -> None:
    with connection.cursor() as cursor:
        loader = cursor.adapters.get_loader(psycopg.adapters.types["timestamptz"].oid, psycopg.pq.Format.TEXT)
    assert loader is IsoTimestampLoader


@pytest.mark.parametrize("text", ["infinity", "20000-01-01", "0044-03-15 BC"])
def test_what_python_has_no_moment_for_is_an_error(text: str) -> None:
    with pytest.raises(DataError, match="timestamp"):
        read_moment(text)


def read_moment(text: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        return cursor.fetchone()
