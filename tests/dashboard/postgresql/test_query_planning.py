from __future__ import annotations

import pytest
from django.db import connection, connections

from dashboard.postgresql.query_planning import MOST_WEIGHED_JOINS


@pytest.mark.django_db
def test_each_new_connection_plans_quickly() -> None:
    new = connections.create_connection("default")
    try:
        for database in (connection, new):
            with database.cursor() as cursor:
                cursor.execute("SHOW join_collapse_limit")
                assert cursor.fetchone() == (str(MOST_WEIGHED_JOINS),)
                cursor.execute("SHOW jit")
                assert cursor.fetchone() == ("off",)
    finally:
        new.close()
