"""The columns of an archive's table as those of a COPY: what the file holds, and what it leaves out."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import Field, FloatField, JSONField
from django.utils import timezone
from psycopg.types.json import Jsonb

from dashboard.archive.reading import TableHead
from dashboard.archive.tables import ArchiveTable, referred_table
from dashboard.models import Project
from dashboard.postgresql.bulk_copy import column_name

Convert = Callable[[Any], Any]


def value_converter(column: Field[Any, Any], keys: Mapping[str, array[int]]) -> Convert:
    """A checked value of a file as psycopg takes it; a number of a row that isn't there raises IndexError."""
    if found := referred_table(column):
        rows = keys[found.name]
        return lambda number: None if number is None else rows[number]
    if isinstance(column, ArrayField) and isinstance(column.base_field, FloatField):
        # A list of whole and broken numbers would be an array of two types.
        return lambda values: [None if value is None else float(value) for value in values]
    if isinstance(column, JSONField):
        return lambda value: None if value is None and column.null else Jsonb(value)
    return lambda value: value


def fill_columns(head: TableHead, project: Project) -> dict[str, Callable[[], Any]]:
    """By their columns what makes the values of the fields that the file doesn't hold."""
    present = {column.name for column in head.fields}
    filled: dict[str, Callable[[], Any]] = {}
    for column in head.table.model._meta.concrete_fields:
        if column.name in present or column.has_db_default() or column is head.table.model._meta.auto_field:
            continue
        filled[column_name(column)] = _value_maker(column, head.table, project)
    return filled


def _value_maker(column: Field[Any, Any], table: ArchiveTable, project: Project) -> Callable[[], Any]:
    if column.name in table.imported_as:
        value = table.imported_as[column.name]
        return lambda: value
    if column.related_model is Project:
        return lambda: project.pk
    if getattr(column, "auto_now", False) or getattr(column, "auto_now_add", False):
        now = timezone.now()
        return lambda: now
    if isinstance(column, JSONField):
        return lambda: None if column.null else Jsonb(column.get_default())
    return column.get_default
