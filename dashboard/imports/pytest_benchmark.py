"""The JSON that pytest-benchmark saves, by --benchmark-json or in its folder .benchmarks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dashboard.imports import units
from dashboard.imports.json_file import JsonPlace, ReportProgress, locate_commit, read_json_files
from dashboard.imports.results import (
    LONGEST_PARAM,
    ImportedMetric,
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportOrigin,
    Scalar,
    printable_text,
    shorten_text,
)
from dashboard.name_lengths import LONGEST_BENCHMARK, LONGEST_POOL
from dashboard.repositories import ABBREVIATED_HASH


def read_pytest_benchmark(
    path: Path, origin: ImportOrigin, report_progress: ReportProgress = None
) -> ImportedResults:
    """A file, or all of a folder; raises ImportRefused. Of two files of one commit the later one counts."""
    results = ImportedResults()
    newest: dict[tuple[str, str, str, str], ImportedRun] = {}
    for place in read_json_files(path, report_progress):
        for run in _read_file(place, origin, results):
            key = (run.commit, run.benchmark, repr(sorted(run.params.items())), run.pool)
            earlier = newest.get(key)
            if earlier is not None:
                results.skipped["measured again later"] += 1
            if earlier is None or (earlier.measured_at or earlier.date) <= (run.measured_at or run.date):
                newest[key] = run
    results.runs = list(newest.values())
    return results


def _read_file(place: JsonPlace, origin: ImportOrigin, results: ImportedResults) -> Iterator[ImportedRun]:
    benchmarks, measured_at = place.member("benchmarks"), place.member("datetime").read_date()
    info = place.find("commit_info")
    commit, date = "", None
    if (
        info is not None
        and (found := info.find("id")) is not None
        and ABBREVIATED_HASH.fullmatch(str(found.value))
    ):
        commit = found.read_text()
        time = info.find("time") or info.find("author_time")
        date = time.read_date() if time else measured_at
        # What was measured isn't in the repository: it belongs to no commit.
        if not origin.commit and (dirty := info.find("dirty")) is not None and dirty.value is True:
            results.skipped["of changes that weren't committed"] += len(list(benchmarks.items()))
            return
    commit, date = locate_commit(origin, place.file, commit, date)
    fingerprint, pool = _read_machine(place.member("machine_info"))
    for benchmark in benchmarks.items():
        yield ImportedRun(
            commit=commit,
            date=date,
            benchmark=shorten_text(_benchmark_name(benchmark), LONGEST_BENCHMARK),
            params=_read_params(benchmark),
            pool=origin.pool or pool,
            values=tuple(_read_values(benchmark)),
            measured_at=measured_at,
            fingerprint=fingerprint,
        )


def _benchmark_name(benchmark: JsonPlace) -> str:
    """The test without its parameters, which make the case."""
    name = (benchmark.find("fullname") or benchmark.member("name")).read_text()
    return name.partition("[")[0] if benchmark.find("params") else name


def _read_params(benchmark: JsonPlace) -> dict[str, Scalar]:
    params = benchmark.find("params")
    if params is None:
        return {}
    return {
        printable_text(name, LONGEST_PARAM): value.value
        if isinstance(value.value, bool | int | float)
        else printable_text(str(value.value), LONGEST_PARAM)
        for name, value in params.members()
    }


def _read_values(benchmark: JsonPlace) -> Iterator[ImportedValue]:
    """The median of the rounds, which one process ran: they are no samples. And numbers of extra_info."""
    stats = benchmark.member("stats")
    yield ImportedValue(units.standard_metric("step_time"), stats.member("median").read_number())
    extra = benchmark.find("extra_info")
    if extra is None:
        return
    for name, value in extra.members():
        if isinstance(value.value, int | float) and not isinstance(value.value, bool):
            yield ImportedValue(_extra_metric(name), value.read_number())


def _extra_metric(name: str) -> ImportedMetric:
    return units.reported_metric(printable_text(name, LONGEST_PARAM), "1", "lower")


def _read_machine(machine: JsonPlace) -> tuple[dict[str, Any], str]:
    """The fingerprint in the site's words, and a pool for each machine and Python: they don't compare."""
    names = {"system": "os", "machine": "arch", "python_version": "python"}
    fingerprint: dict[str, Any] = {
        name: found.read_text() for given_name, name in names.items() if (found := machine.find(given_name))
    }
    cpu = machine.find("cpu")
    if isinstance(cpu and cpu.value, dict):
        brand = cpu.find("brand_raw") or cpu.find("brand") if cpu else None
        count = cpu.find("count") if cpu else None
        fingerprint |= {"cpu_model": brand.read_text()} if brand else {}
        fingerprint |= {"cpu_count": int(count.read_number())} if count else {}
    node = machine.find("node")
    text = "-".join([node.read_text() if node else "imported", *_python_of(machine)])
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "-", text.replace(".", "_")).strip("-")
    return fingerprint, shorten_text(plain or "imported", LONGEST_POOL).replace("~", "-")


def _python_of(machine: JsonPlace) -> list[str]:
    name, version = machine.find("python_implementation"), machine.find("python_version")
    if name is None or version is None:
        return []
    return [f"{name.read_text()}-{'.'.join(version.read_text().split('.')[:2])}"]
