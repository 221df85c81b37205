"""How fast results come in: an archive of a large project, and a CSV file, into an empty site."""

from __future__ import annotations

import hashlib
import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.lines import Line, format_part
from bench.scratch_site import scratch_site

CASES, METRICS, PHASES = 20, 5, 5
SAMPLES = 5
CSV_ROWS_PER_COMMIT = 50
TARGET_PER_SECOND = 100_000
START = datetime(2026, 1, 1, tzinfo=UTC)


def measure_import(commits: int) -> str:
    """The table: points a second through the whole import, everything checked and in one transaction."""
    # Django reads its settings once in a process, and another part may have a site of its own.
    command = [sys.executable, "-m", "bench.importing", str(commits)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def measure_here(commits: int) -> str:
    with scratch_site(), tempfile.TemporaryDirectory() as folder:
        from dashboard import imports
        from dashboard.archive import import_archive
        from dashboard.models import Point

        archive = write_sample_archive(Path(folder) / "sample.jsonl.gz", commits)
        began = time.perf_counter()
        import_archive("archive", archive)
        seconds = time.perf_counter() - began
        points = Point.objects.count()
        table = write_sample_csv(Path(folder) / "sample.csv", commits)
        began = time.perf_counter()
        imports.import_runs("csv", imports.read_csv(table).runs)
        csv_seconds = time.perf_counter() - began
        csv_points = Point.objects.count() - points
        archive_size = archive.stat().st_size / points
    rate, csv_rate = points / seconds, csv_points / csv_seconds
    return format_part(
        "import: results that come in, into an empty site",
        ("", "points a second", ""),
        [
            Line(
                f"archive of {points:,} points and {commits * CASES:,} runs",
                f"{rate:,.0f}",
                f"{seconds:.1f} s, {archive_size:.0f} bytes a point",
                f"> {TARGET_PER_SECOND:,}",
                rate > TARGET_PER_SECOND,
            ),
            Line(f"CSV file of {csv_points:,} rows", f"{csv_rate:,.0f}", f"{csv_seconds:.1f} s"),
        ],
    )


def write_sample_archive(path: Path, commits: int) -> Path:
    from dashboard.archive import compress_lines

    with path.open("wb") as file:
        for piece in compress_lines(sample_lines(commits)):
            file.write(piece)
    return path


def sample_lines(commits: int) -> Iterator[bytes]:
    """An archive as dashboard.archive writes it: every commit is measured in every case."""
    from dashboard.archive.tables import FORMAT, TABLES, archived_fields
    from dashboard.archive.writing import encode_line

    rows = sample_rows(commits)
    yield encode_line({"format": FORMAT, "project": "sample", "exported_at": START})
    digest = hashlib.sha256()
    for table in TABLES:
        every = [column.name for column in archived_fields(table)]
        columns, values, count = rows.get(table.name, (every, iter(()), 0))
        head = {"table": table.name, "columns": columns, "rows": count}
        for line in map(encode_line, itertools.chain([head], values)):
            digest.update(line)
            yield line
    yield encode_line({"sha256": digest.hexdigest()})


def sample_rows(commits: int) -> dict[str, tuple[list[str], Iterator[Any], int]]:
    """By table its columns, its rows and how many they are."""
    metrics = [(f"gauge.metric{number}", "s", "lower", "time") for number in range(METRICS)]
    days = [START + timedelta(hours=number) for number in range(commits)]
    series = CASES * METRICS * PHASES
    runs = commits * CASES
    return {
        "project": (["repository", "branch"], iter([["", "main"]]), 1),
        "pool": (["name"], iter([["default"]]), 1),
        "metric": (["name", "unit", "better", "kind"], map(list, metrics), METRICS),
        "commit": (
            ["hash", "branch", "position", "committed_at"],
            ([f"{number:040x}", "main", number, days[number]] for number in range(commits)),
            commits,
        ),
        "case": (["benchmark"], ([f"case{number}"] for number in range(CASES)), CASES),
        "configuration": (["case", "version", "pool"], ([number, 1, 0] for number in range(CASES)), CASES),
        "series": (
            ["configuration", "metric", "phase"],
            (
                [case, metric, f"phase{phase}" if phase else ""]
                for case in range(CASES)
                for metric in range(METRICS)
                for phase in range(PHASES)
            ),
            series,
        ),
        # The runs of one case stand together: run `case * commits + position`.
        "run": (
            ["commit", "configuration", "requested_at", "finished_at", "state", "repetitions", "time_limit"],
            (
                [position, case, days[position], days[position], "done", SAMPLES, 600]
                for case in range(CASES)
                for position in range(commits)
            ),
            runs,
        ),
        "point": (
            ["series", "position", "run", "value", "low", "high", "samples", "tainted"],
            sample_points(commits),
            series * commits,
        ),
    }


def sample_points(commits: int) -> Iterator[list[Any]]:
    source = random.Random(1)
    for number in range(CASES * METRICS * PHASES):
        case = number // (METRICS * PHASES)
        for first in range(0, commits, 1000):
            positions = list(range(first, min(first + 1000, commits)))
            values = [source.gauss(0.01, 0.0001) for _ in positions]
            yield [
                number,
                positions,
                [case * commits + position for position in positions],
                values,
                [value * 0.99 for value in values],
                [value * 1.01 for value in values],
                [[value * (1 + step / 1000) for step in range(SAMPLES)] for value in values],
                [False] * len(positions),
            ]


def write_sample_csv(path: Path, commits: int) -> Path:
    source = random.Random(2)
    lines = ["commit,date,benchmark,value,unit"]
    for number in range(commits):
        date = (START + timedelta(hours=number)).isoformat()
        lines += [
            f"c{number},{date},case{case},{source.gauss(10, 0.1)},ms" for case in range(CSV_ROWS_PER_COMMIT)
        ]
    path.write_text("\n".join(lines))
    return path


if __name__ == "__main__":
    print(measure_here(int(sys.argv[1])))
