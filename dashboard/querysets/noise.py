"""What tells how noisy cases are: their newest points, and the pairs of their newest experiments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Avg, Count, F, OuterRef, Q, QuerySet, StdDev, Subquery
from django.db.models.functions import JSONObject, Ln

from dashboard import detection
from dashboard.models import Experiment, ExperimentPair, Series

NEWEST_POINTS = 40

# One look into the index on (series, position) for each series, whatever its history.
NEWEST = """
SELECT wanted.id, point.value, point.samples, point.machine_id, point.finished_at
FROM unnest(%s::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT point.value, point.samples, run.machine_id, run.finished_at, point.position
    FROM dashboard_point point
    JOIN dashboard_run run ON run.id = point.run_id
    JOIN dashboard_commit commit ON commit.id = run.commit_id
    JOIN dashboard_project project ON project.id = commit.project_id
    WHERE point.series_id = wanted.id AND NOT point.tainted AND commit.branch = project.branch
      AND run.machine_id IS NOT NULL
    ORDER BY point.position DESC, point.run_id DESC
    LIMIT %s
) AS point
ORDER BY wanted.id, point.position
"""


@dataclass(slots=True)
class MeasuredPoints:
    """The newest untainted points of a series on one machine, oldest first; when the last was measured."""

    points: list[detection.Point]
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class PairSpread:
    """How much undisturbed pairs of an experiment differ: the deviation of the logarithms of their ratios.

    `seconds` that one pair took.
    """

    experiment: int
    pairs: int
    deviation: float
    seconds: float


def newest_points(series: Iterable[int]) -> dict[int, dict[int, MeasuredPoints]]:
    """By series and machine, of the newest points of each series on its project's branch."""
    found: dict[int, dict[int, MeasuredPoints]] = {}
    with connection.cursor() as cursor:
        cursor.execute(NEWEST, [list(series), NEWEST_POINTS])
        for key, value, samples, machine, finished in cursor.fetchall():
            measured = found.setdefault(key, {}).setdefault(machine, MeasuredPoints([], None))
            measured.points.append(detection.Point(value, tuple(samples)))
            measured.newest = finished
    return found


def with_pair_spread(rows: QuerySet[Series]) -> QuerySet[Series]:
    """Each with the `deviation` and `seconds` of PairSpread of its newest experiment; None without one."""
    newest = Experiment.objects.filter(
        head_configuration=OuterRef(OuterRef("configuration")),
        base_configuration=F("head_configuration"),
        metric=OuterRef(OuterRef("metric")),
        phase=OuterRef(OuterRef("phase")),
        state=Experiment.State.DONE,
        pairs_of=None,
    ).order_by("-pk")
    calm = ExperimentPair.objects.filter(
        experiment=Subquery(newest.values("pk")[:1]), disturbed=False, base__gt=0, head__gt=0
    )
    deviation = StdDev(Ln("head") - Ln("base"), sample=True)
    spread = (
        calm.order_by()
        .values("experiment")
        .annotate(spread=JSONObject(deviation=deviation, seconds=Avg("seconds")))
    )
    return rows.annotate(pair_spread=Subquery(spread.values("spread")))


def spreads_of_pairs(series: Sequence[Series]) -> dict[tuple[int, int], PairSpread]:
    """By (configuration, machine) how much the pairs of the newest experiment on a metric differ.

    `series` are those of the metric.
    """
    if not series:
        return {}
    newest = (
        Experiment.objects.filter(
            head_configuration__in=[row.configuration_id for row in series],
            base_configuration=F("head_configuration"),
            metric=series[0].metric_id,
            phase=series[0].phase,
            state=Experiment.State.DONE,
            machine__isnull=False,
            pairs_of=None,
        )
        .order_by("head_configuration", "machine", "-pk")
        .distinct("head_configuration", "machine")
        .values("pk")
    )
    calm = Q(pairs__disturbed=False, pairs__base__gt=0, pairs__head__gt=0)
    rows = (
        Experiment.objects.filter(calm, pk__in=newest)
        .values("pk", "head_configuration", "machine")
        .annotate(
            count=Count("pairs"),
            deviation=StdDev(Ln("pairs__head") - Ln("pairs__base"), sample=True),
            pair_seconds=Avg("pairs__seconds"),
        )
    )
    return {
        (row["head_configuration"], row["machine"]): PairSpread(
            row["pk"], row["count"], row["deviation"], row["pair_seconds"]
        )
        for row in rows
        if row["deviation"] is not None and row["pair_seconds"]
    }
