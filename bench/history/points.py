"""Points into the database by COPY: two million in some ten seconds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

NULL = r"\N"
COLUMNS = ("series_id", "position", "run_id", "value", "low", "high", "samples", "tainted")


def copy_points(blocks: Iterable[str]) -> None:
    """Each block holds lines of COPY's text format."""
    from django.db import connection

    with connection.cursor() as cursor:
        command = f"COPY dashboard_point ({', '.join(COLUMNS)}) FROM STDIN"
        with cursor.cursor.copy(command) as copy:
            for block in blocks:
                copy.write(block)


def format_points(
    series: int,
    positions: np.ndarray,
    runs: np.ndarray,
    samples: np.ndarray,
    tainted: np.ndarray,
    *,
    exact: bool,
) -> str:
    """The lines of one series: value is the median of the repetitions, the interval their extremes."""
    ordered = np.sort(samples, axis=1)
    values = ordered[:, ordered.shape[1] // 2].tolist()
    lows, highs = ordered[:, 0].tolist(), ordered[:, -1].tolist()
    rows = zip(
        positions.tolist(),
        runs.tolist(),
        values,
        lows,
        highs,
        samples.tolist(),
        tainted.tolist(),
        strict=True,
    )
    return "".join(
        f"{series}\t{position}\t{run}\t{value!r}\t{NULL if exact else repr(low)}\t"
        f"{NULL if exact else repr(high)}\t{{{','.join(map(repr, row))}}}\t{'t' if taint else 'f'}\n"
        for position, run, value, low, high, row, taint in rows
    )
