"""A benchmark of the manifest in a few lines."""

from __future__ import annotations

from .. import metrics
from ..manifest.benchmarks import Benchmark
from ..units import format_amount, format_count, format_number


def describe_benchmark(benchmark: Benchmark) -> str:
    """Return a benchmark's name and size, its cases, and what else is measured or watched of it."""
    size = f"{format_count(benchmark.repetitions, 'repetition')} of {format_count(benchmark.steps, 'step')}"
    lines = [f"{benchmark.name}  version {benchmark.version}, {benchmark.script}, {size}"]
    lines += [f"  {case.key or '(no parameters)'}" for case in benchmark.cases]
    if benchmark.scaling is not None:
        values = ", ".join(format_number(value) for value in benchmark.scaling.values)
        lines.append(f"  scaling: {benchmark.scaling.parameter} {values}")
    if benchmark.job is not None:
        lines.append(f"  job: {format_number(benchmark.job.amount)} {benchmark.job.unit}")
    for bound in benchmark.limits:
        metric = metrics.describe_metric(bound.metric)
        unit = metric.unit if metric else "1"
        least = "" if bound.minimum is None else f" from {format_amount(bound.minimum, unit)}"
        most = "" if bound.maximum is None else f" up to {format_amount(bound.maximum, unit)}"
        lines.append(f"  limit: {bound.name}{least}{most}")
    return "\n".join(lines)
