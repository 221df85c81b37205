"""Has a machine moved? One pinned commit of each case is measured there again and again, and answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median, stdev
from typing import cast

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from dashboard import detection, runs
from dashboard.detection import EFFECT_FLOORS
from dashboard.detection.types import Kind
from dashboard.models import Commit, Machine, Metric, Point, Project, Regression, Run, Sentinel, SentinelPoint
from dashboard.models import Series as SeriesRow

DAILY = timedelta(hours=24)
# Beside a confirmation a measurement that is older than this is made again.
STALE = timedelta(hours=4)
# A case that nobody measures any more needs no sentinel, nor does a machine that isn't there.
LIVELY = timedelta(days=3)
SEEN = timedelta(hours=1)
# Of a daily measurement: after all that anybody waits for. Of one beside a confirmation: as the proof's runs.
PRIORITY = -20
BESIDE = 5
IN_VAIN = "Its machine didn't measure it within a day."

MAIN = "step_time"
# Measurements on each side that tell a level; with fewer than FEW the noise between them is assumed.
WINDOW = 5
FEW = 4
NOISE = 0.02
LEAST_NOISE = 0.005
# The sentinel's points that are read at most.
NEWEST = 400


@dataclass(frozen=True, slots=True)
class Moved:
    """How a sentinel's later measurements stand to its earlier ones, and which those are."""

    sentinel: Sentinel
    metric: str
    ratio: float
    low: float | None
    high: float | None
    after: datetime
    before: datetime
    # Is the step outside noise, and large enough to matter for this kind of metric?
    moved: bool
    # Over 1 where it got worse, whichever way the metric goes.
    worse: float


def watch(now: datetime | None = None) -> list[Run]:
    """Request what is due, on every machine; make the sentinels that are missing. Safe to repeat."""
    at = now or timezone.now()
    give_up_waiting(at)
    asked = []
    for newest in lively(at):
        with transaction.atomic():
            sentinel = of(newest)
            if sentinel and (last := last_asked(sentinel)) and at - last >= DAILY:
                asked.append(
                    runs.measure_sentinel(newest, sentinel.commit, cast(Machine, newest.machine), PRIORITY)
                )
    return [run for run in asked if run]


def lively(now: datetime) -> list[Run]:
    """The newest run of each case, version and machine that is measured these days and lives."""
    recent = Run.objects.filter(
        state=Run.State.DONE,
        origin=Run.Origin.MEASURED,
        finished_at__gt=now - LIVELY,
        machine__seen_at__gt=now - SEEN,
        case__project__sentinels=True,
    )
    keys = recent.values("case", "machine", "quick").annotate(newest=Max("pk")).values("newest")
    names = ("case__project", "machine", "commit", "pool")
    return list(Run.objects.filter(pk__in=keys).select_related(*names).order_by("pk"))


def last_asked(sentinel: Sentinel) -> datetime | None:
    """When it was measured last, or asked for: a commit that doesn't run any more isn't tried all day."""
    measured: datetime | None = sentinel.points.aggregate(last=Max("measured_at"))["last"]
    asked: datetime | None = sentinel_runs(sentinel).aggregate(last=Max("requested_at"))["last"]
    known = [one for one in (measured, asked) if one]
    return max(known, default=None)


def sentinel_runs(sentinel: Sentinel) -> QuerySet[Run]:
    return Run.objects.filter(
        origin=Run.Origin.SENTINEL,
        case=sentinel.case_id,
        only_on=sentinel.machine_id,
        version=sentinel.version,
        quick=sentinel.quick,
    )


def give_up_waiting(now: datetime) -> None:
    """Cancel what waited for a machine in vain: measured later it would say nothing about today."""
    waiting = Run.objects.filter(
        origin=Run.Origin.SENTINEL, state=Run.State.REQUESTED, requested_at__lt=now - DAILY
    )
    waiting.update(state=Run.State.CANCELLED, reason=IN_VAIN, finished_at=now)


def of(run: Run) -> Sentinel | None:
    """The sentinel of a run's case on its machine, made where there is none; None where nothing is fit."""
    identity = {"case": run.case, "machine": run.machine, "version": run.version, "quick": run.quick}
    known = Sentinel.objects.filter(**identity).select_related("commit", "machine").first()
    if known:
        return known
    chosen = by_hand(run) or earliest_good(run)
    if chosen is None:
        return None
    commit, hand = chosen
    made, new = Sentinel.objects.get_or_create(**identity, defaults={"commit": commit, "by_hand": hand})
    if new:
        seed(made)
    return made


def by_hand(run: Run) -> tuple[Commit, bool] | None:
    """What a person has pinned for the case on another machine holds for this one too."""
    pinned = Sentinel.objects.filter(case=run.case, version=run.version, by_hand=True)
    found = pinned.select_related("commit").order_by("-pk").first()
    return (found.commit, True) if found else None


def earliest_good(run: Run) -> tuple[Commit, bool] | None:
    """The commit of the branch that this machine measured first, and that began no regression."""
    bad = Regression.objects.filter(project=run.case.project_id, withdrawn_at=None).values("first_bad")
    found = (
        ordinary(run.case_id, run.machine_id, run.version, run.quick)
        .filter(commit__branch=run.case.project.branch, tainted=False)
        .exclude(commit__in=bad)
        .select_related("commit")
    )
    first = found.order_by("finished_at", "pk").first()
    return (first.commit, False) if first else None


def ordinary(case: int, machine: int | None, version: int, quick: bool) -> QuerySet[Run]:
    """The runs that a person or a hook asked for, done and with a time."""
    return Run.objects.filter(
        state=Run.State.DONE,
        origin=Run.Origin.MEASURED,
        case=case,
        machine=machine,
        version=version,
        quick=quick,
        finished_at__isnull=False,
    )


def seed(sentinel: Sentinel) -> None:
    """What this machine measured of the pinned commit before it was pinned are the first points."""
    mine = ordinary(sentinel.case_id, sentinel.machine_id, sentinel.version, sentinel.quick)
    rows = Point.objects.filter(WATCHED, run__in=mine.filter(commit=sentinel.commit_id)).select_related(
        "run", "series"
    )
    SentinelPoint.objects.bulk_create(
        [
            SentinelPoint(
                sentinel=sentinel,
                run=row.run,
                metric_id=row.series.metric_id,
                value=row.value,
                samples=row.samples,
                tainted=row.tainted,
                measured_at=cast(datetime, row.run.finished_at),
            )
            for row in rows
        ],
        ignore_conflicts=True,
    )


# What is kept of a sentinel: what may raise a suspicion and isn't the same number each time anyway.
WATCHED = Q(series__headline=True, series__phase="", series__exact=False)


def pin(project: Project, commit: Commit, now: datetime | None = None) -> list[Sentinel]:
    """Pin a commit by hand for every case and machine that is measured these days.

    Their history begins anew.
    """
    pinned = []
    for newest in lively(now or timezone.now()):
        if newest.case.project_id != project.pk:
            continue
        identity = {
            "case": newest.case,
            "machine": newest.machine,
            "version": newest.version,
            "quick": newest.quick,
        }
        with transaction.atomic():
            Sentinel.objects.filter(**identity).exclude(commit=commit).delete()
            made, new = Sentinel.objects.get_or_create(**identity, defaults={"commit": commit})
            Sentinel.objects.filter(pk=made.pk).update(by_hand=True)
            if new:
                seed(made)
            if not made.points.exists():
                runs.measure_sentinel(newest, commit, cast(Machine, newest.machine), PRIORITY)
            pinned.append(made)
    return pinned


def beside(series: SeriesRow, machine: Machine, now: datetime | None = None) -> Run | None:
    """A confirmation begins on this machine: have its case's sentinel measured too, unless that is fresh.

    Only one that has been measured before can be compared with anything. Nobody waits for it.
    """
    sentinel = sentinel_of(series, machine)
    if sentinel is None or not sentinel.case.project.sentinels or not sentinel.points.exists():
        return None
    last = last_asked(sentinel)
    if last and (now or timezone.now()) - last < STALE:
        return None
    pattern = ordinary(sentinel.case_id, machine.pk, sentinel.version, sentinel.quick)
    newest = pattern.select_related("case", "pool").order_by("-pk").first()
    return runs.measure_sentinel(newest, sentinel.commit, machine, BESIDE) if newest else None


def sentinel_of(series: SeriesRow, machine: Machine | int) -> Sentinel | None:
    found = Sentinel.objects.filter(
        case=series.case_id, machine=machine, version=series.version, quick=series.quick
    )
    return found.select_related("commit", "machine", "case__project").first()


def judge(run: Run) -> Sentinel | None:
    """After a measurement: does its step time show a step that two measurements agree on?"""
    kept = Sentinel.objects.filter(points__run=run).distinct().first()
    if kept is None:
        return None
    points = points_of(kept, MAIN)
    series = detection.Series(
        [detection.Point(one.value, tuple(one.samples)) for one in points], better="lower", kind="time"
    )
    steps = detection.judge_series(series) if points else []
    if steps:
        last = steps[-1]
        kept.moved_after = points[last.index - 1].measured_at
        kept.moved_before = points[last.index].measured_at
        kept.ratio, kept.low, kept.high = last.ratio, last.low, last.high
    else:
        kept.moved_after = kept.moved_before = kept.ratio = kept.low = kept.high = None
    kept.save(update_fields=["moved_after", "moved_before", "ratio", "low", "high"])
    return kept


def points_of(sentinel: Sentinel, metric: str) -> list[SentinelPoint]:
    """Untainted, oldest first."""
    mine = sentinel.points.filter(metric__name=metric, tainted=False)
    return list(mine.order_by("-measured_at", "-pk")[:NEWEST])[::-1]


def between(series: SeriesRow, machine: Machine | int, since: datetime, until: datetime) -> Moved | None:
    """How the sentinel stood after `until` to how it stood before `since`.

    None where there is none, or it wasn't measured on both sides.
    """
    sentinel = sentinel_of(series, machine)
    if sentinel is None:
        return None
    name = series.metric.name
    if not sentinel.points.filter(metric__name=name).exists():
        if series.metric.kind not in (Metric.Kind.TIME, Metric.Kind.RATE):
            return None
        name = MAIN
    points = points_of(sentinel, name)
    old = [one for one in points if one.measured_at <= since][-WINDOW:]
    new = [one for one in points if one.measured_at >= until][:WINDOW]
    if not old or not new:
        return None
    metric = Metric.objects.get(pk=old[0].metric_id)
    return compared(sentinel, metric, old, new)


def compared(
    sentinel: Sentinel, metric: Metric, old: Sequence[SentinelPoint], new: Sequence[SentinelPoint]
) -> Moved:
    noise = noise_of([metric.on_ratio_scale(one.value) for one in old])
    found = detection.compare_samples(samples_of(old, metric), samples_of(new, metric), noise)
    floor = EFFECT_FLOORS[cast(Kind, metric.kind)].long
    relevant = found.ratio > 0 and abs(math.log(found.ratio)) >= math.log1p(floor)
    return Moved(
        sentinel=sentinel,
        metric=metric.name,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        after=old[-1].measured_at,
        before=new[0].measured_at,
        moved=relevant and found.verdict in ("higher", "lower"),
        worse=found.ratio if metric.better == Metric.Better.LOWER or not found.ratio else 1 / found.ratio,
    )


def samples_of(points: Sequence[SentinelPoint], metric: Metric) -> list[float]:
    return [metric.on_ratio_scale(sample) for one in points for sample in (one.samples or [one.value])]


def noise_of(values: Sequence[float]) -> float:
    """The relative spread between measurements of the same code; assumed where few are known."""
    level = median(values)
    if len(values) < FEW or not level:
        return NOISE
    return max(LEAST_NOISE, stdev(values) / abs(level))
