"""What moved beside the commits at a step: environments, machines, sentinels. And the files they touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from django.db.models import F, QuerySet

from dashboard import environments, sentinels
from dashboard.environments import RunEnvironments
from dashboard.models import Document, Project, Run, Series
from dashboard.regressions.decision.cause_class import Confounders, Difference, SentinelMove, TouchedFiles
from dashboard.regressions.decision.requested_facts import DifferencesAtStep
from dashboard.regressions.explanation.phase_shares import CLOCKED
from dashboard.regressions.explanation.touched_files import read_touched_files
from dashboard.regressions.judged_rows import read_series

SYSTEM_LABELS = frozenset(environments.LABELS.get(name, name) for name in environments.SYSTEM)


def read_differences_at_step(
    project: Project, request: DifferencesAtStep
) -> tuple[Confounders, TouchedFiles]:
    """Compares the last run of the old level with the first of the new one, by their documents."""
    series = read_series(request.series.pk)
    bad = run_after_step(series, request.bad.pk)
    good = run_before_step(series, request.good.pk, bad)
    seen = compare_environments(good, bad)
    confounders = replace(
        seen,
        system=seen.system or system_markers(request.markers),
        sentinel=sentinel_between(series, good, bad),
        calibration=seen.calibration if series.metric.kind in CLOCKED else None,
    )
    return confounders, read_touched_files(project, series.configuration, *request.difference)


def run_after_step(series: Series, bad: int) -> Run | None:
    """The first run that saw the new level."""
    return runs_at_commit(series, bad).order_by("tainted", "finished_at", "pk").first()


def run_before_step(series: Series, good: int, after: Run | None) -> Run | None:
    """The last run of the last good commit before that, or the last one at all."""
    rows = runs_at_commit(series, good).order_by("tainted", F("finished_at").desc(nulls_last=True), "-pk")
    earlier = rows.filter(finished_at__lt=after.finished_at) if after and after.finished_at else rows
    return earlier.first() or rows.first()


def runs_at_commit(series: Series, commit: int) -> QuerySet[Run]:
    return Run.objects.filter(points__series=series, commit=commit, state=Run.State.DONE).select_related(
        "machine"
    )


def compare_environments(good: Run | None, bad: Run | None) -> Confounders:
    """What differs between the documents of two runs."""
    if good is None or bad is None:
        return Confounders()
    known = RunEnvironments()
    known.read_runs([good.pk, bad.pk])
    before, after = known.of_run(good.pk), known.of_run(bad.pk)
    loops = calibration_seconds([good.pk, bad.pk])
    comparable = good.pk in loops and bad.pk in loops and good.machine_id == bad.machine_id
    return Confounders(
        system=tuple(environments.system_differences(before, after)),
        software=tuple(environments.software_differences(before, after)),
        machines=tuple(environments.machine_differences(before, after)),
        calibration=loops[bad.pk] / loops[good.pk] if comparable else None,
    )


def system_markers(markers: Iterable[Difference]) -> tuple[Difference, ...]:
    """Those of the system: of runs that history has replaced since."""
    return tuple(marker for marker in markers if marker[0] in SYSTEM_LABELS)


def calibration_seconds(run_ids: Iterable[int]) -> dict[int, float]:
    """What the calibration loop took in the runs that have one: the median of their repetitions."""
    rows = Document.objects.filter(run__in=list(run_ids)).values_list("run_id", "body__repetitions")
    seconds = {}
    for run, repetitions in rows:
        names = ("calibration_before", "calibration_after")
        loops = [
            repetition[name] for repetition in repetitions or [] for name in names if repetition.get(name)
        ]
        if loops:
            seconds[run] = float(median(loops))
    return seconds


def sentinel_between(series: Series, good: Run | None, bad: Run | None) -> SentinelMove | None:
    """How the machine's sentinel stood after the one run to how it stood before the other."""
    times = sorted(run.finished_at for run in (good, bad) if run and run.finished_at)
    if len(times) < 2 or bad is None or bad.machine_id is None:
        return None
    moved = sentinels.compare_between(series, bad.machine_id, *times)
    if moved is None:
        return None
    return SentinelMove(
        machine=str(moved.sentinel.machine),
        commit=moved.sentinel.commit.short,
        metric=moved.metric,
        ratio=moved.ratio,
        low=moved.low,
        high=moved.high,
        after=f"{moved.after:%Y-%m-%d %H:%M}",
        before=f"{moved.before:%Y-%m-%d %H:%M}",
        moved=moved.moved,
        worse=moved.worse,
    )
