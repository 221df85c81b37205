"""Two documents of one case side by side: ratios with intervals, `~` where there is no difference."""

from __future__ import annotations

from .document import Document, Value
from .show import amount, columns
from .statistics import ratio_interval


class ComparisonError(Exception):
    """The documents measured different things; the message is one sentence."""


def table(before: Document, after: Document) -> str:
    """Return the comparison as text; raises ComparisonError where case or benchmark version differ."""
    _check(before, after)
    rows = []
    for value in before.metrics:
        other = after.metric(value.name, value.phase)
        if other is not None:
            name = f"{value.name}:{value.phase}" if value.phase else value.name
            rows.append(
                [name, amount(value.value, value.unit), amount(other.value, other.unit), ratio(value, other)]
            )
    notes = _notes(before, after)
    return "\n".join([*notes, columns([["metric", "before", "after", "after / before"], *rows])])


def ratio(before: Value, after: Value) -> str:
    """Return `1.38 [1.35, 1.41] worse`, or `~` where the samples show no difference.

    An exact counter differs or not; everything else differs if the interval of its ratio leaves out 1.
    """
    if before.exact and after.exact:
        return "~" if before.value == after.value else _change(before, after)
    samples = before.samples + after.samples
    if min(samples) <= 0 or min(len(before.samples), len(after.samples)) < 2:
        return "~" if before.value == after.value else "?"
    middle, low, high, confidence = ratio_interval(before.samples, after.samples)
    if low <= 1 <= high:
        return "~"
    worse = (middle > 1) == (before.better == "lower")
    return f"{middle:.3f} [{low:.3f}, {high:.3f}] {'worse' if worse else 'better'} ({confidence:.0%})"


def _change(before: Value, after: Value) -> str:
    worse = (after.value > before.value) == (before.better == "lower")
    verdict = "worse" if worse else "better"
    return f"{after.value / before.value:.4f} {verdict} (exact)" if before.value else f"{verdict} (exact)"


def _check(before: Document, after: Document) -> None:
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


def _notes(before: Document, after: Document) -> list[str]:
    names = ("python", "torch", "cuda", "driver", "cpu_model", "kernel")
    differing = [name for name in names if before.environment[name] != after.environment[name]]
    notes = [
        f"note: {name} differs, {before.environment[name]} before and {after.environment[name]} after"
        for name in differing
    ]
    for label, found in (("before", before), ("after", after)):
        notes += [f"note: {label} is tainted: {doubt.message}" for doubt in found.warnings if doubt.taints]
    return notes
