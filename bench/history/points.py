"""Points into the database by COPY, run after run as they are measured: a million in some ten seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench.history.values import REPETITIONS, SeriesKind
from dashboard.postgresql.point_copy import COPY_POINTS, HEADER, TRAILER, PointRows, encode_points


def copy_points(parts: Iterable[PointRows]) -> None:
    from django.db import connection

    with connection.cursor() as cursor, cursor.cursor.copy(COPY_POINTS) as copy:
        copy.write(HEADER)
        for rows in parts:
            for encoded in encode_points(rows):
                copy.write(encoded)
        copy.write(TRAILER)


def lay_out_points(
    series: Sequence[int],
    kinds: Sequence[SeriesKind],
    samples: np.ndarray,
    runs: np.ndarray,
    positions: np.ndarray,
    tainted: np.ndarray,
) -> PointRows:
    """The points of so many runs, run by run; `samples` are (runs, series, REPETITIONS).

    A value is the median of the repetitions, its interval their extremes; an exact series has two, all alike.
    """
    count, width = samples.shape[:2]
    exact = np.array([kind.exact for kind in kinds])
    ordered = np.sort(samples, axis=2)
    unknown = np.broadcast_to(exact, (count, width))
    return PointRows(
        series=np.tile(np.asarray(series, dtype=np.int64), count),
        positions=np.repeat(positions, width),
        runs=np.repeat(runs, width),
        values=ordered[:, :, REPETITIONS // 2].ravel(),
        lows=np.where(unknown, np.nan, ordered[:, :, 0]).ravel(),
        highs=np.where(unknown, np.nan, ordered[:, :, -1]).ravel(),
        samples=samples.reshape(count * width, REPETITIONS),
        counts=np.tile(np.where(exact, 2, REPETITIONS), count),
        tainted=np.repeat(tainted, width),
    )
