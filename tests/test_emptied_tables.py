"""A test that committed leaves no row to the next one."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import connection, transaction

from dashboard.models import Project, Revision
from tests import emptied_tables
from tests.dashboard import factories


def filled_models() -> set[str]:
    # Stamps of what was written are rows too: they say only that a page is to be made anew.
    models = [model for model in apps.get_models() if model is not Revision]
    return {model._meta.db_table for model in models if model._default_manager.exists()}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_", range(2))
def test_rows_that_hold_each_other_are_gone(_: int) -> None:
    assert filled_models() == {"django_content_type", "auth_permission"}
    permissions = Permission.objects.count()
    line = factories.create_commits(factories.create_project(), 8)
    factories.create_regression(line, 4, "step_time", 5)
    assert Project.objects.count() == 1
    emptied_tables.empty_tables()
    assert filled_models() == {"django_content_type", "auth_permission"}
    assert Permission.objects.count() == permissions
    # What the end of the test removes.
    factories.create_project()


@pytest.mark.django_db(transaction=True)
def test_revisions_that_were_rolled_back_take_no_room() -> None:
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute("INSERT INTO dashboard_revision (stamp) SELECT generate_series(1, 9999)")
        transaction.set_rollback(True)
    before = revision_bytes()
    emptied_tables.remove_dead_revisions()
    assert revision_bytes() < before / 2


def revision_bytes() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_size('dashboard_revision')")
        return int(cursor.fetchone()[0])
