"""Numbers for people: the unit's size follows the value, the digits follow what can be read."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
DIGITS = 3
# Enough to tell two numbers apart that differ by what a float holds of them.
MOST_DIGITS = 12
# A smaller share than this, in %, is as good as none.
LEAST_PERCENT = 0.001
# A signed number from here on is shown by its first digits.
HUGE = 10_000
# An end of an interval beyond this, in %, says that there is none.
ENDLESS = 10_000

# A size serves from itself on; minutes and hours a little later, since `74.2 s` reads better than `1.24 min`.
_SECONDS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SERVES_FROM = {"min": 120.0, "h": 7200.0}
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_COUNTS = ((1e9, "G"), (1e6, "M"), (1.0, ""))
_SECOND_NAMES = {"s", "seconds"}
# What the measured code counts itself has a name of its own: `0.02 per step`.
REPORTED_COUNT = "count/step"
_BYTE_NAMES = {"bytes", "byte", "B"}


@dataclass(frozen=True, slots=True)
class Scale:
    """Divide a value by `size` and write `unit` behind it."""

    size: float
    unit: str


def choose_scale(unit: str, largest: float) -> Scale:
    """The size in which a value, or an axis that reaches `largest`, reads best."""
    reach = abs(largest)
    scales = _scales_of(unit)
    if reach == 0:
        return next(scale for _, scale in scales if scale.size == 1.0)
    for serves_from, scale in scales:
        if reach >= serves_from:
            return scale
    return scales[-1][1]


@functools.lru_cache(maxsize=1000)
def _scales_of(unit: str) -> list[tuple[float, Scale]]:
    """(the smallest value that reads well in it, the scale), the largest first."""
    base, slash, per = unit.partition("/")
    if base.strip() in _SECOND_NAMES:
        sizes = [(size, name, f"{name}{slash}{per}") for size, name in _SECONDS]
    elif base.strip() in _BYTE_NAMES:
        sizes = [(size, name, f"{name}{slash}{per}") for size, name in _BYTES]
    else:
        counted = {REPORTED_COUNT: "per step", "1": ""}.get(unit, unit)
        sizes = [(size, prefix, f"{prefix} {counted}".strip()) for size, prefix in _COUNTS]
    return [(_SERVES_FROM.get(name, size), Scale(size, written)) for size, name, written in sizes]


def format_count(number: int, noun: str, plural: str = "") -> str:
    """`1 run`, `3 runs`, `1,200 entries`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def format_tick(value: float, step: float) -> str:
    """A number beside a line of an axis whose lines are `step` apart.

    >>> format_tick(0.30000000000000004, 0.1), format_tick(20.0, 5.0)
    ('0.3', '20')
    """
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{abs(value):.{digits}f}"
    text = text.rstrip("0").rstrip(".") if digits else text
    return MINUS + text if value < 0 and text != "0" else text


def format_number(value: float, digits: int = DIGITS) -> str:
    """Three significant digits, thousands apart, a real minus sign; whole numbers stay whole.

    >>> format_number(1234.5), format_number(12.345), format_number(0.01234), format_number(256.0)
    ('1,234', '12.3', '0.0123', '256')
    """
    size = abs(value)
    if value == int(value) and size < 1e6:
        text = f"{int(size):,}"
    elif size >= 10 ** (digits - 1):
        text = f"{size:,.0f}"
    elif size >= 1e-4:
        text = f"{size:#.{digits}g}".rstrip(".")
    else:
        text = f"{size:.{digits - 1}g}"
    return MINUS + text if value < 0 and text != "0" else text


def format_fixed(value: float, decimals: int) -> str:
    """So many decimals whatever the size, for numbers that stand below each other: `1.90`, `1.00`."""
    text = f"{abs(value):,.{decimals}f}"
    return MINUS + text if value < 0 and float(text.replace(",", "")) else text


def format_field(value: float) -> str:
    """As a person types it into a field: `20`, `0.5`."""
    return f"{value:g}"


def format_quantity(value: float | None, unit: str, digits: int = DIGITS) -> str:
    """A value with its unit, such as `1.23 ms`, `48.1 MB`, `8,412 steps/s`; a dash where there is none.

    Of a share next to nothing `<0.001 %`.
    """
    if value is None:
        return DASH
    if unit == "%" and 0 < value < LEAST_PERCENT and digits == DIGITS:
        return f"<{LEAST_PERCENT:g} %"
    scaled = choose_scale(unit, value)
    return f"{format_number(value / scaled.size, digits)} {scaled.unit}".strip()


def crossing_digits(value: float, bound: float, unit: str) -> int:
    """The digits with which a value and a bound are written so that both show on which side the value lies.

    >>> crossing_digits(71.0, 80.0, "%"), crossing_digits(1.0004e9, 1e9, "bytes")
    (3, 5)
    """

    def is_shown(digits: int) -> bool:
        written, edge = (_written_value(number, unit, digits) for number in (value, bound))
        return (written > edge) == (value > bound) and (written < edge) == (value < bound)

    return next(filter(is_shown, range(DIGITS, MOST_DIGITS)), MOST_DIGITS)


def _written_value(value: float, unit: str, digits: int) -> float:
    """What is read where a value is written with so many digits."""
    size = choose_scale(unit, value).size
    return float(format_number(value / size, digits).replace(",", "").replace(MINUS, "-")) * size


def format_interval(low: float | None, high: float | None, unit: str, beside: float | None = None) -> str:
    """`[1.21, 1.26] ms`: both ends in the unit of the larger, or in that of the value that they stand beside;
    empty where the interval is unknown."""
    if low is None or high is None:
        return ""
    scaled = choose_scale(unit, max(abs(low), abs(high)) if beside is None else beside)
    return f"[{format_number(low / scaled.size)}, {format_number(high / scaled.size)}] {scaled.unit}".strip()


def format_percent_change(ratio: float | None) -> str:
    """The change that a ratio means, with its sign: `+38 %`."""
    if ratio is None:
        return "from nothing"
    return format_signed(100 * (ratio - 1)) + " %"


def format_percent(percent: float) -> str:
    """A size in percent, without a sign, with the digits of a change: `38 %`, `1.2 %`."""
    return format_signed(abs(percent)).removeprefix("+") + " %"


def format_percent_interval(low: float | None, high: float | None) -> str:
    """The interval of a ratio, in percent of change: `[35, 41]`; empty where it is unknown.

    An end that no effect reaches, as of few pairs, is as good as none: `[3.0, ∞]`.
    """
    if low is None or high is None:
        return ""
    least, most = (100 * (end - 1) for end in (low, high))
    ends = [format_signed(end).removeprefix("+") for end in (least, most)]
    return f"[{ends[0]}, {'∞' if least < ENDLESS < most else ends[1]}]"


def format_ratio(ratio: float | None, low: float | None, high: float | None) -> str:
    """`+10 % [8, 13]`; empty of a ratio that isn't known."""
    if ratio is None:
        return ""
    return f"{format_percent_change(ratio)} {format_percent_interval(low, high)}".strip()


def format_exponent_difference(ratio: float) -> str:
    """The difference of two exponents, of which `ratio` is the power of e: `+0.42`."""
    return f"{math.log(ratio):+.2f}".replace("-", MINUS)


def format_exponent_interval(low: float | None, high: float | None) -> str:
    """Its interval: `[0.38, 0.45]`; empty where it is unknown."""
    if low is None or high is None:
        return ""
    return f"[{math.log(low):.2f}, {math.log(high):.2f}]".replace("-", MINUS)


def format_signed_quantity(value: float, unit: str) -> str:
    """A difference with its sign: `+12.3 kB/1000 steps`."""
    if value == 0:
        return "0"
    return f"{MINUS if value < 0 else '+'}{format_quantity(abs(value), unit)}"


def format_signed(value: float) -> str:
    """Enough digits to tell changes apart: one decimal below ten, none above; three of what is huge."""
    size = abs(value)
    if size >= HUGE:
        size = float(f"{size:.{DIGITS}g}")
    text = f"{size:.1f}" if size < 9.95 else f"{size:,.0f}"
    if float(text.replace(",", "")) == 0:
        return "0"
    return (MINUS if value < 0 else "+") + text


def format_seconds(seconds: float) -> str:
    """Seconds of a part of a step, in the unit that suits: `1.2 ms`."""
    return format_quantity(seconds, "s")


def format_duration(seconds: float) -> str:
    """A length of time as people say it: `45 s`, `2 min 5 s`, `3 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d"


def hours_text(hours: float | None) -> str:
    """Hours as a length of time, a dash where they aren't known."""
    return DASH if hours is None else format_duration(3600 * hours)


def format_hours(hours: float) -> str:
    """Tenths below ten hours, whole hours above."""
    return format_number(round(hours)) if abs(hours) >= 10 else format_number(hours, 2)


# Of a share beyond this nobody needs a digit behind the point.
MOST_EXACT = 1.05
# What differs by less differs by how it was added up.
SHARE_DECIMALS = 9


def format_share(value: float | None) -> str:
    """0.123 -> `12 %`, 0.0123 -> `1.2 %`, 0.998 -> `99.8 %`, 1e-5 -> `0 %`: digits where they tell.

    What is less than nothing has as many.
    """
    if value is None:
        return DASH
    value = round(value, SHARE_DECIMALS)
    if 0.9995 <= value < 1:
        return "> 99.9 %"
    if abs(value) < 0.0005:
        return "0 %"
    whole = 0.0995 <= abs(value) <= 0.99 or abs(value) in (0, 1) or abs(value) > MOST_EXACT
    text = f"{100 * value:.0f} %" if whole else f"{100 * value:.1f} %"
    return text.replace("-", MINUS)
