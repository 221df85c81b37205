"""`/metrics`: how the site itself is doing, for Prometheus; read from the tables when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from statistics import quantiles

from django.db.models import Count, F, Min, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from dashboard.access import visitor_of
from dashboard.models import Delivery, FailedJob, Heartbeat, Machine, Project, Regression, Run, Trigger
from dashboard.querysets.regressions import IS_OPEN

ENDED_WITHIN = timedelta(hours=1)
# Durations are those of the newest runs: more of them say nothing else.
MOST_TIMED = 1000
TIMED_QUANTILES = (50, 95)

Samples = Iterable[tuple[tuple[str, ...], float]]


@never_cache
@require_safe
def report_metrics(request: HttpRequest) -> HttpResponse:
    """The text format of Prometheus; it names the projects that the visitor may view."""
    registry = CollectorRegistry()
    registry.register(SiteCollector(visitor_of(request).visible_projects()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class SiteCollector:
    """Gauges of the queue, of runs, machines, parts, deliveries, failed jobs and regressions.

    What names projects names those of `visible` alone.
    """

    def __init__(self, visible: QuerySet[Project]) -> None:
        self.visible = visible

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing: registering the collector must ask the database nothing."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield each gauge with its values as of now."""
        now = timezone.now()
        yield from _active_runs(now)
        yield from _recent_runs(now)
        yield _silent_machines(now)
        yield _silent_parts(now)
        yield make_gauge("waiting_jobs", "What the site itself has yet to do.", ("kind",), _waiting_jobs())
        yield self._open_regressions()

    def _open_regressions(self) -> GaugeMetricFamily:
        regressions = Regression.objects.filter(IS_OPEN, project__in=self.visible)
        counts = regressions.values_list("project__slug", "state").annotate(number=Count("pk"))
        return make_gauge(
            "open_regressions",
            "Regressions that need a person.",
            ("project", "state"),
            (((slug, state), number) for slug, state, number in counts),
        )


def _active_runs(now: datetime) -> Iterator[GaugeMetricFamily]:
    active = Run.objects.exclude(state__in=Run.TERMINAL)
    pool = "configuration__pool__name"
    counts = active.values_list(pool, "state").annotate(number=Count("pk"))
    yield make_gauge(
        "runs",
        "Runs that haven't ended.",
        ("pool", "state"),
        (((name, state), number) for name, state, number in counts),
    )
    waiting = active.filter(state=Run.State.REQUESTED)
    oldest = waiting.values_list(pool).annotate(since=Min("requested_at"))
    yield make_gauge(
        "oldest_requested_run_seconds",
        "Age of the run that has waited longest.",
        ("pool",),
        (((name,), _seconds_since(since, now)) for name, since in oldest),
    )


def _silent_machines(now: datetime) -> GaugeMetricFamily:
    reporting = Machine.objects.filter(seen_at__isnull=False).exclude(state=Machine.State.RETIRED)
    machines = reporting.values_list("name", "pool__name", "seen_at")
    return make_gauge(
        "machine_silent_seconds",
        "Time since a machine said that it lives.",
        ("machine", "pool"),
        (((name, pool or ""), _seconds_since(seen, now)) for name, pool, seen in machines),
    )


def _silent_parts(now: datetime) -> GaugeMetricFamily:
    heartbeats = Heartbeat.objects.values_list("name", "seen_at")
    return make_gauge(
        "part_silent_seconds",
        "Time since a part of the site said that it lives.",
        ("part",),
        (((name,), _seconds_since(seen, now)) for name, seen in heartbeats),
    )


def make_gauge(name: str, explanation: str, labels: tuple[str, ...], samples: Samples) -> GaugeMetricFamily:
    """The gauge `paceline_NAME` with its samples: (values of the labels, value)."""
    gauge = GaugeMetricFamily(f"paceline_{name}", explanation, labels=labels)
    for values, value in samples:
        gauge.add_metric(values, value)
    return gauge


def _recent_runs(now: datetime) -> Iterator[GaugeMetricFamily]:
    """What ended within the last hour, and how long that took."""
    ended = Run.objects.filter(finished_at__gt=now - ENDED_WITHIN, state__in=Run.TERMINAL)
    outcomes = ended.values_list("state", "failure").annotate(number=Count("pk"))
    yield make_gauge(
        "runs_ended_last_hour",
        "Runs that ended within the last hour.",
        ("state", "failure"),
        (((state, failure or ""), number) for state, failure, number in outcomes),
    )
    done = ended.filter(state=Run.State.DONE, claimed_at__isnull=False).order_by("-finished_at")
    times = list(
        done.values_list(F("claimed_at") - F("requested_at"), F("finished_at") - F("claimed_at"))[:MOST_TIMED]
    )
    for place, name, explanation in (
        (0, "run_wait_seconds", "From request to claim, of runs done within the last hour."),
        (1, "run_seconds", "From claim to end, of runs done within the last hour."),
    ):
        seconds = [row[place].total_seconds() for row in times]
        yield make_gauge(name, explanation, ("quantile",), _quantile_samples(seconds))


def _quantile_samples(values: list[float]) -> Samples:
    if not values:
        return []
    cuts = quantiles(values, n=100, method="inclusive") if len(values) > 1 else values * 99
    return [((str(percent / 100),), cuts[percent - 1]) for percent in TIMED_QUANTILES]


def _waiting_jobs() -> Samples:
    return [
        (("triggers",), Trigger.objects.filter(state=Trigger.State.RECEIVED).count()),
        (("judgements",), Run.objects.filter(state=Run.State.DONE, judged_at=None).count()),
        (("deliveries",), Delivery.objects.filter(state=Delivery.State.PENDING).count()),
        (("failed_jobs",), FailedJob.objects.exclude(next_try_at=None).count()),
        (("failed_jobs_set_aside",), FailedJob.objects.filter(next_try_at=None).count()),
    ]


def _seconds_since(then: datetime | None, now: datetime) -> float:
    return max(0.0, (now - then).total_seconds()) if then else 0.0
