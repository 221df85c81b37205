"""Rows into their table by COPY: imports have hundreds of thousands of them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Model
from psycopg import sql


def allocate_keys(model: type[Model], count: int) -> array[int]:
    """So many new keys of the table, in ascending order."""
    meta = model._meta
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)",
            [meta.db_table, column_name(meta.pk), count],
        )
        return array("q", (key for (key,) in cursor))


def copy_new_rows(rows: Sequence[Model]) -> None:
    """As `bulk_create` of rows of one model; no default of the database is filled in."""
    if not rows:
        return
    model = type(rows[0])
    fields = model._meta.concrete_fields
    for row, key in zip(rows, allocate_keys(model, len(rows)), strict=True):
        row.pk = key
    statement = copy_statement(model, [column_name(field) for field in fields])
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(
                [field.get_db_prep_save(field.pre_save(row, True), connection) for field in fields]
            )
            row._state.adding, row._state.db = False, connection.alias


def copy_statement(model: type[Model], columns: Sequence[str]) -> sql.Composed:
    return sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(model._meta.db_table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )


def column_name(field: Any) -> str:
    """That of the database; a concrete field always has one."""
    return str(field.column)
