"""What measures a claim: the two configurations of an experiment, or the runs of one; or why nothing does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from paceline.claims.claim import PHASE_SHARE, SECONDS_PER
from paceline.claims.claim import Claim as ClaimText
from paceline.claims.readings import is_derived, split_spelling
from paceline.manifest import Benchmark, case_key
from paceline.metrics import describe_metric

from dashboard import runs
from dashboard.experiments import ExperimentError
from dashboard.experiments.requests import find_metric
from dashboard.models import Case, Configuration, Machine, Metric, Point, Pool, Project, Run, Series

STEP_TIME = "step_time"
# A comparison in the benchmark's own windows, without seeds or sweep.
OWN_WINDOW = (None, None, (), False)


@dataclass(frozen=True, slots=True)
class UsualWindow:
    """How a benchmark is measured otherwise: on this pool, in these windows."""

    pool: Pool
    quick: bool


def usual_window(project: Project, benchmark: Benchmark, pool: str = "") -> UsualWindow:
    """As it was measured last, standard windows before quick ones; before its first run the site's pool."""
    measured = Configuration.objects.filter(case__project=project, case__benchmark=benchmark.name)
    if pool:
        measured = measured.filter(pool__name=pool)
    newest = measured.select_related("pool").order_by("quick", "-version", "-pk").first()
    if newest:
        return UsualWindow(newest.pool, newest.quick)
    return UsualWindow(runs.pool_named(pool or settings.PACELINE_POOL), quick=False)


def unmeasured_reason(claim: ClaimText, benchmark: Benchmark, window: UsualWindow) -> dict[str, Any]:
    """Why nothing here measures the claim, as a code with values; empty where something does."""
    if claim.untestable is not None:
        return {"code": "untestable", "text": claim.untestable}
    if claim.needs_cuda and not has_device(window.pool):
        return {"code": "no device", "pool": window.pool.name}
    if claim.main_comparison.window != OWN_WINDOW:
        return {"code": "sweep" if claim.main_comparison.sweeps else "own window"}
    if claim.before is None:
        return {}
    if case_key(merged_params(benchmark, claim.before)) == case_key(
        merged_params(benchmark, claim.after or {})
    ):
        return {"code": "same sides"}
    overridden = sorted(differing_names(claim) & set(benchmark.quick.params or {})) if window.quick else []
    if overridden:
        return {"code": "quick windows", "parameter": overridden[0]}
    name, phases = split_spelling(claim.metric)
    kind = metric.kind if (metric := describe_metric(name)) else ""
    if name.startswith(SECONDS_PER) or (len(phases) > 1 and kind == "counter"):
        return {"code": "no pairs", "metric": claim.metric}
    return {}


def missing_run_reason(code: str, claim: ClaimText, benchmark: Benchmark) -> dict[str, Any]:
    """Why no run tells of a claim about one case, and of which case and version one would (`run_of`)."""
    key = case_key(merged_params(benchmark, claim.after or {}))
    reason = {"code": code, "case": claim.after or {}, "run_of": key, "version": benchmark.version}
    return reason | ({"listed": True} if key in {case.key for case in benchmark.cases} else {})


def has_device(pool: Pool) -> bool:
    """Whether a machine of the pool has said that it has a GPU."""
    return any(
        machine.fingerprint.get("gpus") for machine in Machine.objects.filter(pool=pool).only("fingerprint")
    )


def differing_names(claim: ClaimText) -> set[str]:
    before, after = claim.before or {}, claim.after or {}
    return {name for name in (*before, *after) if before.get(name) != after.get(name)}


def merged_params(benchmark: Benchmark, params: Mapping[str, Any]) -> dict[str, Any]:
    return {**benchmark.params, **params}


def create_configuration(
    project: Project, benchmark: Benchmark, params: Mapping[str, Any], window: UsualWindow
) -> Configuration:
    """The row of a claim's case in the usual window, made where it is new."""
    merged = merged_params(benchmark, params)
    case, _ = Case.objects.get_or_create(
        project=project, benchmark=benchmark.name, key=case_key(merged), defaults={"params": merged}
    )
    rows = runs.get_or_create_configurations([(case, benchmark.version)], window.pool, window.quick)
    return rows[case.pk, benchmark.version]


def experiment_spelling(metric: str) -> str:
    """The metric that the experiment of a claim about two cases weighs: what it is derived from."""
    return STEP_TIME if is_derived(metric) or split_spelling(metric)[0] == PHASE_SHARE else metric


def runs_of_claim(
    project: Project, benchmark: Benchmark, claim: ClaimText, position: int, pool: str
) -> QuerySet[Run]:
    """The runs of a claim's case on the project's branch up to a position: standard ones before quick ones,
    the newest first."""
    found = Run.objects.filter(
        configuration__case__project=project,
        configuration__case__benchmark=benchmark.name,
        configuration__case__key=case_key(merged_params(benchmark, claim.after or {})),
        configuration__version=benchmark.version,
        commit__branch=project.branch,
        commit__position__lte=position,
        state=Run.State.DONE,
    ).exclude(origin=Run.Origin.SENTINEL)
    if pool:
        found = found.filter(configuration__pool__name=pool)
    return found.select_related("configuration").order_by("configuration__quick", "-commit__position", "-pk")


def judged_runs(found: QuerySet[Run], claim: ClaimText) -> QuerySet[Run]:
    """Those in which nothing of what is claimed is kept out of judgement."""
    names = metric_names(claim.metric)
    return found.exclude(
        Exists(Point.objects.filter(run=OuterRef("pk"), series__metric__name__in=names, tainted=True))
    )


def has_measured(run: Run, claim: ClaimText) -> bool:
    """Whether a run has left points of all that a claim is read from."""
    names = metric_names(claim.metric)
    found = Point.objects.filter(run=run, series__metric__name__in=names)
    return found.values("series__metric__name").distinct().count() == len(names)


def metric_names(spelling: str) -> list[str]:
    """The metrics whose points a claim's metric is read from."""
    name, _ = split_spelling(spelling)
    if name == PHASE_SHARE:
        return ["phase_time", STEP_TIME]
    if name.startswith(SECONDS_PER):
        return [STEP_TIME, f"count.{name.removeprefix(SECONDS_PER)}"]
    return [name]


def find_claim_metric(spelling: str, base: Configuration, head: Configuration) -> tuple[Metric, str] | None:
    """The metric and phase that an experiment weighs; None of what no run has reported so far."""
    for configuration in (head, base):
        try:
            return find_metric(spelling, configuration)
        except ExperimentError:
            continue
    name, _, phase = spelling.partition(":")
    measured = Series.objects.filter(
        metric__name=name, phase=phase, configuration__case__project=head.case.project_id
    )
    series = measured.select_related("metric").first()
    return (series.metric, phase) if series else None
