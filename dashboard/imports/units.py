"""Units and names of other tools as the site's: seconds and bytes, and a metric that reads right."""

from __future__ import annotations

from paceline.metrics import describe_metric

from dashboard.imports.results import ImportedMetric, shorten_text
from dashboard.name_lengths import LONGEST_METRIC

# A unit as other tools write it -> (the site's unit, factor).
FACTORS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("s", 1.0)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), ("s", 1e-3)),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), ("s", 1e-6)),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), ("s", 1e-9)),
    **dict.fromkeys(("min", "minute", "minutes"), ("s", 60.0)),
    **dict.fromkeys(("h", "hour", "hours"), ("s", 3600.0)),
    **dict.fromkeys(("B", "byte", "bytes"), ("bytes", 1.0)),
    **{f"{prefix}B": ("bytes", 1e3**power) for power, prefix in enumerate(("k", "M", "G", "T"), 1)},
    **{f"{prefix}iB": ("bytes", 2.0 ** (10 * power)) for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
    "KB": ("bytes", 1e3),
}
PREFIX = "gauge."
# Names whose unit and direction each project says for itself.
OPEN_PREFIXES = ("count.", "gauge.", "quality.")


def normalise_unit(unit: str) -> tuple[str, float]:
    """The site's unit for another tool's, and what to multiply values by; `1` where there is none."""
    return FACTORS.get(unit, (unit or "1", 1.0))


def reported_metric(name: str, unit: str, better: str) -> ImportedMetric:
    """A value that the measured code reported itself, under its own name; `unit` is the site's."""
    kind = "time" if unit == "s" else "rate" if unit.endswith("/s") else "utilization"
    return ImportedMetric(shorten_text(PREFIX + name, LONGEST_METRIC), unit, better, kind)


def standard_metric(name: str) -> ImportedMetric:
    """A metric of the harness's own table."""
    row = describe_metric(name)
    if row is None:
        raise KeyError(name)
    return ImportedMetric(row.name, row.unit, row.better, row.kind)
