"""A document as tables for people, phases as bars."""

from __future__ import annotations

from collections.abc import Sequence

from .document import Document, Value

BAR = 30
NAME_WIDTH = 72
_PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def table(found: Document) -> str:
    """Return the document as text: headline metrics, phases, hottest functions, warnings."""
    identity = found.benchmark
    title = f"{identity.name} version {identity.version}  {identity.case}".rstrip()
    parts = [title, _metrics(found), _phases(found), _functions(found), _warnings(found)]
    return "\n\n".join(part for part in parts if part)


def amount(value: float, unit: str) -> str:
    """Return a value for people: `1.52 ms`, `312.4 MiB`, `620.1 calls/step`."""
    if unit == "s":
        scale, prefix = next((pair for pair in _PREFIXES if abs(value) >= pair[0]), _PREFIXES[-1])
        return f"{value / scale:.3g} {prefix}"
    if unit.startswith("bytes"):
        return f"{value / 2**20:.1f} MiB{unit.removeprefix('bytes')}"
    return f"{value:.4g} {unit}" if unit != "1" else f"{value:.4g}"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns; the first is flush left, the others flush right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def _metrics(found: Document) -> str:
    rows = [_metric(value) for value in found.metrics if value.phase is None]
    return columns([["metric", "median", "interval", ""], *rows])


def _metric(value: Value) -> list[str]:
    interval = ""
    if value.low is not None and value.high is not None:
        interval = f"[{amount(value.low, value.unit)}, {amount(value.high, value.unit)}]"
    return [value.name, amount(value.value, value.unit), interval, "exact" if value.exact else ""]


def _phases(found: Document) -> str:
    rows = [
        [
            row.path if row.thread == "main" else f"{row.path} [{row.thread}]",
            amount(row.total, "s"),
            f"{row.share:.0%}",
            ("#" * round(BAR * min(row.share, 1.0))).ljust(BAR),
        ]
        for row in sorted(found.phases, key=lambda row: (row.thread != "main", row.path))
    ]
    return columns([["phase", "per step", "share", ""], *rows])


def _functions(found: Document) -> str:
    if found.profile is None:
        return ""
    rows = [
        [_short(f"{row.function}  {row.file}:{row.line}"), f"{row.calls:.4g}", amount(row.self_time, "s")]
        for row in found.profile.functions[:10]
    ]
    return columns([["function", "calls/step", "self/step"], *rows])


def _short(text: str) -> str:
    # The end has the file and the line.
    return text if len(text) <= NAME_WIDTH else f"...{text[3 - NAME_WIDTH :]}"


def _warnings(found: Document) -> str:
    return "\n".join(
        f"{'tainted' if doubt.taints else 'warning'}: {doubt.message} ({doubt.code}): {doubt.advice}"
        for doubt in found.warnings
    )
