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
from dashboard.imports.results import (
    LONGEST_PARAM,
    ImportedMetric,
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportRefused,
    Scalar,
)
from dashboard.name_lengths import LONGEST_BENCHMARK, LONGEST_UNIT

REQUIRED = ("commit", "date", "benchmark", "value")
OPTIONAL = ("metric", "unit", "better", "pool", "branch", "repetition")
PARAM_PREFIX = "param."
BETTER = ("lower", "higher")
DEFAULT_POOL = "imported"
# Where the metric isn't named, its unit tells.
METRIC_OF_UNIT = {"s": "step_time", "bytes": "peak_memory", "steps/s": "throughput"}
COMMIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,63}")
POOL = re.compile(r"[A-Za-z0-9_-]{1,60}")
BRANCH = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
ROWS_PER_REPORT = 1000

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What is one run: a case at a commit in a pool."""

    commit: str
    benchmark: str
    params: tuple[tuple[str, Scalar], ...]
    pool: str


@dataclass(slots=True)
class CsvContents:
    """The rows read so far, each with its line: of two that contradict each other, the first is named."""

    commits: dict[str, tuple[datetime, str, int]] = field(default_factory=dict)
    samples: dict[tuple[RunIdentity, ImportedMetric], dict[int, tuple[float, int]]] = field(
        default_factory=dict
    )


class BadField(Exception):  # noqa: N818 - reads as a fact
    """(column, sentence) of a row that can't be taken."""

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(f"{column} {problem}")


def read_csv(path: Path, report_progress: Callable[[int, int], None] | None = None) -> ImportedResults:
    """Everything in a file; raises ImportRefused with `file:line: column ...`.

    `report_progress` gets (bytes read, bytes).
    """
    contents = CsvContents()
    line = 1
    try:
        size = path.stat().st_size
        with path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            columns = _check_header(next(rows, []))
            for row in rows:
                line = rows.line_num
                if row:
                    _add_row(contents, _name_fields(columns, row), line)
                if report_progress and line % ROWS_PER_REPORT == 0:
                    report_progress(raw.tell(), size)
    except BadField as error:
        raise ImportRefused(f"{path}:{line}: {error}.") from error
    except csv.Error as error:
        raise ImportRefused(f"{path}:{line + 1}: {error}.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImportRefused(f"{path} can't be read: {reason}.") from error
    if not contents.samples:
        raise ImportRefused(f"{path} holds no row below its header.")
    return ImportedResults(list(_collect_runs(contents)))


def _check_header(columns: list[str]) -> list[str]:
    names = [name.strip() for name in columns]
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise BadField(missing[0], f"is missing: the header needs {', '.join(REQUIRED)}")
    for name in names:
        if not name.isprintable():
            raise BadField(repr(name), "can't be shown")
        if names.count(name) > 1:
            raise BadField(name, "stands twice in the header")
        if name not in REQUIRED + OPTIONAL and not (
            name.startswith(PARAM_PREFIX) and len(name) > len(PARAM_PREFIX)
        ):
            near = difflib.get_close_matches(name, REQUIRED + OPTIONAL, n=1)
            hint = f"did you mean {near[0]}?" if near else f"a parameter is called {PARAM_PREFIX}NAME"
            raise BadField(name or "a column without a name", f"is no column that is known ({hint})")
    return names


def _name_fields(columns: list[str], row: list[str]) -> Row:
    if len(row) != len(columns):
        last = columns[min(len(row), len(columns) - 1)]
        raise BadField(last, f"doesn't fit: the row has {len(row)} fields, the header {len(columns)}")
    return dict(zip(columns, (value.strip() for value in row), strict=True))


def _add_row(contents: CsvContents, row: Row, line: int) -> None:
    commit = _match_field(
        row, "commit", COMMIT, "a hash, a tag or a name of at most 64 letters, digits and . _ / + -"
    )
    _add_commit(contents, commit, _parse_date(row), _parse_branch(row), line)
    metric, factor = _parse_metric(row)
    key = RunIdentity(commit, _parse_benchmark(row), _parse_params(row), _parse_pool(row))
    values = contents.samples.setdefault((key, metric), {})
    repetition = _parse_repetition(row)
    if repetition in values:
        first = values[repetition][1]
        hint = "" if row.get("repetition") else "; number repeated values in a column repetition"
        raise BadField("value", f"of {metric.name} stands in line {first} already{hint}")
    values[repetition] = (_parse_value(row, factor), line)


def _add_commit(contents: CsvContents, commit: str, date: datetime, branch: str, line: int) -> None:
    known_date, known_branch, first = contents.commits.setdefault(commit, (date, branch, line))
    if known_date != date:
        raise BadField("date", f"of commit {commit} is another one in line {first}")
    if known_branch != branch:
        raise BadField("branch", f"of commit {commit} is another one in line {first}")


def _match_field(row: Row, column: str, pattern: re.Pattern[str], expected: str) -> str:
    if not pattern.fullmatch(row[column]):
        raise BadField(column, f"is {row[column]!r}, not {expected}")
    return row[column]


def _parse_date(row: Row) -> datetime:
    try:
        parsed = datetime.fromisoformat(row["date"])
        # Time zones reach one day beyond what UTC can hold.
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadField("date", f"is {row['date']!r}, not one like 2026-03-01T08:00:00+00:00") from None


def _parse_branch(row: Row) -> str:
    if not row.get("branch"):
        return ""
    return _match_field(row, "branch", BRANCH, "the name of a branch")


def _parse_pool(row: Row) -> str:
    if not row.get("pool"):
        return DEFAULT_POOL
    return _match_field(row, "pool", POOL, "letters, digits, - and _, at most 60")


def _parse_benchmark(row: Row) -> str:
    name = row["benchmark"]
    if not 0 < len(name) <= LONGEST_BENCHMARK or not name.isprintable():
        raise BadField("benchmark", f"has {len(name)} characters, 1 to {LONGEST_BENCHMARK} are allowed")
    return name


def _parse_params(row: Row) -> tuple[tuple[str, Scalar], ...]:
    """An empty field is a parameter that this benchmark doesn't have."""
    params = []
    for column, text in row.items():
        if not column.startswith(PARAM_PREFIX) or not text:
            continue
        if len(text) > LONGEST_PARAM or not text.isprintable():
            raise BadField(column, f"has {len(text)} characters, at most {LONGEST_PARAM} are allowed")
        params.append((column.removeprefix(PARAM_PREFIX), _parse_scalar(text)))
    return tuple(sorted(params))


def _parse_scalar(text: str) -> Scalar:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text):
        return int(text)
    return text


def _parse_metric(row: Row) -> tuple[ImportedMetric, float]:
    """The metric of a row and what to multiply its value by."""
    unit, factor = units.normalise_unit(row.get("unit") or "")
    better, name = row.get("better") or "", row.get("metric") or ""
    if better not in ("", *BETTER):
        raise BadField("better", f"is {better!r}, not lower or higher")
    if not name.isprintable():
        raise BadField("metric", "holds characters that can't be shown")
    name = name or (METRIC_OF_UNIT.get(unit, "") if row.get("unit") else "")
    table = describe_metric(name) if name else None
    if table is not None and table.name == name and not name.startswith(units.OPEN_PREFIXES):
        wanted = units.standard_metric(name)
        if row.get("unit") and unit != wanted.unit:
            raise BadField("unit", f"is {row['unit']!r}, but {name} is measured in {wanted.unit}")
        if better and better != wanted.better:
            raise BadField("better", f"is {better!r}, but of {name} {wanted.better} is better")
        return wanted, factor
    if len(unit) > LONGEST_UNIT or not unit.isprintable():
        raise BadField("unit", f"has {len(unit)} characters, at most {LONGEST_UNIT} are allowed")
    return units.reported_metric(name.removeprefix(units.PREFIX) or "value", unit, better or "lower"), factor


def _parse_repetition(row: Row) -> int:
    text = row.get("repetition") or "0"
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise BadField("repetition", f"is {text!r}, not a whole number below 10000")
    return int(text)


def _parse_value(row: Row, factor: float) -> float:
    try:
        value = float(row["value"]) * factor
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadField("value", f"is {row['value']!r}, not a finite number")
    return value


def _collect_runs(contents: CsvContents) -> Iterator[ImportedRun]:
    """The rows of each run together, in the file's order."""
    by_key: dict[RunIdentity, list[ImportedValue]] = {}
    for (key, metric), repetitions in contents.samples.items():
        samples = tuple(value for _, (value, _) in sorted(repetitions.items()))
        value = ImportedValue(metric, median(samples), samples=samples if len(samples) > 1 else ())
        by_key.setdefault(key, []).append(value)
    for key, values in by_key.items():
        date, branch, _ = contents.commits[key.commit]
        yield ImportedRun(
            key.commit, date, key.benchmark, dict(key.params), key.pool, tuple(values), branch=branch
        )
