"""What tells how noisy cases are: their newest points, and the pairs of their newest experiments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import log
from typing import Any, cast

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import connection
from django.db.models import (
    Avg,
    CharField,
    ExpressionWrapper,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    StdDev,
    Subquery,
)
from django.db.models.functions import JSONObject, Ln

from dashboard import detection
from dashboard.detection.provable_effect import StepSpread, measure_step_spread
from dashboard.detection.types import Better, Kind
from dashboard.metric_scale import LEAST_NOISE
from dashboard.models import Case, Experiment, ExperimentPair, Machine, Point, Series
from dashboard.postgresql.prepared_statements import preparing_statements

NEWEST_POINTS = 40
# Among so many of a series' newest points, which are judged, those of its project's branch, or of one
# machine, are looked for.
SEARCHED_POINTS = 400
# One is the other's reciprocal: pairs of the one tell how much those of the other differ.
RECIPROCAL = ("step_time", "throughput")
# Cases of machines that are kept in mind: a page that is made anew reckons those alone that were measured.
REMEMBERED = 256

BY_KEY = "series.id = ANY(%(series)s::bigint[])"
OF_CONFIGURATIONS = """series.configuration_id = ANY(%(configurations)s::bigint[]) AND series.phase = ''
    AND metric.name = %(metric)s"""
# One look into the index on (series, position) for each series, whatever its history is. What is said of a
# series is asked for before its points, and its points come in one row for each machine: the values, and as
# text their samples, of which each point has another number. OFFSET 0 keeps PostgreSQL from reading all runs
# of the machine, where it doesn't know how soon there are enough.
NEWEST = """
WITH wanted AS MATERIALIZED (
    SELECT series.id AS series_id, series.configuration_id, series.phase, series.exact,
           metric.id AS metric_id, metric.name AS metric, metric.better, metric.kind, configuration.quick,
           benchmark.id AS case_id, benchmark.benchmark, benchmark.key, project.slug, project.branch,
           (SELECT count(*) FROM (
               SELECT FROM dashboard_point WHERE series_id = series.id LIMIT %(searched)s
           ) AS judged) AS judged
    FROM dashboard_series series
    JOIN dashboard_metric metric ON metric.id = series.metric_id
    JOIN dashboard_configuration configuration ON configuration.id = series.configuration_id
    JOIN dashboard_case benchmark ON benchmark.id = configuration.case_id
    JOIN dashboard_project project ON project.id = benchmark.project_id
    WHERE {wanted}
), newest AS (
    SELECT wanted.series_id, point.machine_id, max(point.finished_at) AS finished_at,
           array_agg(point.value ORDER BY point.position, point.run_id) AS values,
           string_agg(array_to_string(point.samples, ' '), ';' ORDER BY point.position, point.run_id)
               AS samples
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT searched.*, run.machine_id, run.finished_at
        FROM (
            SELECT value, samples, position, run_id
            FROM dashboard_point
            WHERE series_id = wanted.series_id AND NOT tainted
            ORDER BY position DESC, run_id DESC
            LIMIT %(searched)s
        ) AS searched
        CROSS JOIN LATERAL (
            SELECT run.machine_id, run.finished_at, commit.branch
            FROM dashboard_run run
            JOIN dashboard_commit commit ON commit.id = run.commit_id
            WHERE run.id = searched.run_id
            OFFSET 0
        ) AS run
        WHERE run.branch = wanted.branch AND run.machine_id IS NOT NULL
          AND (%(machine)s::bigint IS NULL OR run.machine_id = %(machine)s)
        ORDER BY searched.position DESC, searched.run_id DESC
        LIMIT %(newest)s
    ) AS point
    GROUP BY wanted.series_id, point.machine_id
)
SELECT newest.series_id, newest.machine_id, newest.values, newest.samples, newest.finished_at,
       machine.name, wanted.better, wanted.kind, wanted.exact, wanted.quick, wanted.judged,
       wanted.case_id, wanted.benchmark, wanted.key, wanted.slug,
       experiment.id, calm.deviation, calm.seconds, calm.step_ratios, calm.base_first, calm.kinds_errors
FROM newest
JOIN wanted ON wanted.series_id = newest.series_id
JOIN dashboard_machine machine ON machine.id = newest.machine_id
LEFT JOIN LATERAL (
    SELECT experiment.id
    FROM dashboard_experiment experiment
    JOIN dashboard_metric weighed ON weighed.id = experiment.metric_id
    WHERE experiment.head_configuration_id = wanted.configuration_id
      AND experiment.base_configuration_id = wanted.configuration_id
      AND (weighed.id = wanted.metric_id
           OR weighed.name = ANY(%(reciprocal)s) AND wanted.metric = ANY(%(reciprocal)s))
      AND experiment.phase = wanted.phase AND experiment.machine_id = newest.machine_id
      AND experiment.state = 'done' AND experiment.pairs_of_id IS NULL
    ORDER BY experiment.id DESC
    LIMIT 1
) AS experiment ON true
LEFT JOIN LATERAL (
    SELECT stddev_samp(ln(head) - ln(base)) AS deviation, avg(seconds) AS seconds,
           array_agg(step_ratio ORDER BY index) AS step_ratios,
           array_agg(base_first ORDER BY index) AS base_first,
           array_agg(kinds_error ORDER BY index) AS kinds_errors
    FROM dashboard_experimentpair
    WHERE experiment_id = experiment.id AND NOT disturbed AND base > 0 AND head > 0
) AS calm ON true
ORDER BY newest.series_id, newest.machine_id
"""


@dataclass(frozen=True, slots=True)
class PairSpread:
    """How much undisturbed pairs of an experiment differ: the deviation of the logarithms of their ratios.

    `seconds` that one pair took. `steps`: by their single steps, where they took turns.
    """

    experiment: int
    deviation: float
    seconds: float
    steps: StepSpread | None = None


def make_spread(
    experiment: int | None,
    deviation: float | None,
    seconds: float | None,
    step_ratios: Sequence[float | None] | None,
    base_first: Sequence[bool] | None,
    kinds_errors: Sequence[float | None] | None,
) -> PairSpread | None:
    """Of what was read of its undisturbed pairs, in their order; None of too few."""
    if experiment is None or deviation is None or not seconds:
        return None
    known = [ratio for ratio in step_ratios or () if ratio is not None]
    error = kinds_errors[-1] if kinds_errors else None
    steps = None
    if error is not None and len(known) == len(base_first or ()):
        steps = measure_step_spread([log(ratio) for ratio in known], base_first or (), error, LEAST_NOISE)
    return PairSpread(experiment, deviation, seconds, steps)


@dataclass(frozen=True, slots=True)
class MeasuredPoints:
    """The newest untainted points of a series on one machine, oldest first; when the last was measured.

    `judged`: so many points of the series, of all machines, are judged with them. `spread`: that of the pairs
    of the newest experiment on it there. `machine` and `case` have their names alone.
    """

    series: int
    case: Case
    project: str
    quick: bool
    machine: Machine
    better: Better
    kind: Kind
    exact: bool
    judged: int
    spread: PairSpread | None
    points: tuple[detection.Point, ...]
    newest: datetime | None


def newest_points(series: Iterable[int]) -> list[MeasuredPoints]:
    """By series and machine, of the newest points of each series on its project's branch."""
    return _read_points(BY_KEY, {"series": list(series), "machine": None})


def newest_points_on(machine: Machine, configurations: Iterable[int], metric: str) -> list[MeasuredPoints]:
    """Those of one machine alone, of the whole step by this metric."""
    asked = {"configurations": list(configurations), "metric": metric}
    return _read_points(OF_CONFIGURATIONS, {**asked, "machine": machine.pk})


def _read_points(wanted: str, asked: dict[str, Any]) -> list[MeasuredPoints]:
    asked |= {"searched": SEARCHED_POINTS, "newest": NEWEST_POINTS, "reciprocal": list(RECIPROCAL)}
    with preparing_statements(connection), connection.cursor() as cursor:
        cursor.execute(NEWEST.format(wanted=wanted), asked)
        return [_make_measured(row) for row in cursor.fetchall()]


def _make_measured(row: tuple[Any, ...]) -> MeasuredPoints:
    series, machine, values, samples, finished, name, better, kind, exact, quick, judged, *described = row
    case, benchmark, key, project, *spread = described
    return MeasuredPoints(
        series=series,
        case=Case(pk=case, benchmark=benchmark, key=key),
        project=project,
        quick=quick,
        machine=Machine(pk=machine, name=name),
        better=cast(Better, better),
        kind=cast(Kind, kind),
        exact=exact,
        judged=judged,
        spread=make_spread(*spread),
        points=parse_points(tuple(values), samples),
        newest=finished,
    )


@lru_cache(REMEMBERED)
def parse_points(values: tuple[float, ...], samples: str) -> tuple[detection.Point, ...]:
    """`samples`: of each point its own, as text, with semicolons between points."""
    return tuple(
        detection.Point(value, tuple(map(float, text.split())))
        for value, text in zip(values, samples.split(";"), strict=True)
    )


class RowCount(Subquery):
    """How many rows a subquery has, a slice too."""

    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def with_noise_facts(rows: QuerySet[Series]) -> QuerySet[Series]:
    """Each with how many of its points are `judged`, and with the `pair_spread` of its newest experiment, as
    `make_spread` takes it; None without one."""
    metric = ExpressionWrapper(OuterRef(OuterRef("metric__name")), output_field=CharField())
    reciprocal = Q(metric__name__in=RECIPROCAL, of_series__in=RECIPROCAL)
    newest = (
        Experiment.objects.alias(of_series=metric)
        .filter(
            Q(metric=OuterRef(OuterRef("metric"))) | reciprocal,
            head_configuration=OuterRef(OuterRef("configuration")),
            base_configuration=F("head_configuration"),
            phase=OuterRef(OuterRef("phase")),
            state=Experiment.State.DONE,
            pairs_of=None,
        )
        .order_by("-pk")
    )
    undisturbed = ExperimentPair.objects.filter(
        experiment=Subquery(newest.values("pk")[:1]), disturbed=False, base__gt=0, head__gt=0
    )
    deviation = StdDev(Ln("head") - Ln("base"), sample=True)
    spread = (
        undisturbed.order_by()
        .values("experiment")
        .annotate(
            spread=JSONObject(
                experiment="experiment",
                deviation=deviation,
                seconds=Avg("seconds"),
                **{f"{name}s": ArrayAgg(name, order_by="index") for name in ("step_ratio", "kinds_error")},
                base_first=ArrayAgg("base_first", order_by="index"),
            )
        )
    )
    points = Point.objects.filter(series=OuterRef("pk")).order_by().values("series")
    return rows.annotate(
        judged=RowCount(points[:SEARCHED_POINTS]), pair_spread=Subquery(spread.values("spread"))
    )
