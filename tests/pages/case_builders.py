"""Projects of many cases, with the latest states that grids are drawn from."""

from __future__ import annotations

import random
from typing import Any

from dashboard.models import Case, Configuration, Metric, Project, Run, Series, SeriesLatest
from tests.pages import builders

HEADLINES = (
    *(("throughput", "steps/s", "higher", "rate"), ("step_time", "s", "lower", "time")),
    ("peak_memory", "bytes", "lower", "memory"),
)


def create_cases(count: int, slug: str = "snake", **fields: Any) -> Project:
    """A project with so many cases, each with thirty values; case n is n per mille slower than before."""
    project = builders.create_project(slug)
    line = builders.create_commits(project, 30)
    benchmarks = ("snake", "walker", "mario")
    cases = Case.objects.bulk_create(
        Case(project=project, benchmark=benchmarks[at % 3], key=f"batch={at:03d}", params={"batch": at})
        for at in range(count)
    )
    pool = builders.get_pool()
    configurations = Configuration.objects.bulk_create(
        Configuration(case=case, version=1, pool=pool) for case in cases
    )
    run = builders.create_run(line[-1], builders.create_case(project, "first"))
    metrics = [
        Metric.objects.get_or_create(name=name, better=better, defaults={"unit": unit, "kind": kind})[0]
        for name, unit, better, kind in HEADLINES
    ]
    series = Series.objects.bulk_create(
        Series(configuration=configuration, metric=metric, headline=True)
        for configuration in configurations
        for metric in metrics
    )
    SeriesLatest.objects.bulk_create(
        make_state(row, run, 1 - at // len(metrics) / 1000, fields) for at, row in enumerate(series)
    )
    return project


def make_state(row: Series, run: Run, moved: float, fields: dict[str, Any]) -> SeriesLatest:
    noise = random.Random(row.pk)  # noqa: S311
    recent = [100 * moved * noise.gauss(1, 0.01) for _ in range(30)]
    values: dict[str, Any] = {
        "recent": recent,
        "recent_positions": list(range(30)),
        "recent_machines": [run.machine_id] * 30,
        "current_value": 100 * moved,
        "base_value": 100.0,
        "base_position": 3,
    }
    return SeriesLatest(series=row, run=run, position=29, value=recent[-1], **(values | fields))
