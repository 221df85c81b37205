"""The facts about a regression's cause, gathered from rows, documents and git; its class, kept with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from statistics import median
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from dashboard.models import Change, Confirmation, Document, Metric, Regression, Run, Series
from dashboard.regressions import blame, causes, installed, markers, proofs, sentinels, speaking
from dashboard.regressions.relevance import is_exact_counter

# The classes of what moved around the commits and was proved by nothing but where it lies.
AROUND = (Regression.Cause.SYSTEM, Regression.Cause.DEPENDENCY)

CLOCKED = (Metric.Kind.TIME, Metric.Kind.RATE)
# A sentinel that was measured later than its confirmation may still explain what this refuted.
REMEMBERED = timedelta(days=7)


def decide_all(regressions: Iterable[int]) -> None:
    """Decide the cause class of these regressions anew. The project is locked."""
    names = ("project", "first_bad", "last_good", "series__metric", "series__case")
    for one in Regression.objects.filter(pk__in=list(regressions)).select_related(*names).order_by("pk"):
        keep(one, causes.decide(gather(one)))


def keep(regression: Regression, found: causes.Class) -> None:
    evidence = list(found.evidence)
    if (regression.cause, regression.cause_evidence) != (found.cause, evidence):
        regression.cause, regression.cause_evidence = found.cause, evidence
        regression.save(update_fields=["cause", "cause_evidence", "updated_at"])


def again_after(run: Run) -> None:
    """A sentinel was measured: what was refuted or left undecided there may have been its machine."""
    lately = Regression.objects.filter(
        project=run.case.project_id,
        series__case=run.case_id,
        state__in=(Regression.State.REFUTED, Regression.State.UNDECIDED),
        withdrawn_at=None,
        updated_at__gt=timezone.now() - REMEMBERED,
    )
    decide_all(lately.values_list("pk", flat=True))


def is_innocent(regression: Regression) -> bool:
    """Do all its changes that speak lie where the surroundings changed, so that no commit is blamed?"""
    members = speaking.members(regression)
    return bool(members) and all(one.innocent for one in members)


def gather(regression: Regression) -> causes.Facts:
    members = speaking.members(regression)
    good, bad = run_before(regression), run_after(regression)
    seen = Environments(good, bad)
    series = regression.series
    proof = newest_proof(regression)
    return causes.Facts(
        state=regression.state,
        worse=worse(regression),
        limit_alone=bool(regression.limit) and not members and proof is None,
        by_counter=bool(members) and is_exact_counter(series),
        innocent=bool(members) and all(one.innocent for one in members),
        proof=proof,
        system=seen.system or marked(members, markers.SYSTEM),
        software=seen.software,
        machines=seen.machines,
        touched=installed.touched(regression.project, series, *blame.difference_of(regression)),
        suspects=tuple((place(one), bool(one.get("changed"))) for one in regression.suspects),
        sentinel=sentinel(series, good, bad),
        calibration=seen.calibration if series.metric.kind in CLOCKED else None,
    )


def worse(regression: Regression) -> float | None:
    """Of the suspected step, not of what a confirmation made of it: that is what needs an explanation."""
    ratio = regression.series.metric.ratio(regression.before, regression.after)
    if ratio is None or ratio <= 0 or regression.series.metric.on_ratio_scale(regression.before) <= 0:
        return None
    return ratio if regression.series.metric.better == Metric.Better.LOWER else 1 / ratio


def marked(members: Iterable[Change], keys: Iterable[str]) -> tuple[str, ...]:
    """What the markers of changes say of these keys: of runs that history has replaced since."""
    heads = tuple(f"{markers.WORDS.get(key, key)} " for key in keys)
    found = [text for one in members for text in one.markers if text.startswith(heads)]
    return tuple(dict.fromkeys(found))


def newest_proof(regression: Regression) -> Confirmation | None:
    """Of the series that speaks; of another one where that wasn't measured by pairs."""
    rows = proofs.done(regression)
    of_all = [row for row in rows if row.purpose == Confirmation.Purpose.CONFIRM]
    return next(iter(proofs.of_measurement(rows, regression.series) or of_all), None)


def place(suspect: Mapping[str, Any]) -> str:
    return f"{suspect['file']}:{suspect['function']}"


def run_after(regression: Regression) -> Run | None:
    """The first run that saw the new level."""
    return (
        runs_at(regression.series, regression.first_bad_id).order_by("tainted", "finished_at", "pk").first()
    )


def run_before(regression: Regression) -> Run | None:
    """The last run of the last good commit before that, or the last one at all."""
    bad = run_after(regression)
    rows = runs_at(regression.series, regression.last_good_id).order_by(
        "tainted", F("finished_at").desc(nulls_last=True), "-pk"
    )
    earlier = rows.filter(finished_at__lt=bad.finished_at) if bad and bad.finished_at else rows
    return earlier.first() or rows.first()


def runs_at(series: Series, commit: int) -> QuerySet[Run]:
    return Run.objects.filter(points__series=series, commit=commit, state=Run.State.DONE).select_related(
        "machine"
    )


def sentinel(series: Series, good: Run | None, bad: Run | None) -> sentinels.Moved | None:
    """How the machine's sentinel stood after the one run to how it stood before the other."""
    times = sorted(one.finished_at for one in (good, bad) if one and one.finished_at)
    if len(times) < 2 or bad is None or bad.machine_id is None:
        return None
    since, until = times
    return sentinels.between(series, bad.machine_id, since, until)


class Environments:
    """What differs between the documents of two runs."""

    def __init__(self, good: Run | None, bad: Run | None) -> None:
        self.system: tuple[str, ...] = ()
        self.software: tuple[str, ...] = ()
        self.machines: tuple[str, ...] = ()
        self.calibration: float | None = None
        if good is None or bad is None:
            return
        known = markers.Environments()
        known.read([good.pk, bad.pk])
        pair = known.of(good.pk), known.of(bad.pk)
        self.system = tuple(markers.system(*pair))
        self.software = tuple(markers.software(*pair))
        self.machines = tuple(markers.machine(*pair))
        loops = calibrations([good.pk, bad.pk])
        if good.pk in loops and bad.pk in loops and good.machine_id == bad.machine_id:
            self.calibration = loops[bad.pk] / loops[good.pk]


def calibrations(run_ids: Iterable[int]) -> dict[int, float]:
    """What the calibration loop took in the runs that have one: seconds, the median of their repetitions."""
    rows = Document.objects.filter(run__in=list(run_ids)).values_list("run_id", "body__repetitions")
    found = {}
    for run, repetitions in rows:
        names = ("calibration_before", "calibration_after")
        loops = [one[name] for one in repetitions or [] for name in names if one.get(name)]
        if loops:
            found[run] = float(median(loops))
    return found
