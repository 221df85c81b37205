"""What a reader of another tool's format returns: cases measured at commits, in our words and units."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Scalar = str | int | float | bool

LONGEST_PARAM = 60


class ImportRefused(Exception):  # noqa: N818 - reads as a fact
    """Nothing is imported; the message is one sentence that names the file and the place in it."""


@dataclass(frozen=True, slots=True)
class ImportedMetric:
    name: str
    unit: str
    better: str
    kind: str


@dataclass(frozen=True, slots=True)
class ImportedValue:
    """One metric's value in its unit; `samples` are fresh processes, empty where only one was run."""

    metric: ImportedMetric
    value: float
    low: float | None = None
    high: float | None = None
    samples: tuple[float, ...] = ()
    # The path of a phase; empty: the whole step.
    phase: str = ""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One case at one commit, as another tool measured it. `date` is the commit's.

    An empty `branch` is the project's own.
    """

    commit: str
    date: datetime
    benchmark: str
    params: Mapping[str, Scalar]
    pool: str
    values: tuple[ImportedValue, ...]
    branch: str = ""
    measured_at: datetime | None = None
    fingerprint: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportOrigin:
    """What a person says of results that don't say it themselves; empty where nothing is said.

    `ask_date` is asked for the date of a commit that nobody says.
    """

    commit: str = ""
    date: datetime | None = None
    pool: str = ""
    benchmark: str = ""
    ask_date: Callable[[str], datetime | None] = lambda _commit: None


@dataclass(slots=True)
class ImportedResults:
    """All that was read, and how many results were left out, by reason."""

    runs: list[ImportedRun] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def printable_text(text: str, most: int) -> str:
    """As `shorten_text`; a database holds no NUL, and a page shows no control character."""
    return shorten_text(text if text.isprintable() else ascii(text), most)


def shorten_text(text: str, most: int) -> str:
    """At most so many characters; a digest keeps apart what differs in the rest only."""
    if len(text) <= most:
        return text
    return f"{text[: most - 9]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
