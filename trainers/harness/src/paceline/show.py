"""A document as tables for people, phases as bars."""

from __future__ import annotations

from .document import Document, MetricValue
from .findings import counters, job, limits, processes, scaling
from .units import align_columns, format_amount, format_count, format_interval

BAR = 30
NAME_WIDTH = 72


def table(found: Document) -> str:
    """Return the document as text: how it was measured, its metrics, what explains them, and its warnings."""
    parts = (
        _title(found),
        _metrics(found),
        job(found),
        limits(found),
        _phases(found),
        counters(found),
        scaling(found),
        processes(found),
        _functions(found),
        _operations(found),
        _warnings(found),
    )
    return "\n\n".join(part for part in parts if part)


def _title(found: Document) -> str:
    identity, protocol, environment = found.benchmark, found.protocol, found.environment
    lines = [f"{identity.name} version {identity.version}  {identity.case}".rstrip()]
    aside = f", {len(found.set_aside)} more set aside" if found.set_aside else ""
    lines.append(
        f"{format_count(len(found.repetitions), 'repetition')} of {format_count(protocol['steps'], 'step')} "
        f"after {protocol['warmup_steps']:,}{aside}{', quick' if protocol['quick'] else ''}"
    )
    torch = f", torch {environment['torch']}" if environment["torch"] else ""
    lines.append(f"{found.created}, harness {found.harness_version}, Python {environment['python']}{torch}")
    return "\n".join(lines)


def _metrics(found: Document) -> str:
    rows = [_metric(value) for value in found.metrics if value.phase is None]
    return align_columns([["metric", "median", "interval", ""], *rows])


def _metric(value: MetricValue) -> list[str]:
    return [
        value.name,
        format_amount(value.value, value.unit),
        format_interval(value.low, value.high, value.unit),
        "exact" if value.exact else "",
    ]


def _phases(found: Document) -> str:
    rows = [
        [
            row.path if row.thread == "main" else f"{row.path} [{row.thread}]",
            format_amount(row.total, "s"),
            "" if row.device_total is None else format_amount(row.device_total, "s"),
            f"{row.share:.0%}",
            ("#" * round(BAR * min(row.share, 1.0))).ljust(BAR),
        ]
        for row in sorted(found.phases, key=lambda row: (row.thread != "main", row.path))
    ]
    on_device = any(row[2] for row in rows)
    return align_columns([["phase", "per step", "on device" if on_device else "", "share", ""], *rows])


def _functions(found: Document) -> str:
    if found.profile is None:
        return ""
    rows = [
        [
            _short(f"{row.function}  {row.file}:{row.line}"),
            format_amount(row.calls, "1"),
            format_amount(row.self_time, "s"),
        ]
        for row in found.profile.functions[:10]
    ]
    return align_columns([["function", "calls/step", "self/step"], *rows])


def _operations(found: Document) -> str:
    if found.profile is None or not found.profile.operations:
        return ""
    seconds = found.profile.operation_seconds
    ordered = sorted(
        found.profile.operations.items(), key=lambda pair: (-seconds.get(pair[0], 0.0), -pair[1])
    )
    rows = [
        [_short(name), f"{number:.4g}", format_amount(seconds[name], "s") if name in seconds else ""]
        for name, number in ordered[:10]
    ]
    return align_columns([["tensor operation", "per step", "self/step"], *rows])


def _short(text: str) -> str:
    # The end has the file and the line.
    return text if len(text) <= NAME_WIDTH else f"...{text[3 - NAME_WIDTH :]}"


def _warnings(found: Document) -> str:
    return "\n".join(
        f"{'tainted' if doubt.taints else 'warning'}: {doubt.message} ({doubt.code}): {doubt.advice}"
        for doubt in found.warnings
    )
