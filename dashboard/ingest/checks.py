"""Is a document one that this run can have, and does it fit the tables? Asked before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import models
from paceline import document
from paceline.document import Document, DocumentError

from dashboard.models import Metric, Series, Telemetry
from dashboard.runs import Assignment

LARGEST_DEVICE = 32767


class BadDocument(Exception):  # noqa: N818 - reads as a fact
    """The document is refused; the message is one sentence that names the field."""


def read(data: bytes, assignment: Assignment) -> Document:
    """The checked document of this run; raises BadDocument."""
    try:
        found = document.read(data)
    except DocumentError as error:
        raise BadDocument(str(error)) from error
    for path, problem in [*_mismatches(found, assignment), *_too_long(found), *_twice(found)]:
        raise BadDocument(f"{path}: {problem}")
    return found


def _mismatches(found: Document, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Where the document speaks of something else than what was asked for."""
    pairs = (
        ("benchmark.name", found.benchmark.name, assignment.benchmark),
        ("benchmark.version", found.benchmark.version, assignment.version),
        ("benchmark.case", found.benchmark.case, assignment.case_key),
        ("protocol.quick", found.protocol["quick"], assignment.quick),
    )
    for path, is_, wanted in pairs:
        if is_ != wanted:
            yield path, f"is {is_!r}, this run measures {wanted!r}"


def _too_long(found: Document) -> Iterator[tuple[str, str]]:
    for index, value in enumerate(found.metrics):
        yield from _longer(f"metrics[{index}].name", value.name, Metric, "name")
        yield from _longer(f"metrics[{index}].unit", value.unit, Metric, "unit")
        yield from _longer(f"metrics[{index}].phase", value.phase or "", Series, "phase")
    seen = set()
    for index, row in enumerate(found.telemetry):
        yield from _longer(f"telemetry[{index}].channel", row.channel, Telemetry, "channel")
        yield from _longer(f"telemetry[{index}].unit", row.unit, Telemetry, "unit")
        if row.device is not None and row.device > LARGEST_DEVICE:
            yield f"telemetry[{index}].device", f"is {row.device}, at most {LARGEST_DEVICE} is allowed"
        key = (row.repetition, row.channel, row.device)
        if key in seen:
            yield f"telemetry[{index}]", f"{row.channel} of repetition {row.repetition} stands twice"
        seen.add(key)


def _twice(found: Document) -> Iterator[tuple[str, str]]:
    """A limit stands beside its metric's point: there can be only one."""
    seen = set()
    for index, limit in enumerate(found.limits):
        if (limit.metric, limit.phase) in seen:
            yield f"limits[{index}]", f"{limit.metric} of phase {limit.phase} stands twice"
        seen.add((limit.metric, limit.phase))


def _longer(path: str, text: str, model: type[models.Model], name: str) -> Iterator[tuple[str, str]]:
    column: Any = model._meta.get_field(name)
    if len(text) > column.max_length:
        yield path, f"has {len(text)} characters, at most {column.max_length} are allowed"
