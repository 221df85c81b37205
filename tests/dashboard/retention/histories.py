"""Old histories with everything that goes with age, and what detection makes of them."""

from __future__ import annotations

from typing import Any

from dashboard.environments import compared_values, store_environments
from dashboard.ingest import latest
from dashboard.models import (
    Case,
    Change,
    Document,
    Point,
    Project,
    Regression,
    Run,
    RunLog,
    Series,
    SeriesLatest,
    Telemetry,
)
from tests.dashboard import factories

KEEP_A_DAY = (
    "[policy.keep]\nlogs = 1\ntelemetry = 1\nprofiles = 1\ndocuments = 1\npoints = 1\npoints_every = 4"
)


def measure_values(project: Project, values: list[float], first: int = 0) -> list[Run]:
    """A run of each value, in seconds per step, at the commits of the project's branch from `first` on.

    Each ended when its commit was made, and has a log, a document, judged series, phases that explain them,
    and series that nothing reads.
    """
    case = Case.objects.filter(project=project).first() or factories.create_case(project)
    commits = factories.create_commits(project, len(values), first=first)
    ended = [{"finished_at": commit.committed_at, "judged_at": commit.committed_at} for commit in commits]
    bodies = [describe_run(value) for value in values]
    (known,) = store_environments([compared_values(bodies[0]["environment"], "0.1.0")])
    runs = factories.create_runs(commits, case, ended, environment_id=known)
    Document.objects.bulk_create(
        Document(run=run, format="paceline.document/1", body=body, sha256="0" * 64)
        for run, body in zip(runs, bodies, strict=True)
    )
    RunLog.objects.bulk_create(RunLog(run=run, text="printed") for run in runs)
    Telemetry.objects.bulk_create(
        Telemetry(run=run, repetition=0, channel="cpu", unit="%", start=0, interval=0.1, values=[90.0] * 50)
        for run in runs
    )
    keys = list(series_values(values[0]))
    series = dict(zip(keys, factories.get_all_series(runs[0], keys), strict=True))
    Point.objects.bulk_create(
        Point(
            series=series[key],
            run=run,
            position=run.commit.position,
            value=number,
            samples=[number * factor for factor in factories.SPREAD],
        )
        for run, value in zip(runs, values, strict=True)
        for key, number in series_values(value).items()
    )
    latest.write_latest(project, [row.pk for row in series.values()])
    return runs


def series_values(value: float) -> dict[tuple[str, str], float]:
    """By metric and phase. What a step takes more than 10 ms, it takes in one phase."""
    parts = {"act": 0.002, "learn": 0.002, "learn/backward": value - 0.004}
    whole = {"step_time": value, "peak_memory": value * 1e11, "cpu_utilization": 100 + 1e3 * value}
    return {
        **{(name, ""): number for name, number in whole.items()},
        **{(name, phase): parts[phase] for name in ("phase_self_time", "phase_time") for phase in parts},
    }


def describe_run(value: float) -> dict[str, Any]:
    """The body of a document."""
    push = factories.profiled_function("push", calls=1.0 if value < 0.0105 else 256.0, self=value)
    return {
        "harness": {"version": "0.1.0"},
        "environment": {"python": "3.11.2", "torch": "2.13.0"},
        "telemetry": [{"channel": "cpu", "values": [90.0] * 50}],
        "profile": {"steps": 200, "functions": [push]},
    }


def judged_by(project: Project) -> dict[str, list[Any]]:
    """What detection says of a project, in words that two projects of the same history share."""
    sizes = ("before", "after", "ratio", "low", "high")
    named = ("series__metric__name", "series__phase")
    step = ("first_bad__position", "last_good__position")
    changes = Change.objects.filter(series__configuration__case__project=project)
    states = SeriesLatest.objects.filter(series__configuration__case__project=project)
    told = ("state", "cause", "phase", "phase_share", "suspects", "cause_evidence", "triaged")
    current = ("position", "value", "level", "recent", "current_value", "base_value", "base_position")
    return {
        "changes": sorted(
            changes.values_list(*named, *step, "direction", *sizes, "confidence", "reach_good", "reach_bad"),
            key=str,
        ),
        "levels": sorted(states.values_list(*named, *current), key=str),
        "regressions": sorted(
            Regression.objects.filter(project=project).values_list(*named, *step, *sizes, *told), key=str
        ),
    }


def points_of(project: Project, metric: str, phase: str = "") -> list[int]:
    """The positions at which a series has a point."""
    series = Series.objects.get(configuration__case__project=project, metric__name=metric, phase=phase)
    return list(series.points.order_by("position").values_list("position", flat=True))
