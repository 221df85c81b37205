"""A project as the lines of an archive, read in one snapshot and never held whole in memory."""

from __future__ import annotations

import hashlib
import json
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson
from django.db import connection, transaction
from django.utils import timezone

from dashboard.archive.tables import (
    FORMAT,
    POINT,
    TABLES,
    ArchiveTable,
    archived_fields,
    referred_table,
    referred_tables,
)
from dashboard.models import Project

# So many rows are fetched at once, and so many points of a series stand in one line.
FETCHED_ROWS = 1000
POINTS_PER_LINE = 1000
SERIES_PER_QUERY = 200
COMPRESSED_AT_ONCE = 1 << 16
GZIP = 16 + zlib.MAX_WBITS

ReportProgress = Callable[[int, int], None]


class RowNumbers:
    """The number of each row in its table of the archive by its key in the database: 8 bytes a row."""

    def __init__(self, keys: Iterable[int], *, ascending: bool) -> None:
        self.keys = array("q", keys)
        self._numbers = None if ascending else {key: number for number, key in enumerate(self.keys)}

    def find_number(self, key: int | None) -> int | None:
        """None for no row, and for one that isn't in the archive."""
        if key is None:
            return None
        if self._numbers is not None:
            return self._numbers.get(key)
        number = bisect_left(self.keys, key)
        return number if number < len(self.keys) and self.keys[number] == key else None


def archive_name(project: Project) -> str:
    return f"{project.slug}.paceline.jsonl.gz"


def compress_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines as gzip, in pieces."""
    packer = zlib.compressobj(6, zlib.DEFLATED, GZIP)
    waiting = bytearray()
    for line in lines:
        waiting += line
        if len(waiting) >= COMPRESSED_AT_ONCE:
            yield packer.compress(bytes(waiting))
            waiting.clear()
    yield packer.compress(bytes(waiting)) + packer.flush()


def write_archive(project: Project, report_progress: ReportProgress = lambda *_: None) -> Iterator[bytes]:
    """The lines of the project's archive. `report_progress` gets (tables written, tables)."""
    yield encode_line({"format": FORMAT, "project": project.slug, "exported_at": timezone.now()})
    digest = hashlib.sha256()
    # Within somebody else's transaction the snapshot is theirs.
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        numbers: dict[str, RowNumbers] = {}
        for done, table in enumerate(TABLES, start=1):
            for line in _table_lines(table, project, numbers):
                digest.update(line)
                yield line
            report_progress(done, len(TABLES))
    yield encode_line({"sha256": digest.hexdigest()})


def encode_line(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # An integer beyond 64 bits: Postgres writes 1e20 so.
        return json.dumps(value, default=str, separators=(",", ":")).encode() + b"\n"


def _table_lines(table: ArchiveTable, project: Project, numbers: dict[str, RowNumbers]) -> Iterator[bytes]:
    rows = table.select_rows(project)
    if table.name in referred_tables():
        keys = rows.values_list("pk", flat=True).iterator(FETCHED_ROWS)
        numbers[table.name] = RowNumbers(keys, ascending=bool(table.project_path))
        count = len(numbers[table.name].keys)
    else:
        count = rows.order_by().count()
    fields = archived_fields(table)
    yield encode_line({"table": table.name, "columns": [column.name for column in fields], "rows": count})
    if table.packed:
        yield from _point_lines(numbers)
        return
    lookups = [numbers[found.name] if (found := referred_table(column)) else None for column in fields]
    columns = [table.expressions.get(column.name, column.attname) for column in fields]
    for row in rows.values_list(*columns).iterator(FETCHED_ROWS):
        yield encode_line(
            [
                value if lookup is None else lookup.find_number(value)
                for value, lookup in zip(row, lookups, strict=True)
            ]
        )


def _point_lines(numbers: dict[str, RowNumbers]) -> Iterator[bytes]:
    """Of each series its points by their runs, column by column: the series, and a list of each other one."""
    fields = [column.attname for column in archived_fields(POINT)]
    series, find_run = numbers["series"], numbers["run"].find_number
    run_at = fields.index("run_id")
    for start in range(0, len(series.keys), SERIES_PER_QUERY):
        some = series.keys[start : start + SERIES_PER_QUERY].tolist()
        points = POINT.model._default_manager.filter(POINT.rows, series__in=some)
        rows = points.order_by("series_id", "run_id").values_list(*fields).iterator(FETCHED_ROWS)
        for key, group in groupby(rows, itemgetter(0)):
            number = series.find_number(key)
            while chunk := _take_rows(group, POINTS_PER_LINE):
                columns = [list(column) for column in zip(*chunk, strict=True)]
                columns[run_at] = [find_run(run) for run in columns[run_at]]
                yield encode_line([number, *columns[1:]])


def _take_rows(rows: Iterator[Any], most: int) -> list[Any]:
    return [row for _, row in zip(range(most), rows, strict=False)]
