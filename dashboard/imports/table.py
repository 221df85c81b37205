"""A CSV file with one value per row: docs/importing.md describes its columns."""

from __future__ import annotations

import csv
import difflib
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from paceline.metrics import describe_metric

from dashboard.imports import units
from dashboard.imports.readings import ImportRefused, Measured, Metric, Results, Scalar, Value
from dashboard.models import Case

REQUIRED = ("commit", "date", "benchmark", "value")
OPTIONAL = ("metric", "unit", "better", "pool", "branch", "repetition")
PARAM = "param."
BETTER = ("lower", "higher")
DEFAULT_POOL = "imported"
# Where the metric isn't named, its unit tells.
BY_UNIT = {"s": "step_time", "bytes": "peak_memory", "steps/s": "throughput"}
LONGEST_BENCHMARK = Case._meta.get_field("benchmark").max_length or 0
LONGEST_PARAM = 60
COMMIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,63}")
POOL = re.compile(r"[A-Za-z0-9_-]{1,60}")
BRANCH = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
SHOW_EVERY = 1000

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Key:
    """What is one run: a case at a commit in a pool."""

    commit: str
    benchmark: str
    params: tuple[tuple[str, Scalar], ...]
    pool: str


@dataclass(slots=True)
class Reading:
    """The rows so far. `line` of each is kept to name the first of two that contradict each other."""

    commits: dict[str, tuple[datetime, str, int]] = field(default_factory=dict)
    samples: dict[tuple[Key, Metric], dict[int, tuple[float, int]]] = field(default_factory=dict)


class Wrong(Exception):  # noqa: N818 - reads as a fact
    """(column, sentence) of a row that can't be taken."""

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(f"{column} {problem}")


def read(path: Path, show: Callable[[int, int], None] | None = None) -> Results:
    """Everything in a file; raises ImportRefused with `file:line: column ...`. `show` gets (bytes, bytes)."""
    reading = Reading()
    line = 1
    try:
        size = path.stat().st_size
        with path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            columns = _header(next(rows, []))
            for row in rows:
                line = rows.line_num
                if row:
                    _take(reading, _named(columns, row), line)
                if show and line % SHOW_EVERY == 0:
                    show(raw.tell(), size)
    except Wrong as error:
        raise ImportRefused(f"{path}:{line}: {error}.") from error
    except csv.Error as error:
        raise ImportRefused(f"{path}:{line + 1}: {error}.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImportRefused(f"{path} can't be read: {reason}.") from error
    if not reading.samples:
        raise ImportRefused(f"{path} holds no row below its header.")
    return Results(list(_runs(reading)))


def _header(columns: list[str]) -> list[str]:
    names = [name.strip() for name in columns]
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise Wrong(missing[0], f"is missing: the header needs {', '.join(REQUIRED)}")
    for name in names:
        if not name.isprintable():
            raise Wrong(repr(name), "can't be shown")
        if names.count(name) > 1:
            raise Wrong(name, "stands twice in the header")
        if name not in REQUIRED + OPTIONAL and not (name.startswith(PARAM) and len(name) > len(PARAM)):
            near = difflib.get_close_matches(name, REQUIRED + OPTIONAL, n=1)
            hint = f"did you mean {near[0]}?" if near else f"a parameter is called {PARAM}NAME"
            raise Wrong(name or "a column without a name", f"is no column that is known ({hint})")
    return names


def _named(columns: list[str], row: list[str]) -> Row:
    if len(row) != len(columns):
        last = columns[min(len(row), len(columns) - 1)]
        raise Wrong(last, f"doesn't fit: the row has {len(row)} fields, the header {len(columns)}")
    return dict(zip(columns, (value.strip() for value in row), strict=True))


def _take(reading: Reading, row: Row, line: int) -> None:
    commit = _matching(row, "commit", COMMIT, "a hash or a name of at most 64 characters without blanks")
    _take_commit(reading, commit, _date(row), _branch(row), line)
    metric, factor = _metric(row)
    key = Key(commit, _benchmark(row), _params(row), _pool(row))
    values = reading.samples.setdefault((key, metric), {})
    repetition = _repetition(row)
    if repetition in values:
        first = values[repetition][1]
        hint = "" if row.get("repetition") else "; number repeated values in a column repetition"
        raise Wrong("value", f"of {metric.name} stands in line {first} already{hint}")
    values[repetition] = (_value(row, factor), line)


def _take_commit(reading: Reading, commit: str, date: datetime, branch: str, line: int) -> None:
    known_date, known_branch, first = reading.commits.setdefault(commit, (date, branch, line))
    if known_date != date:
        raise Wrong("date", f"of commit {commit} is another one in line {first}")
    if known_branch != branch:
        raise Wrong("branch", f"of commit {commit} is another one in line {first}")


def _matching(row: Row, column: str, pattern: re.Pattern[str], what: str) -> str:
    if not pattern.fullmatch(row[column]):
        raise Wrong(column, f"is {row[column]!r}, not {what}")
    return row[column]


def _date(row: Row) -> datetime:
    try:
        found = datetime.fromisoformat(row["date"])
        # Time zones reach one day beyond what can be told in UTC.
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Wrong("date", f"is {row['date']!r}, not one like 2026-03-01T08:00:00+00:00") from None


def _branch(row: Row) -> str:
    if not row.get("branch"):
        return ""
    return _matching(row, "branch", BRANCH, "the name of a branch")


def _pool(row: Row) -> str:
    if not row.get("pool"):
        return DEFAULT_POOL
    return _matching(row, "pool", POOL, "letters, digits, - and _, at most 60")


def _benchmark(row: Row) -> str:
    name = row["benchmark"]
    if not 0 < len(name) <= LONGEST_BENCHMARK or not name.isprintable():
        raise Wrong("benchmark", f"has {len(name)} characters, 1 to {LONGEST_BENCHMARK} are allowed")
    return name


def _params(row: Row) -> tuple[tuple[str, Scalar], ...]:
    """An empty field is a parameter that this benchmark doesn't have."""
    found = []
    for column, text in row.items():
        if not column.startswith(PARAM) or not text:
            continue
        if len(text) > LONGEST_PARAM or not text.isprintable():
            raise Wrong(column, f"has {len(text)} characters, at most {LONGEST_PARAM} are allowed")
        found.append((column.removeprefix(PARAM), _scalar(text)))
    return tuple(sorted(found))


def _scalar(text: str) -> Scalar:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text):
        return int(text)
    return text


def _metric(row: Row) -> tuple[Metric, float]:
    """The metric of a row and what to multiply its value by."""
    unit, factor = units.normalised(row.get("unit") or "")
    better, name = row.get("better") or "", row.get("metric") or ""
    if better not in ("", *BETTER):
        raise Wrong("better", f"is {better!r}, not lower or higher")
    if not name.isprintable():
        raise Wrong("metric", "holds characters that can't be shown")
    name = name or (BY_UNIT.get(unit, "") if row.get("unit") else "")
    table = describe_metric(name) if name else None
    if table is not None and table.name == name and not name.startswith(units.OPEN):
        wanted = units.known(name)
        if row.get("unit") and unit != wanted.unit:
            raise Wrong("unit", f"is {row['unit']!r}, but {name} is measured in {wanted.unit}")
        if better and better != wanted.better:
            raise Wrong("better", f"is {better!r}, but of {name} {wanted.better} is better")
        return wanted, factor
    if len(unit) > units.LONGEST_UNIT or not unit.isprintable():
        raise Wrong("unit", f"has {len(unit)} characters, at most {units.LONGEST_UNIT} are allowed")
    return units.reported(name.removeprefix(units.PREFIX) or "value", unit, better or "lower"), factor


def _repetition(row: Row) -> int:
    text = row.get("repetition") or "0"
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise Wrong("repetition", f"is {text!r}, not a whole number below 10000")
    return int(text)


def _value(row: Row, factor: float) -> float:
    try:
        value = float(row["value"]) * factor
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Wrong("value", f"is {row['value']!r}, not a finite number")
    return value


def _runs(reading: Reading) -> Iterator[Measured]:
    """The rows of each run together, in the file's order."""
    by_key: dict[Key, list[Value]] = {}
    for (key, metric), held in reading.samples.items():
        samples = tuple(value for _, (value, _) in sorted(held.items()))
        value = Value(metric, median(samples), samples=samples if len(samples) > 1 else ())
        by_key.setdefault(key, []).append(value)
    for key, values in by_key.items():
        date, branch, _ = reading.commits[key.commit]
        yield Measured(
            key.commit, date, key.benchmark, dict(key.params), key.pool, tuple(values), branch=branch
        )
