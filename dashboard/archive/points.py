"""The points of an archive into their table: lines of many points each, written as the text of a COPY."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
from django.db import connection

from dashboard.archive.reading import ArchiveRefused, BadValue, TableHead, compile_check
from dashboard.copying import column_name, copy_statement

Refuse = Callable[[str, str], ArchiveRefused]
NUMBERS = frozenset({int, float})
POSITIONS_END = 2**31
NULL = rb"\N"


def copy_points(
    head: TableHead, lines: Iterator[list[Any]], keys: Mapping[str, array[int]], refuse: Refuse
) -> None:
    names = [column.name for column in head.fields]
    if names != ["series", "position", "run", "value", "low", "high", "samples", "tainted"]:
        raise refuse("point.columns", f"is {names}, not the columns of a series in their order")
    columns = [column_name(column) for column in head.fields]
    statement = copy_statement(head.table.model, columns)
    with (
        trusted_references(),
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(statement) as copy,
    ):
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


def format_line(line: list[Any], keys: Mapping[str, array[int]]) -> bytes:
    """The points of a checked line as rows of a COPY: orjson writes numbers ten times as fast as `repr`."""
    series, positions, run, values, lows, highs, samples, tainted = line
    runs = keys["run"]
    columns = (
        format_numbers(positions),
        format_numbers([runs[number] for number in run]),
        format_numbers(values),
        format_numbers(lows),
        format_numbers(highs),
        # `[[1.0,2.0],[]]` -> `1.0,2.0`, ``
        (b"{%b}" % text for text in orjson.dumps(samples)[2:-2].split(b"],[")),
        (b"t" if value else b"f" for value in tainted),
    )
    first = b"%d\t" % keys["series"][series]
    return b"".join([first + b"\t".join(row) + b"\n" for row in zip(*columns, strict=True)])


def format_numbers(values: list[Any]) -> list[bytes]:
    return orjson.dumps(values)[1:-1].replace(b"null", NULL).split(b",")


@contextmanager
def trusted_references() -> Iterator[None]:
    """Within it the database doesn't look up again what a row refers to, where this site's role may say so.

    Every key was made in the same transaction: the look-ups take more time than all the rest.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_parameter_privilege('session_replication_role', 'set')")
        if not cursor.fetchone()[0]:
            yield
            return
        # Also without the triggers that stamp what pages show: the series and runs have theirs.
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
