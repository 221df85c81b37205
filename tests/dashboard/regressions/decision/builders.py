"""Facts as a test needs them: one branch, whose commits are their positions."""

from __future__ import annotations

import itertools
from typing import Any

from dashboard.regressions.decision.facts import Change, Commit, ExperimentVerdict, Metric, Regression, Series

KINDS = {
    "throughput": "rate",
    "peak_memory": "memory",
    "function_calls": "counter",
    "scalar_reads": "counter",
    "quality.score": "quality",
}
HIGHER_IS_BETTER = ("throughput", "quality.score")

_order = itertools.count(1)


def make_commit(position: int, branch: str = "main") -> Commit:
    return Commit(position + 1, f"{position:040x}", branch, position)


def make_series(name: str, configuration: int = 1, *, pool: int = 0, phase: str = "") -> Series:
    """The same series at each call."""
    metric = Metric(name, KINDS.get(name, "time"), "higher" if name in HIGHER_IS_BETTER else "lower")
    key = 1000 * configuration + sorted(("step_time", *KINDS)).index(name)
    exact = metric.kind == "counter"
    return Series(key, configuration, metric, phase, exact=exact, headline=not exact, pool_id=pool)


def make_change(series: Series, good: int, bad: int, ratio: float, **fields: Any) -> Change:
    """A step from 1 to `ratio` between two commits."""
    size = {"before": 1.0, "after": ratio, "ratio": ratio, "low": ratio - 0.02, "high": ratio + 0.02}
    key = 100_000 * series.pk + bad
    return Change(key, series, make_commit(good), make_commit(bad), **(size | fields))


def make_verdict(change: Change, verdict: str, good: int, bad: int, **fields: Any) -> ExperimentVerdict:
    """What pairs of a change's series said of two commits; each is newer than those before."""
    order = next(_order)
    values: dict[str, Any] = {"regression_id": 1, "purpose": "proof", "order": order}
    return ExperimentVerdict(
        experiment=order,
        series=change.series,
        base=make_commit(good),
        head=make_commit(bad),
        verdict=verdict,
        before=change.before,
        after=change.after,
        **(values | fields),
    )


def make_regression(change: Change, key: int = 1, **fields: Any) -> Regression:
    """The regression that a change has opened."""
    values: dict[str, Any] = {"ratio": change.ratio, "low": change.low, "high": change.high}
    return Regression(
        pk=key,
        first_bad=change.first_bad,
        last_good=change.last_good,
        series=change.series,
        before=change.before,
        after=change.after,
        **(values | fields),
    )
