"""The points of an archive into their table: lines of many points each, written as the text of a COPY."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.db import connection
from psycopg import sql

from dashboard.archive.columns import copy_statement
from dashboard.archive.reading import ArchiveRefused, BadValue, TableHead, compile_check
from dashboard.archive.tables import column_name

Refuse = Callable[[str, str], ArchiveRefused]
NUMBERS = frozenset({int, float})
POSITIONS_END = 2**31
NULL = r"\N"


def copy_points(
    head: TableHead, lines: Iterator[list[Any]], keys: Mapping[str, array[int]], refuse: Refuse
) -> None:
    names = [column.name for column in head.fields]
    if names != ["series", "position", "run", "value", "low", "high", "samples", "tainted"]:
        raise refuse("point.columns", f"is {names}, not the columns of a series in their order")
    columns = [column_name(column) for column in head.fields]
    statement: sql.Composed = copy_statement(head.table, columns, {}, None)
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for number, line in enumerate(lines):
            check_line(head, line, keys, f"point[{number}]", refuse)
            copy.write(format_line(line, keys))


def check_line(
    head: TableHead, line: list[Any], keys: Mapping[str, array[int]], where: str, refuse: Refuse
) -> None:
    """Refuse what isn't a number of a series and lists of one length, each of a column's values."""
    series, *lists = line
    if type(series) is not int or not 0 <= series < len(keys["series"]):
        raise refuse(f"{where}.series", f"is {series!r}, and there is no such row")
    count = len(lists[-1]) if isinstance(lists[-1], list) else 1
    for column, values in zip(head.fields[1:], lists, strict=True):
        if not isinstance(values, list) or len(values) != count or not count:
            raise refuse(f"{where}.{column.name}", f"isn't a list of {max(count, 1)} values")
    if is_plain(lists, len(keys["run"])):
        return
    for column, values in zip(head.fields[1:], lists, strict=True):
        check = compile_check(column)
        for index, value in enumerate(values):
            try:
                check(value)
            except BadValue as bad:
                raise refuse(f"{where}.{column.name}[{index}]{bad.below}", bad.problem) from bad
            if column.name == "run" and value >= len(keys["run"]):
                raise refuse(f"{where}.run[{index}]", f"is {value}, and there is no such row")


def is_plain(lists: list[list[Any]], runs: int) -> bool:
    """Whether all values are as they should be, told fast; else each is looked at, to name the bad one."""
    positions, run, values, lows, highs, samples, tainted = lists
    bounds = [bound for bound in (*lows, *highs) if bound is not None]
    drawn = [sample for some in samples if type(some) is list for sample in some]
    return (
        set(map(type, positions)) == set(map(type, run)) == {int}
        and 0 <= min(positions) <= max(positions) < POSITIONS_END
        and 0 <= min(run) <= max(run) < runs
        and all(type(some) is list for some in samples)
        and set(map(type, tainted)) == {bool}
        and all(set(map(type, numbers)) <= NUMBERS for numbers in (values, bounds, drawn))
        and all(map(math.isfinite, (*values, *bounds, *drawn)))
    )


def format_line(line: list[Any], keys: Mapping[str, array[int]]) -> str:
    """The points of a checked line as rows of a COPY."""
    runs, series = keys["run"], keys["series"][line[0]]
    return "".join(
        [
            f"{series}\t{position}\t{runs[run]}\t{value!r}\t"
            f"{NULL if low is None else repr(low)}\t{NULL if high is None else repr(high)}\t"
            f"{{{','.join(map(repr, samples))}}}\t{'t' if tainted else 'f'}\n"
            for position, run, value, low, high, samples, tainted in zip(*line[1:], strict=True)
        ]
    )
