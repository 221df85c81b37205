"""The triggers that stamp what is written: made after each `migrate`, for the tables that there are then.

A new table has them by itself. A row whose project isn't known counts for all pages.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.apps import AppConfig
from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper

from dashboard.page_cache.revisions import STAMP
from dashboard.page_cache.tables import SEEN_COLUMN, SILENCE, UNSHOWN_COLUMNS, ShownTable, list_shown_tables

REVISIONS = "dashboard_revision"
# Names the function that carries, as its comment, what the triggers were made from.
EVERYTHING = "paceline_revise_everything"
TRIGGERS = ("revise_insert", "revise_update", "revise_delete", "revise_truncate")


def install_triggers(using: str = "default", **_signal: Any) -> None:
    """Receiver of `post_migrate`: nothing is done where they are there already."""
    connection = connections[using]
    with transaction.atomic(using=using), connection.cursor() as cursor:
        existing = set(connection.introspection.table_names(cursor))
        if REVISIONS not in existing:
            return
        tables = [table for table in list_shown_tables() if _needed_tables(table) <= existing]
        statements = [
            _function_for_everything(),
            *(part for table in tables for part in _table_triggers(cursor, table)),
        ]
        digest = hashlib.sha256("\n".join(statements).encode()).hexdigest()
        names = {(table.name, trigger) for table in tables for trigger in TRIGGERS}
        if _installed_digest(cursor) == digest and names <= installed_triggers(cursor):
            return
        for statement in statements:
            cursor.execute(statement)
        cursor.execute(f"COMMENT ON FUNCTION {EVERYTHING}() IS '{digest}'")
        # What was written before counts as one thing that was.
        cursor.execute(f"INSERT INTO {REVISIONS} (project_id, stamp) VALUES (NULL, {STAMP})")  # noqa: S608


def connect_installation(config: AppConfig) -> None:
    from django.db.models.signals import post_migrate

    post_migrate.connect(install_triggers, sender=config, dispatch_uid="page_cache.triggers")


def installed_triggers(cursor: CursorWrapper) -> set[tuple[str, str]]:
    """(table, trigger) of each that is there."""
    cursor.execute(
        "SELECT relname, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE tgname = ANY(%s)",
        [list(TRIGGERS)],
    )
    return {(table, trigger) for table, trigger in cursor.fetchall()}


def _installed_digest(cursor: CursorWrapper) -> str:
    cursor.execute("SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE proname = %s", [EVERYTHING])
    row = cursor.fetchone()
    return (row[0] or "") if row else ""


def _needed_tables(table: ShownTable) -> set[str]:
    return {table.name, *(join.table for join in table.joins)}


def _function_for_everything() -> str:
    return (
        f"CREATE OR REPLACE FUNCTION {EVERYTHING}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "  # noqa: S608
        f"INSERT INTO {REVISIONS} (project_id, stamp) VALUES (NULL, {STAMP}); RETURN NULL; END $$"
    )


def _table_triggers(cursor: CursorWrapper, table: ShownTable) -> list[str]:
    """The statements. Updates of tables with unshown columns are looked at row by row."""
    unshown = UNSHOWN_COLUMNS.get(table.name)
    function, by_row = f"paceline_revise_{table.name}", f"paceline_revise_row_{table.name}"
    statements = [
        _stamping_function(function, table, "changed"),
        _trigger_statement(
            table,
            "insert",
            f"REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
        ),
        _trigger_statement(
            table,
            "delete",
            f"REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
        ),
        _trigger_statement(table, "truncate", f"FOR EACH STATEMENT EXECUTE FUNCTION {EVERYTHING}()"),
    ]
    if unshown is None:
        rows = f"REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
        return [*statements, _trigger_statement(table, "update", rows)]
    condition = _shown_difference(cursor, table.name, unshown)
    return [
        *statements,
        _stamping_function(by_row, table, "(SELECT NEW.*)"),
        _trigger_statement(table, "update", f"FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {by_row}()"),
    ]


def _trigger_statement(table: ShownTable, event: str, rest: str) -> str:
    """Dropped first: what it was before may have been of another kind."""
    name = f"revise_{event}"
    return (
        f'DROP TRIGGER IF EXISTS {name} ON "{table.name}"; '
        f'CREATE TRIGGER {name} AFTER {event.upper()} ON "{table.name}" {rest}'
    )


def _stamping_function(name: str, table: ShownTable, rows: str) -> str:
    """A stamp for each project that the rows are of. A way that ends nowhere gives NULL: any project."""
    source, joins = "changed_row", ""
    for number, join in enumerate(table.joins):
        joins += f' LEFT JOIN "{join.table}" j{number} ON j{number}."{join.key}" = {source}."{join.source}"'
        source = f"j{number}"
    project = f'{source}."{table.project_column}"' if table.project_column else "NULL::bigint"
    return (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "  # noqa: S608
        f"INSERT INTO {REVISIONS} (project_id, stamp) SELECT found.project, {STAMP} "
        f"FROM (SELECT DISTINCT {project} AS project FROM {rows} changed_row{joins}) found; "
        "RETURN NULL; END $$"
    )


def _shown_difference(cursor: CursorWrapper, table: str, unshown: frozenset[str]) -> str:
    cursor.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() "
        "AND table_name = %s ORDER BY ordinal_position",
        [table],
    )
    columns = [name for (name,) in cursor.fetchall()]
    shown = [f'OLD."{name}" IS DISTINCT FROM NEW."{name}"' for name in columns if name not in unshown]
    if SEEN_COLUMN in unshown:
        longer = f"NEW.{SEEN_COLUMN} - OLD.{SEEN_COLUMN} > interval '{SILENCE}'"
        shown.append(f"coalesce({longer}, true)")
    return " OR ".join(shown)
