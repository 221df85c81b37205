"""The lines of an archive, checked one by one: what can't be taken is refused with the path of its field."""

from __future__ import annotations

import gzip
import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import IO, Any

import orjson
from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import (
    BooleanField,
    DateTimeField,
    Field,
    FloatField,
    IntegerField,
    JSONField,
    TimeField,
)

from dashboard.archive.tables import (
    FORMAT,
    LATER_TABLES,
    TABLES,
    ArchiveTable,
    archived_fields,
    referred_table,
)
from dashboard.host_protocol import holds_unstorable

LONGEST_LINE = 256 * 1024 * 1024
MOST_ROWS = 2_000_000_000
GZIP_MAGIC = b"\x1f\x8b"
# PostgreSQL keeps others too, and nothing could read the row any more.
EARLIEST, LATEST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)

CheckValue = Callable[[Any], None]


class ArchiveRefused(Exception):  # noqa: N818 - reads as a fact
    """Nothing is imported; the message is one sentence with the path of the offending field."""


class BadValue(Exception):  # noqa: N818 - reads as a fact
    """(the path below a column, what is wrong)"""

    def __init__(self, problem: str, below: str = "") -> None:
        super().__init__(problem)
        self.problem, self.below = problem, below


@dataclass(frozen=True, slots=True)
class TableHead:
    """What a table of an archive says of itself; `fields` are those of its columns."""

    table: ArchiveTable
    fields: tuple[Field[Any, Any], ...]
    rows: int


class ArchiveReader:
    """Read in this order: `read_head` of a table, then all of its rows, then the next one's."""

    def __init__(self, path: Path, report_progress: Callable[[int, int], None] = lambda *_: None) -> None:
        self.path, self._report_progress = path, report_progress
        self._digest = hashlib.sha256()
        self._number = 0
        # The head of a later table, where an older file hasn't the one that was asked for.
        self._later_head: dict[str, Any] | None = None
        try:
            self._size = path.stat().st_size
            self._raw: IO[bytes] = path.open("rb")
        except OSError as error:
            raise ArchiveRefused(f"{path} can't be read: {error.strerror}.") from error
        packed = self._raw.read(2) == GZIP_MAGIC
        self._raw.seek(0)
        self._lines: Any = gzip.GzipFile(fileobj=self._raw) if packed else self._raw
        self._read_header()

    def close(self) -> None:
        self._lines.close()
        self._raw.close()

    def read_head(self, table: ArchiveTable) -> TableHead:
        head = self._later_head or self._next_object(table.name)
        self._later_head = None
        if head.get("table") != table.name:
            if table.name in LATER_TABLES:
                self._later_head = head
                return TableHead(table, archived_fields(table), 0)
            raise self.refuse(f"{table.name}.table", f"is {head.get('table')!r} in line {self._number}")
        rows, columns = head.get("rows"), head.get("columns")
        if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
            raise self.refuse(f"{table.name}.rows", f"is {rows!r}, not a number of rows")
        known = {column.name: column for column in archived_fields(table)}
        if isinstance(columns, list):
            columns = [table.former_columns.get(str(name), name) for name in columns]
        if not isinstance(columns, list) or len(set(map(str, columns))) != len(columns):
            raise self.refuse(f"{table.name}.columns", "isn't a list of names, each once")
        for index, name in enumerate(columns):
            if name not in known:
                raise self.refuse(f"{table.name}.columns[{index}]", f"is {name!r}, which isn't known here")
        for name, column in known.items():
            if name not in columns and not has_default(column):
                raise self.refuse(f"{table.name}.columns", f"lacks {name}")
        return TableHead(table, tuple(known[name] for name in columns), rows)

    def read_rows(self, head: TableHead) -> Iterator[list[Any]]:
        """Its rows, checked but for what they refer to; of a packed table its lines, unchecked."""
        name, width = head.table.name, len(head.fields)
        checks = [(at, column.name, compile_check(column)) for at, column in enumerate(head.fields)]
        if head.table.packed:
            checks = []
        left, number = head.rows, 0
        while left > 0:
            row = self._next_value(f"{name}[{number}]")
            if not isinstance(row, list) or len(row) != width:
                raise self.refuse(f"{name}[{number}]", f"isn't a list of {width} values")
            for at, column, check in checks:
                try:
                    check(row[at])
                except BadValue as bad:
                    raise self.refuse(f"{name}[{number}].{column}{bad.below}", bad.problem) from bad
            number += 1
            left -= len(row[-1]) if head.table.packed and isinstance(row[-1], list) else 1
            yield row
        if left < 0:
            raise self.refuse(f"{name}.rows", f"is {head.rows}, fewer than there are")

    def read_end(self) -> str:
        """The SHA-256 of everything between the first and the last line, which the last one has to name."""
        computed = self._digest.hexdigest()
        last = self._later_head or self._next_object("sha256")
        if last.get("sha256") != computed:
            raise self.refuse("sha256", "isn't that of the file's lines: the file was changed")
        if self._lines.readline(1):
            raise self.refuse("sha256", "isn't the last line")
        return computed

    def refuse(self, where: str, problem: str) -> ArchiveRefused:
        return ArchiveRefused(f"{self.path}: {where} {problem}.")

    def _read_header(self) -> None:
        header = self._next_object("format")
        # Of the tables alone: of the same project exported again it is the same.
        self._digest = hashlib.sha256()
        if header.get("format") != FORMAT:
            raise self.refuse("format", f"is {header.get('format')!r}; this site reads {FORMAT!r}")

    def _next_object(self, where: str) -> dict[str, Any]:
        value = self._next_value(where)
        if not isinstance(value, dict):
            raise self.refuse(where, f"isn't where line {self._number} is: an object is expected")
        return value

    def _next_value(self, where: str) -> Any:
        try:
            line = self._lines.readline(LONGEST_LINE + 1)
        except (OSError, EOFError, ValueError) as error:
            raise self.refuse(where, f"can't be read: {error}") from error
        self._number += 1
        if not line:
            raise self.refuse(where, "is missing: the file ends too early")
        if len(line) > LONGEST_LINE:
            raise self.refuse(where, f"has a line of more than {LONGEST_LINE} bytes")
        if self._number % 500 == 0:
            self._report_progress(self._raw.tell(), self._size)
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self.refuse(where, f"isn't JSON (line {self._number}): {error}") from error
        # The last line tells what those before it have for their digest.
        if not (isinstance(value, dict) and "sha256" in value):
            self._digest.update(line)
        if b"\\u0000" in line and holds_unstorable(value):
            raise self.refuse(where, "holds a NUL character")
        return value


def has_default(column: Field[Any, Any]) -> bool:
    made = getattr(column, "auto_now", False) or getattr(column, "auto_now_add", False)
    return column.null or column.blank or column.has_default() or column.has_db_default() or made


def compile_check(column: Field[Any, Any]) -> CheckValue:
    """A function that raises BadValue for what the column can't hold."""
    if referred_table(column):
        return _allow_null(column, _check_row_number)
    check = _value_check(column)
    return _allow_null(column, check)


def _allow_null(column: Field[Any, Any], check: CheckValue) -> CheckValue:
    def check_value(value: Any) -> None:
        if value is None and column.null:
            return
        check(value)

    return check_value


def _check_row_number(value: Any) -> None:
    if type(value) is not int or value < 0:
        raise BadValue(f"is {value!r}, not the number of a row")


def _value_check(column: Field[Any, Any]) -> CheckValue:
    if isinstance(column, ArrayField):
        return _array_check(compile_check(column.base_field))
    if isinstance(column, JSONField):
        return lambda _value: None
    if isinstance(column, BooleanField):
        return _type_check(bool, "true or false")
    if isinstance(column, IntegerField):
        return _integer_check(*connection.ops.integer_field_range(column.get_internal_type()))
    if isinstance(column, FloatField):
        return _check_float
    if isinstance(column, DateTimeField):
        return _check_timestamp
    if isinstance(column, TimeField):
        return _check_time
    return _text_check(column.max_length, {choice for choice, _ in column.flatchoices})


def _array_check(check_item: CheckValue) -> CheckValue:
    def check(value: Any) -> None:
        if not isinstance(value, list):
            raise BadValue(f"is {short_text(value)}, not a list")
        for index, item in enumerate(value):
            try:
                check_item(item)
            except BadValue as bad:
                raise BadValue(bad.problem, f"[{index}]{bad.below}") from bad

    return check


def _type_check(kind: type, expected: str) -> CheckValue:
    def check(value: Any) -> None:
        if type(value) is not kind:
            raise BadValue(f"is {short_text(value)}, not {expected}")

    return check


def _integer_check(least: int | None, most: int | None) -> CheckValue:
    def check(value: Any) -> None:
        if type(value) is not int:
            raise BadValue(f"is {short_text(value)}, not a whole number")
        if (least is not None and value < least) or (most is not None and value > most):
            raise BadValue(f"is {value}, not from {least} to {most}")

    return check


def _check_float(value: Any) -> None:
    if type(value) not in (float, int) or not math.isfinite(value):
        raise BadValue(f"is {short_text(value)}, not a finite number")


def _check_timestamp(value: Any) -> None:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadValue(f"is {short_text(value)}, not a time with its zone")
    if not EARLIEST <= moment <= LATEST:
        raise BadValue(f"is {short_text(value)}, which no calendar holds in all time zones")


def _check_time(value: Any) -> None:
    try:
        time.fromisoformat(value)
    except (TypeError, ValueError):
        raise BadValue(f"is {short_text(value)}, not a time of day") from None


def _text_check(longest: int | None, choices: set[Any]) -> CheckValue:
    def check(value: Any) -> None:
        if type(value) is not str:
            raise BadValue(f"is {short_text(value)}, not text")
        if longest is not None and len(value) > longest:
            raise BadValue(f"has {len(value)} characters, at most {longest} are allowed")
        if choices and value and value not in choices:
            raise BadValue(f"is {short_text(value)}, none of {', '.join(map(str, sorted(choices)))}")

    return check


def short_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def read_whole(path: Path, report_progress: Callable[[int, int], None]) -> str:
    """Read through a file without keeping anything: its SHA-256, that of its tables."""
    reader = ArchiveReader(path, report_progress)
    try:
        for table in TABLES:
            for _ in reader.read_rows(reader.read_head(table)):
                pass
        return reader.read_end()
    finally:
        reader.close()
