"""What a reader of a foreign format hands on: measured cases at commits, in the site's words and units."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Scalar = str | int | float | bool


class ImportRefused(Exception):  # noqa: N818 - reads as a fact
    """Nothing is imported; the message is one sentence that names the file and the place in it."""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str
    better: str
    kind: str


@dataclass(frozen=True, slots=True)
class Value:
    """One metric's value in its unit; `samples` are fresh processes, empty where only one was run."""

    metric: Metric
    value: float
    low: float | None = None
    high: float | None = None
    samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """One case at one commit, as another tool measured it. `date` is the commit's.

    An empty `branch` is the project's own.
    """

    commit: str
    date: datetime
    benchmark: str
    params: Mapping[str, Scalar]
    pool: str
    values: tuple[Value, ...]
    branch: str = ""
    measured_at: datetime | None = None
    fingerprint: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Results:
    """All that was read, and how many results were left out, by reason."""

    runs: list[Measured] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def printable(text: str, most: int) -> str:
    """As `shortened`; a database holds no NUL, and a page shows no control character."""
    return shortened(text if text.isprintable() else ascii(text), most)


def shortened(text: str, most: int) -> str:
    """At most so many characters; what is cut off stays distinct by a digest."""
    if len(text) <= most:
        return text
    return f"{text[: most - 9]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
