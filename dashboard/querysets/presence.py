"""Which of several lists have anything in them: most of what a page could warn of isn't there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet


def find_filled(lists: Mapping[str, QuerySet[Any]]) -> set[str]:
    """The names of those that have a row, in one query; the others needn't be read."""
    names, parts, parameters = [], [], []
    for name, rows in lists.items():
        try:
            statement, values = rows.query.exists().sql_with_params()
        except EmptyResultSet:
            continue
        names.append(name)
        parts.append(f"EXISTS ({statement})")
        parameters.extend(values)
    if not parts:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", parameters)
        return {name for name, filled in zip(names, cursor.fetchone(), strict=True) if filled}


def read_filled(lists: Mapping[str, QuerySet[Any]], most: Mapping[str, int]) -> dict[str, list[Any]]:
    """The first rows of each list, `most` of it; a query for each that has any, and one for all others."""
    filled = find_filled(lists)
    return {name: list(rows[: most[name]]) if name in filled else [] for name, rows in lists.items()}
