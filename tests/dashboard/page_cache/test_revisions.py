"""No write goes unnoticed: each table that pages show stamps what is written to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import connection, connections, transaction

from dashboard.models import Heartbeat, Machine, Point, Project, Revision, Run, Series
from dashboard.page_cache.database_triggers import TRIGGERS, install_triggers, installed_triggers
from dashboard.page_cache.revisions import MOST_STAMPS, PROJECT_REVISION, combine_stamps, read_revision
from dashboard.page_cache.tables import APPS, UNSHOWN_COLUMNS, UNSHOWN_TABLES, list_shown_tables
from tests.pages import builders
from tests.pages.test_queries import fill_site

ROW_LEVEL = set(UNSHOWN_COLUMNS)


def newest_revision() -> int:
    seen = read_revision()
    assert seen
    return seen.number


def project_revision(project: Project) -> int:
    return Project.objects.annotate(revision=PROJECT_REVISION).get(pk=project.pk).revision


@pytest.mark.django_db
def test_every_table_of_the_site_has_its_triggers() -> None:
    tables = {
        model._meta.db_table
        for label in APPS
        for model in apps.get_app_config(label).get_models(include_auto_created=True)
    }
    with connection.cursor() as cursor:
        installed = installed_triggers(cursor)
    assert installed == {(table, trigger) for table in tables - UNSHOWN_TABLES for trigger in TRIGGERS}
    assert tables >= UNSHOWN_TABLES | set(UNSHOWN_COLUMNS)


@pytest.mark.django_db
def test_triggers_that_are_there_are_left_alone_and_a_lost_one_is_made_again() -> None:
    before = Revision.objects.count()
    install_triggers()
    assert Revision.objects.count() == before
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER revise_update ON dashboard_point")
        install_triggers()
        assert ("dashboard_point", "revise_update") in installed_triggers(cursor)


def list_filled_tables() -> Iterator[tuple[str, str]]:
    """(table, a column of it whose value is written again)."""
    for table in list_shown_tables():
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{table.name}")')  # noqa: S608
            if cursor.fetchone()[0]:
                columns = connection.introspection.get_table_description(cursor, table.name)
                yield table.name, columns[-1].name


@pytest.mark.django_db
def test_a_write_to_any_table_is_another_revision() -> None:
    fill_site(3)
    filled = list(list_filled_tables())
    assert len(filled) > 20
    for table, column in filled:
        before = newest_revision()
        with connection.cursor() as cursor:
            cursor.execute(f'UPDATE "{table}" SET "{column}" = "{column}"')  # noqa: S608
        # Where some columns don't count, what was written is looked at.
        assert (newest_revision() == before) is (table in ROW_LEVEL), table


@pytest.mark.django_db
def test_a_write_in_one_project_leaves_the_pages_of_others() -> None:
    ours = builders.create_history("ours", 2)
    other = builders.create_history("other", 2)
    revisions = project_revision(ours), project_revision(other), newest_revision()
    Point.objects.filter(series__configuration__case__project=ours).update(tainted=True)
    assert project_revision(ours) != revisions[0]
    assert project_revision(other) == revisions[1]
    assert newest_revision() != revisions[2]
    Machine.objects.update(state=Machine.State.PAUSED)
    assert project_revision(other) != revisions[1]


@pytest.mark.django_db
def test_a_row_whose_project_is_gone_counts_for_all() -> None:
    ours, other = builders.create_history("ours", 2), builders.create_history("other", 2)
    revision = project_revision(other)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute("DELETE FROM dashboard_case WHERE project_id = %s", [ours.pk])
        assert project_revision(other) == revision
        cursor.execute(
            "DELETE FROM dashboard_configuration WHERE NOT EXISTS "
            "(SELECT FROM dashboard_case c WHERE c.id = case_id)"
        )
    assert project_revision(other) != revision
    transaction.set_rollback(True)


@pytest.mark.django_db
def test_a_heartbeat_is_no_change_unless_it_ends_a_silence() -> None:
    run = builders.create_only_run(Run.State.MEASURING)
    machine = builders.create_machine()
    Heartbeat.objects.create(name="scheduler", seen_at=machine.seen_at)
    before = newest_revision()
    Run.objects.filter(pk=run.pk).update(lease_until=machine.seen_at)
    run.case.project.note_reading()
    with connection.cursor() as cursor:
        for seconds in (10, 10):
            cursor.execute(
                "UPDATE dashboard_machine SET seen_at = seen_at + %s * interval '1 second'", [seconds]
            )
        assert newest_revision() == before
        cursor.execute("UPDATE dashboard_machine SET seen_at = seen_at + interval '2 minutes'")
    assert newest_revision() != before
    before = newest_revision()
    Run.objects.filter(pk=run.pk).update(progress=0.5)
    assert newest_revision() != before


@pytest.mark.django_db
def test_stamps_that_are_combined_say_the_same() -> None:
    ours, other = builders.create_history("ours", 2), builders.create_project("other")
    Revision.objects.bulk_create(Revision(project_id=other.pk, stamp=number) for number in range(MOST_STAMPS))
    revisions = project_revision(ours), project_revision(other), newest_revision()
    assert combine_stamps() > MOST_STAMPS
    assert (project_revision(ours), project_revision(other), newest_revision()) == revisions
    assert combine_stamps() == 0


@pytest.mark.django_db(transaction=True)
def test_what_commits_later_is_another_revision_whoever_began_first() -> None:
    """A counter that both raise would show the second writer's number while the first hasn't committed."""
    project = builders.create_history("snake", 2)
    series = Series.objects.first()
    assert series is not None
    with connection.cursor() as first:
        first.execute("BEGIN")
        first.execute("UPDATE dashboard_series SET headline = NOT headline WHERE id = %s", [series.pk])
        second = connections.create_connection("default")
        try:
            with second.cursor() as cursor:
                cursor.execute("UPDATE dashboard_project SET branch = 'trunk' WHERE id = %s", [project.pk])
                cursor.execute("SELECT bit_xor(stamp) FROM dashboard_revision")
                (before,) = cursor.fetchone()
                first.execute("COMMIT")
                cursor.execute("SELECT bit_xor(stamp) FROM dashboard_revision")
                assert cursor.fetchone()[0] != before
        finally:
            second.close()
