"""One query says which of several lists have rows, so that the empty ones, which most are, are never read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from django.db import connection

from dashboard.postgresql.compiled_queries import CompiledQuery
from dashboard.postgresql.prepared_statements import preparing_statements


def find_nonempty(lists: Mapping[str, CompiledQuery[Any]], *shape: Hashable, **values: Any) -> set[str]:
    """The names of those that have a row, in one query; the others needn't be read."""
    statements = {name: rows.exists_statement(*shape) for name, rows in lists.items()}
    parts = {name: statement for name, statement in statements.items() if statement}
    if not parts:
        return set()
    bound = [part.bind(values, connection) for part in parts.values()]
    with preparing_statements(connection), connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(f'EXISTS ({sql})' for sql, _ in bound)}",
            [parameter for _, parameters in bound for parameter in parameters],
        )
        return {name for name, filled in zip(parts, cursor.fetchone(), strict=True) if filled}


def read_nonempty(
    lists: Mapping[str, CompiledQuery[Any]], *shape: Hashable, **values: Any
) -> dict[str, list[Any]]:
    """The rows of each list; a query for each that has any, and one for all others."""
    filled = find_nonempty(lists, *shape, **values)
    return {name: rows.read_rows(*shape, **values) if name in filled else [] for name, rows in lists.items()}
