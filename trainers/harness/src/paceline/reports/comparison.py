"""Two documents of one case side by side: ratios with intervals, `~` where there is no difference."""

from __future__ import annotations

import math

from .. import profile
from ..document import Document
from ..document_rows import MetricValue
from ..metrics import is_signed
from ..phase_names import spell_metric
from ..statistics import ratio_interval, shift_interval
from ..units import align_columns, format_amount, format_count
from .device_report import timeline_tables

MOST_DIFFERING = 10
EXPONENTS = "scaling_exponent"
MUCH_OF_ALL = 0.25
# On each side, as a site's comparison has it: the widest interval of three against three holds 90 %, and of a
# document's many metrics some would differ by chance.
LEAST_SAMPLES = 4


class ComparisonError(Exception):
    """The documents measured different things; the message is one sentence."""


def compare_documents(before: Document, after: Document) -> str:
    """Return the comparison as text; raises ComparisonError where case or benchmark version differ."""
    _check_comparable(before, after)
    rows = [_metric_row(value, after.metric(value.name, value.phase)) for value in before.metrics]
    new = [value for value in after.metrics if before.metric(value.name, value.phase) is None]
    rows += [
        [spell_metric(value.name, value.phase), "-", format_amount(value.value, value.unit), "only after"]
        for value in new
    ]
    notes = _comparison_notes(before, after)
    metrics = "\n".join([*notes, align_columns([["metric", "before", "after", "after / before"], *rows])])
    return "\n\n".join([metrics, *_profile_tables(before, after), *timeline_tables(before, after)])


def _metric_row(before: MetricValue, after: MetricValue | None) -> list[str]:
    row = [spell_metric(before.name, before.phase), format_amount(before.value, before.unit)]
    if after is None:
        return [*row, "-", "only before"]
    return [*row, format_amount(after.value, after.unit), compare_values(before, after)]


def _profile_tables(before: Document, after: Document) -> list[str]:
    """Return tables of the functions and of the tensor operations that differ most, both ways."""
    if before.profile is None or after.profile is None:
        return []
    differences = profile.subtract_profiles(before.profile, after.profile)
    parts = (("function", differences.functions), ("tensor operation", differences.operations))
    return [_difference_table(title, rows) for title, rows in parts if _largest_differences(rows)]


def _largest_differences(differences: list[profile.Difference]) -> list[profile.Difference]:
    """Return the rows whose calls differ; the times of a profile are noise, unless they differ by much."""
    much = MUCH_OF_ALL * math.fsum(abs(row.self_time) for row in differences)
    ordered = sorted(differences, key=lambda row: (not row.calls, -abs(row.self_time)))
    return [row for row in ordered if row.calls or abs(row.self_time) > much][:MOST_DIFFERING]


def _difference_table(title: str, differences: list[profile.Difference]) -> str:
    rows = [
        ["  ".join(row.name), f"{row.calls:+.4g}", _format_signed(row.self_time)]
        for row in _largest_differences(differences)
    ]
    return align_columns([[title, "calls/step", "self/step"], *rows])


def _format_signed(value: float, unit: str = "s") -> str:
    return f"{'-' if value < 0 else '+'}{format_amount(abs(value), unit)}"


def compare_values(before: MetricValue, after: MetricValue) -> str:
    """Return `1.38 [1.35, 1.41] worse`, `~` where the samples show no difference, a question
    mark where they are too few.

    An exact counter differs or not; everything else differs if the interval of its ratio leaves out 1.
    """
    if before.exact and after.exact:
        return "~" if before.value == after.value else _exact_change(before, after)
    if before.kind == "counter" and set(before.samples) == set(after.samples):
        return "~"
    if before.name.startswith(EXPONENTS):
        return _compare_exponents(before, after)
    if is_signed(before.name) or min(before.samples + after.samples) <= 0:
        # What can be 0 or below, such as the growth of memory, has differences, no ratios.
        middle, low, high, confidence = shift_interval(before.samples, after.samples)
        change, *bounds = (_format_signed(number, before.unit) for number in (middle, low, high))
        text, none = f"{change} [{', '.join(bounds)}]", 0.0
    else:
        middle, low, high, confidence = ratio_interval(before.samples, after.samples)
        text, none = f"{middle:.3f} [{low:.3f}, {high:.3f}]", 1.0
    if min(len(before.samples), len(after.samples)) < LEAST_SAMPLES:
        return "?"
    if low <= none <= high:
        return "~"
    return f"{text} {_better_or_worse(middle > none, before)} ({confidence:.0%})"


def _compare_exponents(before: MetricValue, after: MetricValue) -> str:
    """Return the difference of two exponents; their intervals come from the fits, not from the samples."""
    bounds = (before.low, before.high, after.low, after.high)
    if None in bounds:
        return "?"
    if max(before.low or 0, after.low or 0) <= min(before.high or 0, after.high or 0):
        return "~"
    return f"{after.value - before.value:+.2f} {_better_or_worse(after.value > before.value, before)}"


def _better_or_worse(rose: bool, value: MetricValue) -> str:
    return "worse" if rose == (value.better == "lower") else "better"


def _exact_change(before: MetricValue, after: MetricValue) -> str:
    verdict = _better_or_worse(after.value > before.value, before)
    return f"{after.value / before.value:.4f} {verdict} (exact)" if before.value else f"{verdict} (exact)"


def _check_comparable(before: Document, after: Document) -> None:
    for name in ("name", "version", "case"):
        first, second = getattr(before.benchmark, name), getattr(after.benchmark, name)
        if first != second:
            raise ComparisonError(
                f"the documents differ in their benchmark's {name}: {first!r} and {second!r}"
            )
    for name in ("steps", "warmup_steps", "counting_steps"):
        if before.protocol[name] != after.protocol[name]:
            raise ComparisonError(
                f"the documents differ in {name}: {before.protocol[name]} and {after.protocol[name]}"
            )


def _comparison_notes(before: Document, after: Document) -> list[str]:
    names = ("python", "torch", "cuda", "driver", "cpu_model", "kernel")
    differing = [name for name in names if before.environment[name] != after.environment[name]]
    notes = [
        f"note: {name} differs, {before.environment[name]} before and {after.environment[name]} after"
        for name in differing
    ]
    counts = [len(measured.repetitions) for measured in (before, after)]
    if min(counts) < LEAST_SAMPLES:
        few = f"{format_count(counts[0], 'repetition')} before and {counts[1]} after"
        notes.append(f"note: {few} are too few to tell (?), each side needs {LEAST_SAMPLES}")
    for label, measured in (("before", before), ("after", after)):
        tainting = [warning for warning in measured.warnings if warning.taints]
        notes += [f"note: {label} is tainted: {warning.message}" for warning in tainting]
    return notes
