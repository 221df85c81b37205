"""The revision of what a page shows: another one as soon as something else is committed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.db import connection
from django.db.models import BigIntegerField
from django.db.models.expressions import RawSQL

STAMP = "hashtextextended(gen_random_uuid()::text, 0)"
# One stamp stands for all of a project: they are combined when there are more than these.
MOST_STAMPS = 500
# Of what a project's pages show: read with the project, before the page is made. What is committed in between
# makes the page newer than its revision says, never older.
PROJECT_REVISION = RawSQL(
    "(SELECT bit_xor(stamp) FROM dashboard_revision WHERE dashboard_revision.project_id IS NULL "
    "OR dashboard_revision.project_id = dashboard_project.id)",
    (),
    output_field=BigIntegerField(null=True),
)


@dataclass(frozen=True, slots=True)
class SeenRevision:
    """`seen_at`: monotonic seconds before it was read. It was the newest one then, or came after."""

    number: int
    seen_at: float

    @classmethod
    def of(cls, number: int | None, seen_at: float) -> SeenRevision | None:
        """None where nothing was ever written."""
        return None if number is None else cls(number, seen_at)


def read_revision() -> SeenRevision | None:
    """Of everything, for pages of several projects; None where nothing was ever written."""
    seen_at = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT bit_xor(stamp) FROM dashboard_revision")
        return SeenRevision.of(cursor.fetchone()[0], seen_at)


def revise_project(key: int) -> None:
    """Have a project's pages made anew, where what was written is stamped by no trigger."""
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO dashboard_revision (project_id, stamp) VALUES (%s, {STAMP})", [key])  # noqa: S608


def combine_stamps() -> int:
    """Replace many stamps by one for each project, which says the same; return how many went.

    One statement: a reader sees those before or that after. Stamps that are being written stay.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM dashboard_revision")
        count: int = cursor.fetchone()[0]
        if count <= MOST_STAMPS:
            return 0
        cursor.execute(
            "WITH gone AS (DELETE FROM dashboard_revision RETURNING project_id, stamp) "
            "INSERT INTO dashboard_revision (project_id, stamp) "
            "SELECT project_id, bit_xor(stamp) FROM gone GROUP BY project_id"
        )
        return count - int(cursor.rowcount)
