"""A JSON file of another tool, walked by its members: what is odd is refused with the path to it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from dashboard.imports.results import ImportOrigin, ImportRefused

ReportProgress = Callable[[int, int], None] | None


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """A value and where it stands: `path` is `benchmarks[3].stats`, empty for the whole file."""

    file: Path
    path: str
    value: Any

    def refuse(self, problem: str) -> ImportRefused:
        return ImportRefused(f"{self.file}: {self.path or 'the file'} {problem}.")

    def find(self, name: str) -> JsonPlace | None:
        """A member of an object; None where it isn't there, or null."""
        if not isinstance(self.value, dict):
            raise self.refuse("isn't an object")
        value = self.value.get(name)
        return None if value is None else self._below(f"{self.path}.{name}".lstrip("."), value)

    def member(self, name: str) -> JsonPlace:
        found = self.find(name)
        if found is None:
            raise self._below(f"{self.path}.{name}".lstrip("."), None).refuse("is missing")
        return found

    def members(self) -> Iterator[tuple[str, JsonPlace]]:
        if not isinstance(self.value, dict):
            raise self.refuse("isn't an object")
        for name, value in self.value.items():
            yield name, self._below(f'{self.path}["{name}"]', value)

    def items(self) -> Iterator[JsonPlace]:
        if not isinstance(self.value, list):
            raise self.refuse("isn't a list")
        for index, value in enumerate(self.value):
            yield self._below(f"{self.path}[{index}]", value)

    def read_text(self) -> str:
        if not isinstance(self.value, str) or not self.value.isprintable():
            raise self.refuse(f"is {shorten_value(self.value)}, not text that can be shown")
        return self.value

    def read_number(self) -> float:
        number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not number or not math.isfinite(self.value):
            raise self.refuse(f"is {shorten_value(self.value)}, not a finite number")
        return float(self.value)

    def read_date(self) -> datetime:
        try:
            parsed = datetime.fromisoformat(self.read_text())
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.refuse(f"is {shorten_value(self.value)}, not a date") from None

    def _below(self, path: str, value: Any) -> JsonPlace:
        return JsonPlace(self.file, path, value)


def read_json_files(path: Path, report_progress: ReportProgress = None) -> Iterator[JsonPlace]:
    """The file, or all those below a folder by their names; `report_progress` gets (files read, files)."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        raise ImportRefused(f"{path} holds no file whose name ends in .json.")
    for done, file in enumerate(files, start=1):
        yield load_json_file(file)
        if report_progress:
            report_progress(done, len(files))


def load_json_file(file: Path) -> JsonPlace:
    try:
        value = json.loads(file.read_bytes(), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImportRefused(f"{file} can't be read: {reason}.") from error
    return JsonPlace(file, "", value)


def locate_commit(
    origin: ImportOrigin, file: Path, commit: str = "", date: datetime | None = None
) -> tuple[str, datetime]:
    """The commit and its date: what a person says goes before what the file says, and that before git."""
    commit, date = origin.commit or commit, origin.date or date
    if not commit:
        raise ImportRefused(f"{file} doesn't say which commit it measured: give --commit.")
    date = date or origin.ask_date(commit)
    if date is None:
        raise ImportRefused(f"{file} doesn't say when its commit was made: give --date.")
    return commit, date


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def shorten_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
