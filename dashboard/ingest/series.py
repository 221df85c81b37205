"""The values of a document as points of series, in a number of queries that doesn't depend on theirs."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Max
from paceline.document import Document
from paceline.document_rows import MetricValue

from dashboard.ingest.document_validation import BadDocument
from dashboard.models import Metric, Point, Run, Series, SeriesLatest


def store_points(run: Run, document: Document) -> list[int]:
    """Store a point for each metric of the document; the ids of the series that got one."""
    metrics = get_or_create_metrics(document.metrics)
    series = _get_or_create_series(run, document, metrics)
    Point.objects.bulk_create(
        Point(
            series=row,
            run=run,
            position=run.commit.position,
            value=value.value,
            low=value.low,
            high=value.high,
            samples=value.samples,
            tainted=document.taints(value.kind),
        )
        for row, value in zip(series, document.metrics, strict=True)
    )
    return [row.pk for row in series]


def get_or_create_metrics(values: tuple[MetricValue, ...]) -> dict[tuple[str, str], Metric]:
    """By name and better direction: which way a quality is better, each manifest says for itself."""
    wanted: dict[tuple[str, str], MetricValue] = {(value.name, value.better): value for value in values}
    metrics = _metrics_by_key(wanted)
    # In one order everywhere, so that two documents with new metrics can't wait for each other in a circle.
    missing = [wanted[key] for key in sorted(wanted.keys() - metrics.keys())]
    if missing:
        rows = [
            Metric(name=value.name, unit=value.unit, better=value.better, kind=value.kind)
            for value in missing
        ]
        Metric.objects.bulk_create(rows, ignore_conflicts=True)
        metrics = _metrics_by_key(wanted)
    return metrics


def _metrics_by_key(wanted: dict[tuple[str, str], MetricValue]) -> dict[tuple[str, str], Metric]:
    rows = Metric.objects.filter(name__in={name for name, _ in wanted})
    return {(row.name, row.better): row for row in rows}


def _get_or_create_series(
    run: Run, document: Document, metrics: dict[tuple[str, str], Metric]
) -> list[Series]:
    """The series of each value, in their order; raises BadDocument."""
    values = document.metrics
    guarded = {f"quality.{guard.quality}" for guard in document.guards}
    existing = Series.objects.filter(configuration=run.configuration_id)
    by_key = {(row.metric_id, row.phase): row for row in existing}
    wanted = [(metrics[value.name, value.better], value) for value in values]
    missing = [
        Series(
            configuration_id=run.configuration_id,
            metric=metric,
            phase=value.phase or "",
            exact=value.exact,
            headline=value.headline,
            guarded=value.name in guarded,
        )
        for metric, value in wanted
        if (metric.pk, value.phase or "") not in by_key
    ]
    if missing and len(by_key) + len(missing) > settings.PACELINE_MOST_SERIES:
        raise BadDocument(
            "metrics",
            f"{len(missing)} of them are new to the case, which has {len(by_key)} series; this site "
            f"keeps {settings.PACELINE_MOST_SERIES} of a case at most (PACELINE_MOST_SERIES)",
        )
    by_key |= {(row.metric_id, row.phase): row for row in Series.objects.bulk_create(missing)}
    series = [by_key[metric.pk, value.phase or ""] for metric, value in wanted]
    if _is_newest(run):
        _update_flags(series, values, guarded)
    return series


def _is_newest(run: Run) -> bool:
    """A backlog's document says nothing about what the series is now, nor does another branch's."""
    commit = run.commit
    if commit.branch != commit.project.branch:
        return False
    latest = SeriesLatest.objects.filter(
        series__configuration=run.configuration_id,
    )
    newest: int | None = latest.aggregate(newest=Max("position"))["newest"]
    return newest is None or commit.position >= newest


def _update_flags(series: list[Series], values: tuple[MetricValue, ...], guarded: set[str]) -> None:
    changed = []
    for row, value in zip(series, values, strict=True):
        flags = value.exact, value.headline, value.name in guarded
        if (row.exact, row.headline, row.guarded) != flags:
            row.exact, row.headline, row.guarded = flags
            changed.append(row)
    Series.objects.bulk_update(changed, ["exact", "headline", "guarded"])
