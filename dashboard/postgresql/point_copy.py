"""Points as rows of a binary COPY: numpy lays out many rows at once, and the database parses no number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

COPY_POINTS = sql.SQL(
    "COPY dashboard_point (series_id, position, run_id, value, low, high, samples, tainted) "
    "FROM STDIN (FORMAT BINARY)"
)
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
FIELDS = 8
NULL_LENGTH = -1
FLOAT8 = 701  # The type's number in every PostgreSQL.

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PointRows:
    """Columns of equal length. NaN in `lows` or `highs` is NULL; `samples` has `counts` in each row."""

    series: Integers
    positions: Integers
    runs: Integers
    values: Floats
    lows: Floats
    highs: Floats
    samples: Floats
    counts: Integers
    tainted: NDArray[np.bool_]


def encode_points(rows: PointRows) -> Iterator[bytes]:
    """The rows as the database takes them, those of one layout together."""
    has_low, has_high = ~np.isnan(rows.lows), ~np.isnan(rows.highs)
    layouts = rows.counts * 4 + has_low * 2 + has_high
    for layout in np.unique(layouts).tolist():
        chosen = slice(None) if (layouts == layout).all() else np.flatnonzero(layouts == layout)
        yield _encode_layout(rows, chosen, bool(layout & 2), bool(layout & 1), layout >> 2)


def _encode_layout(
    rows: PointRows, chosen: slice | Integers, has_low: bool, has_high: bool, samples: int
) -> bytes:
    series = rows.series[chosen]
    packed = np.zeros(len(series), _row_type(has_low, has_high, samples))
    packed["fields"] = FIELDS
    columns = {
        "series": series,
        "position": rows.positions[chosen],
        "run": rows.runs[chosen],
        "value": rows.values[chosen],
        "low": rows.lows[chosen] if has_low else None,
        "high": rows.highs[chosen] if has_high else None,
    }
    for name, column in columns.items():
        if column is None:
            packed[f"{name}_length"] = NULL_LENGTH
        else:
            packed[f"{name}_length"] = packed.dtype[name].itemsize
            packed[name] = column
    packed["samples_length"] = packed.dtype["samples"].itemsize
    array = packed["samples"]
    array["type"] = FLOAT8
    if samples:
        array["dimensions"], array["size"], array["first"] = 1, samples, 1
        array["items"]["length"] = 8
        array["items"]["value"] = rows.samples[chosen, :samples]
    packed["tainted_length"] = 1
    packed["tainted"] = rows.tainted[chosen]
    return packed.tobytes()


@cache
def _row_type(has_low: bool, has_high: bool, samples: int) -> np.dtype[np.void]:
    """One row: the number of its fields, then each field's length and its bytes, all big-endian."""
    item = np.dtype([("length", ">i4"), ("value", ">f8")])
    array: list[Any] = [("dimensions", ">i4"), ("has_null", ">i4"), ("type", ">i4")]
    if samples:
        array += [("size", ">i4"), ("first", ">i4"), ("items", item, (samples,))]
    columns: list[tuple[str, Any]] = [
        *(("series", ">i8"), ("position", ">i4"), ("run", ">i8"), ("value", ">f8")),
        ("low", ">f8" if has_low else None),
        ("high", ">f8" if has_high else None),
        *(("samples", np.dtype(array)), ("tainted", "?")),
    ]
    fields: list[Any] = [("fields", ">i2")]
    for name, kind in columns:
        fields.append((f"{name}_length", ">i4"))
        if kind is not None:
            fields.append((name, kind))
    return np.dtype(fields)
