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
from dashboard.imports.readings import (
    ImportRefused,
    Measured,
    Metric,
    Results,
    Scalar,
    Value,
    printable,
    shortened,
)
from dashboard.models import Case, Pool

Json = dict[str, Any]
INDEX = "benchmarks.json"
NOT_RESULTS = ("machine.json", INDEX)
VERSIONS = (1, 2)
LONGEST_POOL = Pool._meta.get_field("name").max_length or 0
LONGEST_BENCHMARK = Case._meta.get_field("benchmark").max_length or 0
LONGEST_VALUE = 60
WORDS = {"cpu": "cpu_model", "num_cpu": "cpu_count", "ram": "memory_bytes", "os": "os", "arch": "arch"}
HASH = re.compile(r"[0-9a-f]{7,64}")


def read(folder: Path, show: Callable[[int, int], None] | None = None) -> Results:
    """Everything in a results folder; raises ImportRefused. `show` gets (files read, files)."""
    index = _index(folder)
    files = sorted(path for path in folder.glob("*/*.json") if path.name not in NOT_RESULTS)
    if not files:
        raise ImportRefused(f"{folder} holds no results: MACHINE/COMMIT-ENVIRONMENT.json is missing.")
    results = Results()
    newest: dict[tuple[str, ...], Measured] = {}
    for done, path in enumerate(files, start=1):
        for run in _read_file(path, index, results):
            key = (run.commit, run.benchmark, json.dumps(dict(run.params), sort_keys=True), run.pool)
            earlier = newest.get(key)
            if earlier is not None:
                results.skipped["measured again later"] += 1
            if earlier is None or _when(earlier) <= _when(run):
                newest[key] = run
        if show:
            show(done, len(files))
    results.runs = list(newest.values())
    return results


def _when(run: Measured) -> datetime:
    return run.measured_at or run.date


def _index(folder: Path) -> Mapping[str, Json]:
    if not folder.is_dir():
        raise ImportRefused(f"{folder} is not a folder: give the results folder of asv.")
    path = folder / INDEX
    if not path.is_file():
        raise ImportRefused(f"{folder} holds no {INDEX}: give the results folder of asv.")
    found = _load(path)
    return {name: row for name, row in found.items() if isinstance(row, dict)}


def _load(path: Path) -> Json:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ImportRefused(f"{path} can't be read: {error}.") from error
    if not isinstance(found, dict):
        raise ImportRefused(f"{path} isn't an object.")
    version = found.get("version")
    if version is not None and version not in VERSIONS:
        raise ImportRefused(f"{path}: version is {version!r}, formats 1 and 2 can be read.")
    return found


def _read_file(path: Path, index: Mapping[str, Json], results: Results) -> Iterator[Measured]:
    try:
        yield from _runs(path, _load(path), index, results)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
        # The file is somebody else's: whatever is odd in it is told, and nothing of it kept.
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ImportRefused(f"{path} doesn't look like a result of asv: {what}.") from error


def _runs(path: Path, found: Json, index: Mapping[str, Json], results: Results) -> Iterator[Measured]:
    commit = found["commit_hash"]
    if not isinstance(commit, str) or not HASH.fullmatch(commit):
        raise ValueError(f"commit_hash is {commit!r}, not a hash")
    machine = found["params"]
    environment = found.get("env_name") or path.stem.partition("-")[2]
    shared = {
        "commit": commit,
        "date": _moment(found["date"]),
        "pool": pool_name(machine.get("machine") or path.parent.name, environment),
        "fingerprint": _fingerprint(machine, found.get("python"), environment),
    }
    for name, row in _rows(found):
        if not name.isprintable():
            raise ValueError(f"the name {name!r} can't be shown")
        benchmark = index.get(name)
        if benchmark is None:
            results.skipped["of benchmarks that are no longer there"] += 1
        elif row.get("version") not in (None, benchmark.get("version")):
            results.skipped["of earlier versions of their benchmark"] += 1
        else:
            yield from _cases(name, benchmark, row, shared, results)


def _rows(found: Json) -> Iterator[tuple[str, Json]]:
    """Each benchmark's result, params, version, started_at and interval, in either format."""
    columns = found.get("result_columns")
    for name, held in found["results"].items():
        if columns is not None:
            row = dict(zip(columns, held or (), strict=False))
            row["low"], row["high"] = row.get("stats_ci_99_a"), row.get("stats_ci_99_b")
        else:
            row = dict(held) if isinstance(held, dict) else {"result": held}
            stats = [one or {} for one in _listed(row.get("stats"))]
            row["low"] = [(one.get("ci_99") or (None, None))[0] for one in stats]
            row["high"] = [(one.get("ci_99") or (None, None))[1] for one in stats]
            row["version"] = (found.get("benchmark_version") or {}).get(name)
            row["started_at"] = (found.get("started_at") or {}).get(name)
        yield name, row


def _cases(name: str, benchmark: Json, row: Json, shared: Json, results: Results) -> Iterator[Measured]:
    """The combinations of a benchmark's parameters that have a value."""
    values, lows, highs = (_listed(row.get(key)) for key in ("result", "low", "high"))
    params = row.get("params") if row.get("params") is not None else benchmark.get("params")
    combinations = list(itertools.product(*(params or [])))
    if len(values) != len(combinations):
        # All failed: one null stands for them.
        results.skipped["failed or skipped"] += len(combinations)
        return
    metric, factor = _metric(name, benchmark)
    started = row.get("started_at")
    for at, (combination, raw) in enumerate(zip(combinations, values, strict=True)):
        value = _scaled(raw, factor)
        if value is None:
            results.skipped["failed or skipped"] += 1
            continue
        low, high = (_scaled(bounds[at] if at < len(bounds) else None, factor) for bounds in (lows, highs))
        yield Measured(
            benchmark=shortened(name, LONGEST_BENCHMARK),
            params=_named(benchmark.get("param_names") or (), combination),
            values=(Value(metric, value, low, high),),
            measured_at=_moment(started) if started else None,
            **shared,
        )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _scaled(value: Any, factor: float) -> float | None:
    """A finite number times `factor`, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    scaled = float(value) * factor
    return scaled if math.isfinite(scaled) else None


def _metric(name: str, benchmark: Json) -> tuple[Metric, float]:
    """asv's four types; smaller is better in all of them, as asv itself has it."""
    unit, factor = units.normalised(printable(str(benchmark.get("unit") or ""), units.LONGEST_UNIT))
    kind = benchmark.get("type") or name.rpartition(".")[2].partition("_")[0]
    if kind in ("time", "timeraw") and unit == "s":
        return units.known("step_time"), factor
    if kind in ("peakmemory", "peakmem") and unit == "bytes":
        return units.known("peak_memory"), factor
    if kind in ("memory", "mem"):
        return units.reported("object_size", unit, "lower"), factor
    return units.reported(name.rpartition(".")[2].removeprefix("track_"), unit, "lower"), factor


def _named(names: Sequence[str], combination: Sequence[str]) -> dict[str, Scalar]:
    named = itertools.zip_longest(names, combination)
    return {
        printable(str(name or f"param{at}"), LONGEST_VALUE): _scalar(str(value))
        for at, (name, value) in enumerate(named, start=1)
        if value is not None
    }


@cache
def _scalar(spelt: str) -> Scalar:
    """A parameter as asv spells it (its repr); what is no number, text or flag stays as it is spelt."""
    try:
        value: object = ast.literal_eval(spelt)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = spelt
    if isinstance(value, float) and not math.isfinite(value):
        value = spelt
    if isinstance(value, int | float):
        return value
    value = value if isinstance(value, str) else spelt
    return printable(value if value.isprintable() else spelt, LONGEST_VALUE)


def pool_name(machine: str, environment: str) -> str:
    """One pool for each machine and environment: what asv keeps apart stays apart."""
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "-", f"{machine}-{environment}".replace(".", "_")).strip("-")
    return shortened(plain or "imported", LONGEST_POOL).replace("~", "-")


def _fingerprint(machine: Json, python: Any, environment: str) -> Json:
    """In the site's words; asv spells numbers as text, and memory as it likes."""
    told = {ours: str(machine.get(theirs) or "") for theirs, ours in WORDS.items()}
    told |= {"python": str(python or ""), "environment": environment}
    found: Json = {name: text for name, text in told.items() if text and text.isprintable()}
    for name in ("cpu_count", "memory_bytes"):
        value = found.pop(name, "")
        if re.fullmatch(r"[0-9]{1,16}(\.[0-9]*)?", value):
            found[name] = int(float(value))
    return found


def _moment(milliseconds: float) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
