"""The JSON of Google Benchmark: --benchmark_format=json or --benchmark_out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from dashboard.imports import units
from dashboard.imports.json_file import JsonPlace, ReportProgress, locate_commit, read_json_files
from dashboard.imports.results import (
    LONGEST_PARAM,
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportOrigin,
    Scalar,
    printable_text,
    shorten_text,
)
from dashboard.name_lengths import LONGEST_BENCHMARK, LONGEST_POOL

# As `--benchmark_context=commit=$(git rev-parse HEAD)` writes it; the first that is there counts.
COMMIT_NAMES = ("commit", "git_commit", "commit_hash", "revision")
# What a row tells beside its times: the rest are counters of the benchmark itself.
OWN_MEMBERS = frozenset(
    {
        *("family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads"),
        *("iterations", "real_time", "cpu_time"),
    }
)
RATES = {"bytes_per_second": "bytes/s", "items_per_second": "items/s"}


def read_google_benchmark(
    path: Path, origin: ImportOrigin, report_progress: ReportProgress = None
) -> ImportedResults:
    """A file, or all of a folder; raises ImportRefused."""
    results = ImportedResults()
    for place in read_json_files(path, report_progress):
        results.runs += _read_file(place, origin, results)
    return results


def _read_file(place: JsonPlace, origin: ImportOrigin, results: ImportedResults) -> Iterator[ImportedRun]:
    context = place.member("context")
    found = next((named for name in COMMIT_NAMES if (named := context.find(name))), None)
    measured = context.find("date")
    measured_at = measured.read_date() if measured else None
    commit, date = locate_commit(origin, place.file, found.read_text() if found else "", measured_at)
    rows: dict[str, list[JsonPlace]] = {}
    for row in place.member("benchmarks").items():
        kind, failed = row.find("run_type"), row.find("error_occurred")
        if failed is not None and failed.value is True:
            results.skipped["failed"] += 1
        elif kind is not None and kind.value == "aggregate":
            # Made of the repetitions, which are here themselves, or stand for them.
            rows.setdefault(_run_name(row), [])
        else:
            rows.setdefault(_run_name(row), []).append(row)
    for name, repetitions in rows.items():
        if not repetitions:
            results.skipped["of which only aggregates were written"] += 1
            continue
        benchmark, params = _split_name(name)
        yield ImportedRun(
            commit=commit,
            date=date,
            benchmark=shorten_text(benchmark, LONGEST_BENCHMARK),
            params=params,
            pool=origin.pool or _pool_name(context),
            values=tuple(_read_values(repetitions)),
            measured_at=measured_at,
            fingerprint=_read_machine(context),
        )


def _run_name(row: JsonPlace) -> str:
    return (row.find("run_name") or row.member("name")).read_text()


def _split_name(name: str) -> tuple[str, dict[str, Scalar]]:
    """`BM_Copy/64/threads:4`: the benchmark and its arguments; one with a colon has a name."""
    benchmark, *arguments = name.split("/")
    params: dict[str, Scalar] = {}
    for number, argument in enumerate(arguments, start=1):
        label, colon, value = argument.rpartition(":")
        text = value if colon else argument
        key = label if colon else f"argument{number}"
        params[printable_text(key, LONGEST_PARAM)] = (
            int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else printable_text(text, LONGEST_PARAM)
        )
    return benchmark, params


def _read_values(rows: list[JsonPlace]) -> Iterator[ImportedValue]:
    """Medians over the repetitions, which are of one process and therefore no samples."""
    unit = rows[0].find("time_unit")
    known, factor = units.normalise_unit(unit.read_text() if unit else "ns")
    if unit is not None and known != "s":
        raise unit.refuse(f"is {unit.value!r}, not ns, us, ms or s")
    yield ImportedValue(units.standard_metric("step_time"), _median_of(rows, "real_time") * factor)
    cpu_time = units.reported_metric("cpu_time", "s", "lower")
    yield ImportedValue(cpu_time, _median_of(rows, "cpu_time") * factor)
    for name, place in rows[0].members():
        number = isinstance(place.value, int | float) and not isinstance(place.value, bool)
        if number and name not in OWN_MEMBERS:
            rate = RATES.get(name)
            metric = units.reported_metric(
                printable_text(name, LONGEST_PARAM), rate or "1", "higher" if rate else "lower"
            )
            yield ImportedValue(metric, _median_of(rows, name))


def _median_of(rows: list[JsonPlace], name: str) -> float:
    return median(row.member(name).read_number() for row in rows)


def _read_machine(context: JsonPlace) -> dict[str, Any]:
    count = context.find("num_cpus")
    return {"cpu_count": int(count.read_number())} if count else {}


def _pool_name(context: JsonPlace) -> str:
    """A pool for each host; a debug build doesn't compare with a release."""
    host, build = context.find("host_name"), context.find("library_build_type")
    parts = [host.read_text() if host else "imported"]
    if build is not None and build.value == "debug":
        parts.append("debug")
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "-", "-".join(parts).replace(".", "_")).strip("-")
    return shorten_text(plain or "imported", LONGEST_POOL).replace("~", "-")
