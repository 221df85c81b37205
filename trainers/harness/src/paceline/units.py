"""Numbers for a terminal: the unit's size follows the value, three digits of it are shown."""

from __future__ import annotations

DIGITS = 3

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
# Powers of 1,000, as the site has them: 1 MB are 1,000,000 bytes.
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_COUNTS = ((1e9, "G"), (1e6, "M"), (1.0, ""))
_DURATIONS = ((86400 * 2, 86400, "d"), (3600, 3600, "h"), (60, 60, "min"))


def format_amount(value: float, unit: str) -> str:
    """Return a value for people: `1.52 ms`, `328 MB`, `620 calls/step`, `8,412 steps/s`."""
    base, slash, per = unit.partition("/")
    sizes = {"s": _SECONDS, "bytes": _BYTES}.get(base, _COUNTS)
    size, name = _fitting_unit(sizes, value)
    if sizes is _COUNTS:
        return f"{format_number(value / size)} {name}{'' if unit == '1' else unit}".rstrip()
    return f"{format_number(value / size)} {name}{slash}{per}"


def format_interval(low: float | None, high: float | None, unit: str) -> str:
    """Return `[1.21 ms, 1.26 ms]`, empty where the interval isn't known."""
    return "" if low is None or high is None else f"[{format_amount(low, unit)}, {format_amount(high, unit)}]"


def format_number(value: float) -> str:
    """Return three significant digits, thousands apart; whole numbers stay whole.

    >>> number(1234.5), number(12.345), number(0.01234), number(256.0)
    ('1,234', '12.3', '0.0123', '256')
    """
    size = abs(value)
    if size >= 10 ** (DIGITS - 1) or (value == int(value) and size < 1e6):
        return f"{value:,.0f}"
    return f"{value:.{DIGITS}g}" if size >= 1e-4 else f"{value:.{DIGITS - 1}g}"


def format_duration(seconds: float) -> str:
    """Return a length of time in the largest unit that it fills: `7.4 h`, `3.2 d`, `45 s`."""
    for least, size, unit in _DURATIONS:
        if seconds >= least:
            return (
                f"{seconds / size:,.3g} {unit}" if seconds / size < 1000 else f"{seconds / size:,.0f} {unit}"
            )
    return format_amount(seconds, "s")


def format_count(count: int, noun: str) -> str:
    """Return `1 repetition`, `3 repetitions`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def align_columns(rows: list[list[str]]) -> str:
    """Return rows as aligned columns; the first is flush left, the others flush right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def _fitting_unit(sizes: tuple[tuple[float, str], ...], value: float) -> tuple[float, str]:
    if value == 0:
        return next(pair for pair in sizes if pair[0] == 1.0)
    return next((pair for pair in sizes if abs(value) >= pair[0]), sizes[-1])
