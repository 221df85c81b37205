"""What past runs say of a project's cases: what they cost, how noisy they are, where they were measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from statistics import median, stdev

from django.conf import settings
from django.db.models import Q, Sum

from dashboard.models import Point, Project, Regression, Run, RunCost, SeriesLatest
from dashboard.policy.budget import CaseHistory

MOST_RUNS = 1000
# Of each configuration the newest so many runs are looked at.
NEWEST_RUNS = 10
STEP_TIME = "step_time"
# Of one repetition: what the harness tells of those that are timed.
OF_REPETITIONS = ("start", "warmup", "window", "after", "calibration")

Key = tuple[str, str]


def read_case_histories(project: Project) -> dict[Key, CaseHistory]:
    """By benchmark and case: of the site's own pool, and of positions on the project's branch."""
    costs = _read_costs(project)
    noise = _read_noise(project)
    places = _read_positions(project)
    suspected = set(
        Regression.objects.filter(
            project=project, state=Regression.State.SUSPECTED, withdrawn_at=None
        ).values_list("series__configuration__case__benchmark", "series__configuration__case__key")
    )
    keys = {key for key, _ in costs} | set(noise) | {key for key, _ in places} | suspected
    return {
        key: CaseHistory(
            standard_seconds=costs.get((key, False), (None, 0.0, 0))[0],
            quick_seconds=costs.get((key, True), (None, 0.0, 0))[0],
            repetition_seconds=costs.get((key, False), (None, 0.0, 0))[1],
            repetitions=costs.get((key, False), (None, 0.0, 0))[2],
            noise_within=noise.get(key, (None, None))[0],
            noise_between=noise.get(key, (None, None))[1],
            standard_at=places.get((key, False)),
            measured_at=max(
                (places[key, quick] for quick in (False, True) if (key, quick) in places), default=None
            ),
            suspected=key in suspected,
        )
        for key in keys
    }


def _read_costs(project: Project) -> dict[tuple[Key, bool], tuple[float | None, float, int]]:
    """By case and quick: the median seconds of a run, those of one repetition, and how many it had."""
    newest = Run.objects.filter(
        configuration__case__project=project,
        configuration__pool__name=settings.PACELINE_POOL,
        state=Run.State.DONE,
        origin=Run.Origin.MEASURED,
    ).order_by("-pk")
    of_case = ("benchmark", "key")
    names = [f"run__configuration__case__{name}" for name in of_case]
    rows = RunCost.objects.filter(run__in=list(newest.values_list("pk", flat=True)[:MOST_RUNS]))
    summed = (
        rows.exclude(part=RunCost.WAITING)
        .values_list("run", *names, "run__configuration__quick", "run__repetitions")
        .annotate(total=Sum("seconds"), timed=Sum("seconds", filter=Q(part__in=OF_REPETITIONS), default=0.0))
    )
    by_case: dict[tuple[Key, bool], list[tuple[float, float, int]]] = {}
    for _, benchmark, case, quick, repetitions, total, timed in summed.order_by("-run"):
        runs = by_case.setdefault(((benchmark, case), quick), [])
        if len(runs) < NEWEST_RUNS:
            runs.append((total, timed / max(1, repetitions), repetitions))
    return {
        key: (median(row[0] for row in runs), median(row[1] for row in runs), runs[0][2])
        for key, runs in by_case.items()
    }


def _read_noise(project: Project) -> dict[Key, tuple[float | None, float | None]]:
    """By case: the deviation of a logarithm of the step time within a run, and between neighbouring runs."""
    latest = SeriesLatest.objects.filter(
        series__configuration__case__project=project,
        series__configuration__pool__name=settings.PACELINE_POOL,
        series__configuration__quick=False,
        series__metric__name=STEP_TIME,
        series__phase="",
    ).select_related("series__configuration__case")
    found = list(latest.order_by("series__configuration__version"))
    points = Point.objects.filter(series__in=[row.pk for row in found], run__in=[row.run_id for row in found])
    samples = {
        (series, run): values for series, run, values in points.values_list("series", "run", "samples")
    }
    return {
        (row.series.configuration.case.benchmark, row.series.configuration.case.key): (
            _sample_deviation(samples.get((row.pk, row.run_id), ())),
            _neighbour_deviation(row.recent),
        )
        for row in found
    }


def _sample_deviation(values: Iterable[float]) -> float | None:
    logarithms = [math.log(value) for value in values if value > 0]
    return stdev(logarithms) if len(logarithms) > 2 else None


def _neighbour_deviation(values: Iterable[float]) -> float | None:
    """From the differences of neighbours, so that a step between two levels counts once."""
    logarithms = [math.log(value) for value in values if value > 0]
    if len(logarithms) < 4:
        return None
    differences = [abs(after - before) for before, after in pairwise(logarithms)]
    # The median of the absolute difference of two Gaussian values is 0.954 of their deviation.
    return median(differences) / 0.954


def _read_positions(project: Project) -> dict[tuple[Key, bool], int]:
    """By case and quick: where on the branch it was measured last."""
    rows = SeriesLatest.objects.filter(
        series__configuration__case__project=project,
        series__metric__name=STEP_TIME,
        series__phase="",
    )
    names = ("series__configuration__case__benchmark", "series__configuration__case__key")
    found = rows.values_list(*names, "series__configuration__quick", "position")
    places: dict[tuple[Key, bool], int] = {}
    for benchmark, case, quick, position in found:
        key = ((benchmark, case), quick)
        places[key] = max(position, places.get(key, -1))
    return places
