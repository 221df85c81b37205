"""The results folder of airspeed velocity, result formats 1 and 2.

`benchmarks.json` says what each benchmark is; `MACHINE/COMMIT-ENVIRONMENT.json` holds what one commit
measured. A result is a list with one value per combination of the benchmark's parameters, in the order of
itertools.product; null is a failed one, NaN a skipped one.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from dashboard.imports import units
from dashboard.imports.results import (
    ImportedMetric,
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportRefused,
    Scalar,
    printable_text,
    shorten_text,
)
from dashboard.name_lengths import LONGEST_BENCHMARK, LONGEST_POOL, LONGEST_UNIT
from dashboard.repositories import ABBREVIATED_HASH

Json = dict[str, Any]
INDEX_FILE = "benchmarks.json"
NOT_RESULTS = ("machine.json", INDEX_FILE)
FORMAT_VERSIONS = (1, 2)
LONGEST_VALUE = 60
FINGERPRINT_NAMES = {
    "cpu": "cpu_model",
    "num_cpu": "cpu_count",
    "ram": "memory_bytes",
    "os": "os",
    "arch": "arch",
}


def read_asv(folder: Path, report_progress: Callable[[int, int], None] | None = None) -> ImportedResults:
    """Everything in a results folder; raises ImportRefused. `report_progress` gets (files read, files)."""
    index = _read_index(folder)
    files = sorted(path for path in folder.glob("*/*.json") if path.name not in NOT_RESULTS)
    if not files:
        raise ImportRefused(f"{folder} holds no results: MACHINE/COMMIT-ENVIRONMENT.json is missing.")
    results = ImportedResults()
    newest: dict[tuple[str, ...], ImportedRun] = {}
    for done, path in enumerate(files, start=1):
        for run in _read_result_file(path, index, results):
            key = (run.commit, run.benchmark, json.dumps(dict(run.params), sort_keys=True), run.pool)
            earlier = newest.get(key)
            if earlier is not None:
                results.skipped["measured again later"] += 1
            if earlier is None or _measurement_time(earlier) <= _measurement_time(run):
                newest[key] = run
        if report_progress:
            report_progress(done, len(files))
    results.runs = list(newest.values())
    return results


def _measurement_time(run: ImportedRun) -> datetime:
    return run.measured_at or run.date


def _read_index(folder: Path) -> Mapping[str, Json]:
    if not folder.is_dir():
        raise ImportRefused(f"{folder} is not a folder: give the results folder of asv.")
    path = folder / INDEX_FILE
    if not path.is_file():
        raise ImportRefused(f"{folder} holds no {INDEX_FILE}: give the results folder of asv.")
    members = _load_object(path)
    return {name: row for name, row in members.items() if isinstance(row, dict)}


def _load_object(path: Path) -> Json:
    try:
        loaded = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ImportRefused(f"{path} can't be read: {error}.") from error
    if not isinstance(loaded, dict):
        raise ImportRefused(f"{path} isn't an object.")
    version = loaded.get("version")
    if version is not None and version not in FORMAT_VERSIONS:
        raise ImportRefused(f"{path}: version is {version!r}, formats 1 and 2 can be read.")
    return loaded


def _read_result_file(
    path: Path, index: Mapping[str, Json], results: ImportedResults
) -> Iterator[ImportedRun]:
    try:
        yield from _runs_of_file(path, _load_object(path), index, results)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
        # The file is another tool's: whatever is odd in it is reported, and nothing of it is imported.
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ImportRefused(f"{path} doesn't look like a result of asv: {reason}.") from error


def _runs_of_file(
    path: Path, body: Json, index: Mapping[str, Json], results: ImportedResults
) -> Iterator[ImportedRun]:
    commit = body["commit_hash"]
    if not isinstance(commit, str) or not ABBREVIATED_HASH.fullmatch(commit):
        raise ValueError(f"commit_hash is {commit!r}, not a hash")
    machine = body["params"]
    environment = body.get("env_name") or path.stem.partition("-")[2]
    shared = {
        "commit": commit,
        "date": _parse_timestamp(body["date"]),
        "pool": pool_name(machine.get("machine") or path.parent.name, environment),
        "fingerprint": _machine_fingerprint(machine, body.get("python"), environment),
    }
    for name, row in _benchmark_rows(body):
        if not name.isprintable():
            raise ValueError(f"the name {name!r} can't be shown")
        benchmark = index.get(name)
        if benchmark is None:
            results.skipped["of benchmarks that are no longer there"] += 1
        elif row.get("version") not in (None, benchmark.get("version")):
            results.skipped["of earlier versions of their benchmark"] += 1
        else:
            yield from _measured_cases(name, benchmark, row, shared, results)


def _benchmark_rows(body: Json) -> Iterator[tuple[str, Json]]:
    """Each benchmark's result, params, version, started_at and interval, in either format."""
    columns = body.get("result_columns")
    for name, result in body["results"].items():
        if columns is not None:
            row = dict(zip(columns, result or (), strict=False))
            row["low"], row["high"] = row.get("stats_ci_99_a"), row.get("stats_ci_99_b")
        else:
            row = dict(result) if isinstance(result, dict) else {"result": result}
            stats = [value_stats or {} for value_stats in _as_list(row.get("stats"))]
            row["low"] = [(value_stats.get("ci_99") or (None, None))[0] for value_stats in stats]
            row["high"] = [(value_stats.get("ci_99") or (None, None))[1] for value_stats in stats]
            row["version"] = (body.get("benchmark_version") or {}).get(name)
            row["started_at"] = (body.get("started_at") or {}).get(name)
        yield name, row


def _measured_cases(
    name: str, benchmark: Json, row: Json, shared: Json, results: ImportedResults
) -> Iterator[ImportedRun]:
    """The combinations of a benchmark's parameters that have a value."""
    values, lows, highs = (_as_list(row.get(key)) for key in ("result", "low", "high"))
    params = row.get("params") if row.get("params") is not None else benchmark.get("params")
    combinations = list(itertools.product(*(params or [])))
    if len(values) != len(combinations):
        # All failed: one null stands for them.
        results.skipped["failed or skipped"] += len(combinations)
        return
    metric, factor = _metric_and_factor(name, benchmark)
    started = row.get("started_at")
    for index, (combination, raw) in enumerate(zip(combinations, values, strict=True)):
        value = _scale_value(raw, factor)
        if value is None:
            results.skipped["failed or skipped"] += 1
            continue
        low, high = (
            _scale_value(bounds[index] if index < len(bounds) else None, factor) for bounds in (lows, highs)
        )
        yield ImportedRun(
            benchmark=shorten_text(name, LONGEST_BENCHMARK),
            params=_name_params(benchmark.get("param_names") or (), combination),
            values=(ImportedValue(metric, value, low, high),),
            measured_at=_parse_timestamp(started) if started else None,
            **shared,
        )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _scale_value(value: Any, factor: float) -> float | None:
    """A finite number times `factor`, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    scaled = float(value) * factor
    return scaled if math.isfinite(scaled) else None


def _metric_and_factor(name: str, benchmark: Json) -> tuple[ImportedMetric, float]:
    """asv's four types; smaller is better in all of them, as asv itself has it."""
    unit, factor = units.normalise_unit(printable_text(str(benchmark.get("unit") or ""), LONGEST_UNIT))
    kind = benchmark.get("type") or name.rpartition(".")[2].partition("_")[0]
    if kind in ("time", "timeraw") and unit == "s":
        return units.standard_metric("step_time"), factor
    if kind in ("peakmemory", "peakmem") and unit == "bytes":
        return units.standard_metric("peak_memory"), factor
    if kind in ("memory", "mem"):
        return units.reported_metric("object_size", unit, "lower"), factor
    return units.reported_metric(name.rpartition(".")[2].removeprefix("track_"), unit, "lower"), factor


def _name_params(names: Sequence[str], combination: Sequence[str]) -> dict[str, Scalar]:
    pairs = itertools.zip_longest(names, combination)
    return {
        printable_text(str(name or f"param{number}"), LONGEST_VALUE): _parse_param(str(value))
        for number, (name, value) in enumerate(pairs, start=1)
        if value is not None
    }


@cache
def _parse_param(text: str) -> Scalar:
    """A parameter that asv wrote as its repr; what is no number, text or flag stays that text."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = text
    if isinstance(value, float) and not math.isfinite(value):
        value = text
    if isinstance(value, int | float):
        return value
    value = value if isinstance(value, str) else text
    return printable_text(value if value.isprintable() else text, LONGEST_VALUE)


def pool_name(machine: str, environment: str) -> str:
    """One pool for each machine and environment: what asv keeps apart stays apart."""
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "-", f"{machine}-{environment}".replace(".", "_")).strip("-")
    return shorten_text(plain or "imported", LONGEST_POOL).replace("~", "-")


def _machine_fingerprint(machine: Json, python: Any, environment: str) -> Json:
    """In the site's words; asv writes numbers as text, and memory in various forms."""
    texts = {name: str(machine.get(given_name) or "") for given_name, name in FINGERPRINT_NAMES.items()}
    texts |= {"python": str(python or ""), "environment": environment}
    fingerprint: Json = {name: text for name, text in texts.items() if text and text.isprintable()}
    for name in ("cpu_count", "memory_bytes"):
        value = fingerprint.pop(name, "")
        if re.fullmatch(r"[0-9]{1,16}(\.[0-9]*)?", value):
            fingerprint[name] = int(float(value))
    return fingerprint


def _parse_timestamp(milliseconds: float) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
