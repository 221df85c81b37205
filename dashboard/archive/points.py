"""The points of an archive into their table: lines of many points each, checked and written by columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
from django.db import connection

from dashboard.archive.reading import ArchiveRefused, BadValue, TableHead, compile_check
from dashboard.postgresql.point_copy import COPY_POINTS, HEADER, TRAILER, Integers, PointRows, encode_points

Refuse = Callable[[str, str], ArchiveRefused]
NUMBERS = frozenset({int, float})
NUMBERS_OR_NULL = NUMBERS | {type(None)}
POSITIONS_END = 2**31


def copy_points(
    head: TableHead, lines: Iterator[list[Any]], keys: Mapping[str, array[int]], refuse: Refuse
) -> None:
    names = [column.name for column in head.fields]
    if names != ["series", "position", "run", "value", "low", "high", "samples", "tainted"]:
        raise refuse("point.columns", f"is {names}, not the columns of a series in their order")
    series, runs = (np.array(keys[name], dtype=np.int64) for name in ("series", "run"))
    with (
        trusted_references(),
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(COPY_POINTS) as copy,
    ):
        copy.write(HEADER)
        for number, line in enumerate(lines):
            rows = read_rows(head, line, series, runs, f"point[{number}]", refuse)
            for encoded in encode_points(rows):
                copy.write(encoded)
        copy.write(TRAILER)


def read_rows(
    head: TableHead, line: list[Any], series_keys: Integers, run_keys: Integers, where: str, refuse: Refuse
) -> PointRows:
    """The points of a line with the keys they have here; refuses what isn't lists of one length of values."""
    series, *lists = line
    if type(series) is not int or not 0 <= series < len(series_keys):
        raise refuse(f"{where}.series", f"is {series!r}, and there is no such row")
    count = len(lists[-1]) if isinstance(lists[-1], list) else 1
    for column, values in zip(head.fields[1:], lists, strict=True):
        if not isinstance(values, list) or len(values) != count or not count:
            raise refuse(f"{where}.{column.name}", f"isn't a list of {max(count, 1)} values")
    rows = read_plain_rows(int(series_keys[series]), lists, run_keys)
    if rows is None:
        raise find_bad_value(head, lists, len(run_keys), where, refuse)
    return rows


def read_plain_rows(series: int, lists: list[list[Any]], run_keys: Integers) -> PointRows | None:
    """All columns at once, read fast; None where a value isn't as it should be."""
    positions, run, values, lows, highs, samples, tainted = lists
    if not (
        set(map(type, positions)) == set(map(type, run)) == {int}
        and set(map(type, samples)) == {list}
        and set(map(type, tainted)) == {bool}
        and 0 <= min(positions) <= max(positions) < POSITIONS_END
        and 0 <= min(run) <= max(run) < len(run_keys)
    ):
        return None
    drawn = list(chain.from_iterable(samples))
    if not (
        set(map(type, values)) | set(map(type, drawn)) <= NUMBERS
        and set(map(type, lows)) | set(map(type, highs)) <= NUMBERS_OR_NULL
    ):
        return None
    counts = np.fromiter(map(len, samples), np.int64, len(samples))
    numbers, flat = np.array(values, np.float64), np.array(drawn, np.float64)
    # Of what isn't there it makes NaN, which no file can hold.
    bounds = np.array(lows, np.float64), np.array(highs, np.float64)
    if not (np.isfinite(numbers).all() and np.isfinite(flat).all() and not np.isinf(bounds).any()):
        return None
    table = np.zeros((len(samples), int(counts.max())))
    table[np.arange(table.shape[1]) < counts[:, None]] = flat
    return PointRows(
        series=np.full(len(positions), series, np.int64),
        positions=np.array(positions, np.int64),
        runs=run_keys[np.array(run, np.int64)],
        values=numbers,
        lows=bounds[0],
        highs=bounds[1],
        samples=table,
        counts=counts,
        tainted=np.array(tainted, np.bool_),
    )


def find_bad_value(
    head: TableHead, lists: list[list[Any]], runs: int, where: str, refuse: Refuse
) -> ArchiveRefused:
    """The refusal of the first value that its column can't hold: each is looked at."""
    for column, values in zip(head.fields[1:], lists, strict=True):
        check = compile_check(column)
        for index, value in enumerate(values):
            try:
                check(value)
            except BadValue as bad:
                return refuse(f"{where}.{column.name}[{index}]{bad.below}", bad.problem)
            if column.name == "run" and value >= runs:
                return refuse(f"{where}.run[{index}]", f"is {value}, and there is no such row")
    return refuse(where, "holds a value that no point can have")


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
