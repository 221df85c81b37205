"""Validates a document: one that its run can't have, or that fits no table, is refused and not written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import models
from paceline import document
from paceline.document import Document, DocumentError

from dashboard.models import Metric, Run, Series, Telemetry

LARGEST_DEVICE = 32767


class BadDocument(Exception):  # noqa: N818 - reads as a fact
    """The document is refused; the message is one sentence that names the field.

    `field` is its path, such as `metrics[0].unit`; empty for the document itself.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field or 'document'}: {problem}")
        self.field = field


def validate_document(data: bytes, run: Run) -> Document:
    """The document of this run, by the schema and by what the run asked for; raises BadDocument."""
    try:
        checked = document.read_document(data)
    except DocumentError as error:
        raise BadDocument(error.path, error.sentence) from error
    for problems in (
        _benchmark_mismatches(checked, run),
        _misfit_fields(checked),
        _repeated_limits(checked),
    ):
        for path, problem in problems:
            raise BadDocument(path, problem)
    return checked


def _benchmark_mismatches(checked: Document, run: Run) -> Iterator[tuple[str, str]]:
    """Where the document is about another benchmark, version, case or protocol than the run."""
    pairs = (
        ("benchmark.name", checked.benchmark.name, run.case.benchmark),
        ("benchmark.version", checked.benchmark.version, run.version),
        ("benchmark.case", checked.benchmark.case, run.case.key),
        ("protocol.quick", checked.protocol["quick"], run.quick),
    )
    for path, actual, expected in pairs:
        if actual != expected:
            yield path, f"is {actual!r}, this run measures {expected!r}"


def _misfit_fields(checked: Document) -> Iterator[tuple[str, str]]:
    """What is longer or larger than its column, or stands twice where a row is unique."""
    for index, value in enumerate(checked.metrics):
        yield from _overlong_text(f"metrics[{index}].name", value.name, Metric, "name")
        yield from _overlong_text(f"metrics[{index}].unit", value.unit, Metric, "unit")
        yield from _overlong_text(f"metrics[{index}].phase", value.phase or "", Series, "phase")
    seen = set()
    for index, row in enumerate(checked.telemetry):
        yield from _overlong_text(f"telemetry[{index}].channel", row.channel, Telemetry, "channel")
        yield from _overlong_text(f"telemetry[{index}].unit", row.unit, Telemetry, "unit")
        if row.device is not None and row.device > LARGEST_DEVICE:
            yield f"telemetry[{index}].device", f"is {row.device}, at most {LARGEST_DEVICE} is allowed"
        key = (row.repetition, row.channel, row.device)
        if key in seen:
            yield f"telemetry[{index}]", f"{row.channel} of repetition {row.repetition} stands twice"
        seen.add(key)


def _repeated_limits(checked: Document) -> Iterator[tuple[str, str]]:
    """A limit stands beside its metric's point: there can be only one."""
    seen = set()
    for index, limit in enumerate(checked.limits):
        if (limit.metric, limit.phase) in seen:
            yield f"limits[{index}]", f"{limit.metric} of phase {limit.phase} stands twice"
        seen.add((limit.metric, limit.phase))


def _overlong_text(path: str, text: str, model: type[models.Model], name: str) -> Iterator[tuple[str, str]]:
    column: Any = model._meta.get_field(name)
    if len(text) > column.max_length:
        yield path, f"has {len(text)} characters, at most {column.max_length} are allowed"
