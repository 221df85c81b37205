"""Two sides of a project beside each other: which cases, how much, and what explains it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dashboard import environments
from dashboard.comparisons.metric_rows import (
    MISSING_BASE,
    MISSING_HEAD,
    THINNED_BASE,
    THINNED_HEAD,
    MetricRow,
    metric_rows,
)
from dashboard.comparisons.pairing import CasePair, Pairing, PooledRuns, choose_pair, pair_runs
from dashboard.comparisons.phase_rows import PhaseRow, pair_phases
from dashboard.comparisons.profile_rows import (
    NEAREST,
    ProfileComparison,
    choose_profile,
    compare_kernels,
    compare_profiles,
    median_by_name,
)
from dashboard.comparisons.requests import ComparisonRequest
from dashboard.comparisons.revisions import ComparisonSide, find_sides
from dashboard.environments import Difference
from dashboard.models import Project
from dashboard.querysets import comparisons as queries
from dashboard.querysets.comparisons import ComparedPoint

# Of what two documents were measured by, what must be alike for their numbers to be.
WINDOW_FIELDS = ("warmup_steps", "steps", "counting_steps")
PHASE_METRIC = "phase_self_time"


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """A case by its headline metrics, the largest difference first."""

    pair: CasePair
    rows: Sequence[MetricRow]

    @property
    def size(self) -> float:
        return max((row.size for row in self.rows if row.is_different), default=0.0)


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """All of one case. `windows`: settings of the measured window that differ. `mixed`: the sides whose runs
    were measured under several environments."""

    pair: CasePair
    rows: Sequence[MetricRow]
    phases: Sequence[PhaseRow]
    environment: Sequence[Difference]
    windows: Sequence[Difference]
    mixed: Sequence[str]
    profile: ProfileComparison

    @property
    def different(self) -> list[MetricRow]:
        return [row for row in self.rows if row.is_different]

    @property
    def alike(self) -> list[MetricRow]:
        return [row for row in self.rows if row.verdict == "~"]

    @property
    def unknown(self) -> list[MetricRow]:
        return [row for row in self.rows if row.verdict == "?"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`cases` stand in the order of what differs most; `chosen` is the one that the request names, else the
    first. None where nothing may be compared: `pairing.unpaired` says why."""

    project: Project
    request: ComparisonRequest
    base: ComparisonSide
    head: ComparisonSide
    pairing: Pairing
    cases: Sequence[CaseSummary]
    chosen: CaseComparison | None


def compare_revisions(project: Project, request: ComparisonRequest) -> Comparison:
    """Reads what is stored; raises ComparisonError."""
    base, head = find_sides(project, request.base, request.head)
    commits = [side.commit.pk for side in (base, head) if side.run is None]
    runs = queries.runs_of_commits(commits) if commits else []
    pairing = pair_runs(base, head, runs, request)
    summaries = summarize_cases(pairing.pairs)
    pair = choose_pair([summary.pair for summary in summaries], request)
    chosen = compare_case(pair) if pair else None
    if chosen and len(summaries) == 1:
        summaries = [CaseSummary(chosen.pair, [row for row in chosen.rows if row.headline])]
    return Comparison(project, request, base, head, pairing, summaries, chosen)


def summarize_cases(pairs: Sequence[CasePair]) -> list[CaseSummary]:
    """By headline metrics, what differs most first. A single case is compared in full: not here."""
    if len(pairs) < 2:
        return [CaseSummary(pair, ()) for pair in pairs]
    by_configuration: defaultdict[int, list[ComparedPoint]] = defaultdict(list)
    points, recent = queries.headline_points([run for pair in pairs for run in pair.runs])
    for point in points:
        by_configuration[point.series.configuration_id].append(point)
    summaries = []
    for pair in pairs:
        keys = dict.fromkeys((pair.base.configuration.pk, pair.head.configuration.pk))
        own = [point for key in keys for point in by_configuration[key]]
        summaries.append(CaseSummary(pair, metric_rows(own, [run.pk for run in pair.base.runs], recent)))
    return sorted(summaries, key=lambda summary: (-summary.size, str(summary.pair.base.configuration)))


def compare_case(pair: CasePair) -> CaseComparison:
    points = queries.points_of_runs(run.pk for run in pair.runs)
    recent = queries.recent_values({point.series.pk for point in points})
    near = [*pair.base.runs[:NEAREST], *pair.head.runs[:NEAREST]]
    documents = queries.measured_parts(run.pk for run in near)
    before, after = (environment_values(side, documents) for side in (pair.base, pair.head))
    rows = mark_thinned(metric_rows(points, [run.pk for run in pair.base.runs], recent), pair)
    own_times = {row.phase: row.verdict for row in rows if row.metric.name == PHASE_METRIC}
    return CaseComparison(
        pair=pair,
        rows=rows,
        phases=pair_phases(phase_times(points, pair.base), phase_times(points, pair.head), own_times),
        environment=environments.compare_environments(before, after),
        windows=window_differences(pair, documents),
        mixed=[
            name
            for name, side in (("base", pair.base), ("head", pair.head))
            if len({run.environment_id for run in side.runs}) > 1
        ],
        profile=compare_case_profiles(pair, points, documents),
    )


def mark_thinned(rows: Sequence[MetricRow], pair: CasePair) -> list[MetricRow]:
    """Where all runs of a side are thinned, what it lacks may have been there."""
    codes = {
        missing: thinned
        for side, missing, thinned in (
            (pair.base, MISSING_BASE, THINNED_BASE),
            (pair.head, MISSING_HEAD, THINNED_HEAD),
        )
        if all(run.points_thinned for run in side.runs)
    }
    if not codes:
        return list(rows)
    return [
        replace(
            row,
            reasons=tuple(replace(doubt, code=codes.get(doubt.code, doubt.code)) for doubt in row.reasons),
        )
        for row in rows
    ]


def environment_values(
    side: PooledRuns, documents: Mapping[int, Mapping[str, Any]]
) -> environments.EnvironmentValues:
    """Of the newest run of a side, with the name of its machine; empty where none is known."""
    run = side.runs[0]
    values = (documents.get(run.pk) or {}).get("environment")
    return {**values, "machine": run.machine.name if run.machine else None} if values else {}


def phase_times(points: Sequence[ComparedPoint], side: PooledRuns) -> dict[str, float]:
    """By phase its own seconds per step: the median of the side's runs."""
    runs = {run.pk for run in side.runs}
    values: defaultdict[str, list[float]] = defaultdict(list)
    for point in points:
        if point.run_id in runs and point.series.metric.name == PHASE_METRIC and point.series.phase:
            values[point.series.phase].append(point.value)
    return median_by_name(values)


def window_differences(pair: CasePair, documents: Mapping[int, Mapping[str, Any]]) -> list[Difference]:
    """What of the measured window isn't alike in the newest runs, so that the numbers needn't be either."""
    sides = [
        [(documents.get(run.pk) or {}).get("protocol") or {} for run in side.runs[:NEAREST]]
        for side in (pair.base, pair.head)
    ]
    found = []
    for name in WINDOW_FIELDS:
        known = [sorted({window[name] for window in side if window.get(name) is not None}) for side in sides]
        if all(known) and len({value for values in known for value in values}) > 1:
            before, after = (" and ".join(map(str, values)) for values in known)
            found.append(Difference(name.replace("_", " "), before, after))
    return found


def compare_case_profiles(
    pair: CasePair, points: Sequence[ComparedPoint], documents: Mapping[int, Mapping[str, Any]]
) -> ProfileComparison:
    step_times = {
        point.run_id: point.value
        for point in points
        if point.series.metric.name == "step_time" and not point.series.phase and point.value > 0
    }
    sides = (("base", pair.base), ("head", pair.head))
    found = {name: choose_profile(side.runs[:NEAREST], documents, step_times) for name, side in sides}
    kernels = compare_kernels(_document_with_device(side, documents) for _, side in sides)
    base, head = found["base"], found["head"]
    if base is None or head is None:
        missing = tuple(name for name, profile in found.items() if profile is None)
        return ProfileComparison(kernels=kernels, missing=missing)
    profiled_runs = (base[0], head[0])
    tainted = tuple(run.pk for run in pair.runs if run.tainted and run.pk in profiled_runs)
    found_differences = compare_profiles(base[1], head[1], has_times=not tainted)
    return replace(found_differences, kernels=kernels, runs=profiled_runs, tainted=tainted)


def _document_with_device(
    side: PooledRuns, documents: Mapping[int, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The newest that has a timeline of a device."""
    near = (documents.get(run.pk) or {} for run in side.runs[:NEAREST])
    return next((document for document in near if document.get("device_profile")), None)
