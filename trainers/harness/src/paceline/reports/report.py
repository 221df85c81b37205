"""A document as tables for people, phases as bars."""

from __future__ import annotations

from ..document import Document
from ..document_rows import MetricValue
from ..units import align_columns, format_amount, format_count, format_interval
from .device_report import describe_device_use, timeline_table
from .report_ranks import helpers_table, loaders_table, ranks_table
from .report_sections import (
    costs_table,
    counters_table,
    format_job,
    graph_breaks_table,
    learning_table,
    limits_table,
    processes_table,
    scaling_table,
    step_lines,
)

BAR = 30
NAME_WIDTH = 72
PLACE_WIDTH = 32  # of it at least for a function's file and line, and the gap before them


def format_document(document: Document) -> str:
    """Return the document as text: its origin, its metrics, what explains them, and its warnings."""
    parts = (
        _title_lines(document),
        _metrics_table(document),
        format_job(document),
        learning_table(document),
        limits_table(document),
        phases_table(document),
        counters_table(document),
        graph_breaks_table(document),
        scaling_table(document),
        processes_table(document),
        ranks_table(document),
        loaders_table(document),
        helpers_table(document),
        _functions_table(document),
        _operations_table(document),
        timeline_table(document),
        describe_device_use(document),
        costs_table(document),
        _warning_lines(document),
    )
    return "\n\n".join(part for part in parts if part)


def _title_lines(document: Document) -> str:
    identity, protocol, environment = document.benchmark, document.protocol, document.environment
    lines = [f"{identity.name} version {identity.version}  {identity.case}".rstrip()]
    aside = f", {len(document.set_aside)} more set aside" if document.set_aside else ""
    repetitions = format_count(len(document.repetitions), "repetition")
    window = f"{format_count(protocol['steps'], 'step')} after {protocol['warmup_steps']:,}"
    lines.append(f"{repetitions} of {window}{aside}{', quick' if protocol['quick'] else ''}")
    if document.step is not None:
        lines += step_lines(document.step)
    if document.ranks is not None:
        lines.append("times and phases are those of the rank with the longest step, counters those of rank 0")
    if document.counting is not None and document.counting.counted_at:
        lines.append(
            f"counters and profile are those of {document.counting.counted_at[:10]}, whose code is the same"
        )
    torch = f", torch {environment['torch']}" if environment["torch"] else ""
    python = f"Python {environment['python']}"
    lines.append(f"{document.created}, harness {document.harness_version}, {python}{torch}")
    return "\n".join(lines)


def _metrics_table(document: Document) -> str:
    rows = [_metric_row(value) for value in document.metrics if value.phase is None]
    return align_columns([["metric", "median", "interval", ""], *rows])


def _metric_row(value: MetricValue) -> list[str]:
    return [
        value.name,
        format_amount(value.value, value.unit),
        format_interval(value.low, value.high, value.unit),
        "exact" if value.exact else "",
    ]


def phases_table(document: Document) -> str:
    """Return the phases with their times and shares, as bars."""
    rows = [
        [
            row.path if row.thread == "main" else f"{row.path} [{row.thread}]",
            format_amount(row.total, "s"),
            "" if row.device_total is None else format_amount(row.device_total, "s"),
            f"{row.share:.0%}",
            ("#" * round(BAR * min(row.share, 1.0))).ljust(BAR),
        ]
        for row in sorted(document.phases, key=lambda row: (row.thread != "main", row.path))
    ]
    on_device = any(row[2] for row in rows)
    return align_columns([["phase", "per step", "on device" if on_device else "", "share", ""], *rows])


def _functions_table(document: Document) -> str:
    if document.profile is None:
        return ""
    rows = [
        [
            _locate_function(row.function, f"{row.file}:{row.line}"),
            format_amount(row.calls, "1"),
            format_amount(row.self_time, "s"),
        ]
        for row in document.profile.functions[:10]
    ]
    return align_columns([["function", "calls/step", "self/step"], *rows])


def _operations_table(document: Document) -> str:
    if document.profile is None or not document.profile.operations:
        return ""
    seconds = document.profile.operation_seconds
    ordered = sorted(
        document.profile.operations.items(), key=lambda pair: (-seconds.get(pair[0], 0.0), -pair[1])
    )
    rows = [
        [
            _shorten_head(name, NAME_WIDTH),
            f"{number:.4g}",
            format_amount(seconds[name], "s") if name in seconds else "",
        ]
        for name, number in ordered[:10]
    ]
    return align_columns([["tensor operation", "per step", "self/step"], *rows])


def _locate_function(name: str, place: str) -> str:
    """Return both, shortened to the width: of the place its head, then of the name."""
    name = name if len(name) <= NAME_WIDTH - PLACE_WIDTH else f"...{name[3 + PLACE_WIDTH - NAME_WIDTH :]}"
    return f"{name}  {_shorten_head(place, NAME_WIDTH - 2 - len(name))}"


def _shorten_head(text: str, width: int) -> str:
    # The end has the file and the line.
    return text if len(text) <= width else f"...{text[3 - width :]}"


def _warning_lines(document: Document) -> str:
    return "\n".join(
        f"{'tainted' if doubt.taints else 'warning'}: {doubt.message} ({doubt.code}): {doubt.advice}"
        for doubt in document.warnings
    )
