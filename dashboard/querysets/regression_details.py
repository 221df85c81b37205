"""One regression as its own page and the API show it: what it groups, what was measured again for it, what
people said, and the runs around its step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import DateTimeField, Exists, OuterRef, Prefetch, Q, QuerySet, Value
from paceline.document import CODES_OF_DISTURBANCE

from dashboard.measured_kinds import is_exact_counter, is_time
from dashboard.models import (
    Change,
    Delivery,
    Document,
    ExperimentPair,
    Limit,
    Point,
    Regression,
    RegressionExperiment,
    Run,
    Series,
    Triage,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.disturbances import tainting_codes
from dashboard.querysets.regressions import IS_OPEN, regressions_with_related
from dashboard.querysets.visibility import ProjectVisibility, VisibilityRule

# Which values by phase add up to a metric of each kind; of a counter, its own.
PHASE_TIMES, PHASE_MEMORY = "phases", "phase_memory"
PHASE_VALUES = {
    "time": PHASE_TIMES,
    "rate": PHASE_TIMES,
    "utilization": PHASE_TIMES,
    "quality": PHASE_TIMES,
    "memory": PHASE_MEMORY,
}


def find_for_page(pk: int) -> Regression | None:
    """With what its own page asks for."""
    return next(iter(_FOR_PAGE.read_rows(pk=pk)), None)


def _build_for_page() -> QuerySet[Regression]:
    """Beside what its line names: its series' latest state, and which lists aren't empty."""
    return (
        regressions_with_related()
        .filter(pk=Parameter("pk"))
        .select_related("series__latest")
        .annotate(
            has_limits=Exists(Limit.objects.filter(regression=OuterRef("pk"))),
            has_triages=Exists(Triage.objects.filter(regression=OuterRef("pk"))),
            has_deliveries=Exists(Delivery.objects.filter(regression=OuterRef("pk"))),
            is_limited=Exists(Limit.objects.filter(series=OuterRef("series"))),
        )
    )


_FOR_PAGE = CompiledQuery(_build_for_page)


def neighbours_in_inbox(
    regression: Regression, visibility: ProjectVisibility
) -> tuple[int | None, int | None]:
    """The open ones found just after and just before it, as the inbox lists them: (newer, older)."""
    values = {"at": regression.opened_at, "pk": regression.pk, **visibility.values}
    found: dict[bool, int] = dict(_NEIGHBOURS.read_rows(visibility.rule, **values))
    return found.get(True), found.get(False)


def _build_neighbours(rule: VisibilityRule) -> QuerySet[Any]:
    there = Regression.objects.filter(IS_OPEN, project__in=rule.given_projects())
    at, pk = Parameter("at", DateTimeField()), Parameter("pk")
    newer = there.filter(Q(opened_at__gt=at) | Q(opened_at=at, pk__gt=pk)).order_by("opened_at", "pk")
    older = there.filter(Q(opened_at__lt=at) | Q(opened_at=at, pk__lt=pk)).order_by("-opened_at", "-pk")
    sides = [rows.annotate(is_newer=Value(value)) for rows, value in ((newer, True), (older, False))]
    first, second = (rows.values_list("is_newer", "pk")[:1] for rows in sides)
    return first.union(second, all=True)


_NEIGHBOURS = CompiledQuery(_build_neighbours)


def grouped_changes(regression: Regression) -> list[Change]:
    """The changes that it groups; those of headline series first."""
    changes = _CHANGES.read_rows(regression=regression.pk)
    for change in changes:
        change.regression = regression
    return changes


def _build_changes() -> QuerySet[Change]:
    rows = Change.objects.filter(regression=Parameter("regression")).select_related(
        *("series__metric", "series__configuration__case", "series__configuration__pool"),
        *("first_bad", "last_good"),
    )
    return rows.order_by("-series__headline", "series__metric__name", "series__phase")


_CHANGES = CompiledQuery(_build_changes)


def measured_again(regression: Regression, *, with_pairs: bool) -> list[RegressionExperiment]:
    """What was measured again for it, in order. The pairs are without their steps."""
    links = _EXPERIMENTS.read_rows(with_pairs, regression=regression.pk)
    for link in links:
        link.regression = regression
    return links


def _build_experiments(with_pairs: bool) -> QuerySet[RegressionExperiment]:
    sides = (f"experiment__{name}" for name in ("base_commit", "head_commit", "machine", "metric"))
    links = RegressionExperiment.objects.filter(regression=Parameter("regression")).select_related(
        *sides, "series__metric", "series__configuration__case"
    )
    rows = links.order_by("experiment__requested_at", "experiment")
    light = Prefetch("experiment__pairs", ExperimentPair.objects.defer("steps"))
    return rows.prefetch_related(light) if with_pairs else rows


_EXPERIMENTS = CompiledQuery(_build_experiments)


def regression_triages(regression: Regression) -> list[Triage]:
    """What people said about it, newest first; no query where the page knows that there is nothing."""
    if not getattr(regression, "has_triages", True):
        return []
    return list(regression.triages.select_related("person").order_by("-at", "-pk"))


@dataclass(frozen=True, slots=True)
class StepRuns:
    """The runs of the last good and of the first bad commit that its series has points of. `by_commit`: the
    newest of each, an untainted one where there is one. `origins`: where all of them come from. `counted_at`:
    by run, the commit that its counters were taken over from."""

    by_commit: dict[int, int]
    origins: set[str]
    counted_at: dict[int, str] = field(default_factory=dict)

    def of_both(self, regression: Regression) -> list[int]:
        """Of the last good and of the first bad commit, in that order; shorter where one has none."""
        commits = (regression.last_good_id, regression.first_bad_id)
        return [self.by_commit[commit] for commit in commits if commit in self.by_commit]


def runs_of_step(regression: Regression) -> StepRuns:
    commits = [regression.last_good_id, regression.first_bad_id]
    runs: dict[int, int] = {}
    origins: set[str] = set()
    taken_over: dict[int, str] = {}
    for commit, run, origin, counted_at in _RUNS_OF_STEP.read_rows(
        configuration=regression.series.configuration_id, commits=commits
    ):
        runs.setdefault(commit, run)
        origins.add(origin)
        if counted_at:
            taken_over[run] = counted_at
    return StepRuns(runs, origins, taken_over)


def _build_runs_of_step() -> QuerySet[Any]:
    # By runs, not by the series' points: where a quality isn't reported any more there are none.
    done = Run.objects.filter(
        configuration=Parameter("configuration"),
        commit__in_array=Parameter("commits"),
        state=Run.State.DONE,
    )
    return done.order_by("tainted", "-pk").values_list("commit_id", "pk", "origin", "counted_at")


_RUNS_OF_STEP: CompiledQuery[Any] = CompiledQuery(_build_runs_of_step)


def runs_that_counted(regression: Regression, runs: StepRuns) -> tuple[dict[int, int], list[str]]:
    """By commit the run that tells the memory of its phases: the newest of the commit that was counted, where
    the counters were taken over; and the hashes of such commits."""
    wanted = {
        commit: runs.counted_at[run] for commit, run in runs.by_commit.items() if run in runs.counted_at
    }
    if not wanted:
        return runs.by_commit, []
    counted = Run.objects.filter(
        configuration=regression.series.configuration_id,
        commit__hash__in=wanted.values(),
        state=Run.State.DONE,
        counted_at="",
    )
    newest = dict(counted.order_by("-tainted", "pk").values_list("commit__hash", "pk"))
    found = {commit: newest[name] for commit, name in wanted.items() if name in newest}
    return {**runs.by_commit, **found}, sorted({wanted[commit] for commit in found})


def disturbed_runs(runs: Sequence[int]) -> int:
    """How many of these were disturbed, by what keeps them out of judgement."""
    rows: Any = Run.objects.filter(pk__in=runs, tainted=True)
    warning_lists = rows.values_list("document__body__warnings", flat=True)
    return sum(
        not CODES_OF_DISTURBANCE.isdisjoint(tainting_codes(warnings or ())) for warnings in warning_lists
    )


def times_beside_counter(regression: Regression) -> list[Point]:
    """`step_times_beside`, where nothing of the regression has been read yet."""
    if not is_exact_counter(regression.series):
        return []
    moved_series = [change.series for change in grouped_changes(regression)]
    moved_series += [link.series for link in measured_again(regression, with_pairs=False)]
    return step_times_beside(regression, moved_series, runs_of_step(regression))


def step_times_beside(regression: Regression, moved_series: Iterable[Series], runs: StepRuns) -> list[Point]:
    """Of a counter that moved alone what a step took before and after; empty where `moved_series` has a time.

    `moved_series`: the series whose changes and pairs say what moved.
    """
    if not is_exact_counter(regression.series) or any(map(is_time, moved_series)):
        return []
    points = step_times_around(regression, runs)
    return points if points and points[0].value > 0 else []


def step_times_around(regression: Regression, runs: StepRuns) -> list[Point]:
    """What a step took in the runs of the last good and the first bad commit; empty unless both tell."""
    both = runs.of_both(regression)
    rows = Point.objects.filter(
        run__in=both,
        series__configuration=regression.series.configuration_id,
        series__metric__name="step_time",
        series__phase="",
        tainted=False,
    )
    found = {point.run_id: point for point in rows}
    return [found[run] for run in both] if len(both) == len(found) == 2 else []


def phases_around_step(
    regression: Regression, runs: Mapping[int, int]
) -> tuple[dict[str, float], dict[str, float]]:
    """By phase, before and after the step: what the metric of the regression's series is made of. `runs`: by
    commit.

    Memory is in bytes that a phase grew by, a counter in counts, all else in seconds per step in the
    phase itself. Empty where that commit has no point.
    """
    name = PHASE_VALUES.get(regression.series.metric.kind, regression.series.metric.name)
    part = "body__phases" if name == PHASE_TIMES else "body__metrics"
    rows_by_run = dict(Document.objects.filter(run__in=runs.values()).values_list("run_id", part))
    before, after = (
        values_by_phase(rows_by_run.get(runs.get(commit, 0)) or [], name)
        for commit in (regression.last_good_id, regression.first_bad_id)
    )
    return before, after


def values_by_phase(rows: list[dict[str, Any]], name: str) -> dict[str, float]:
    """What the phases of a document have of a metric, or their own times."""
    if name == PHASE_TIMES:
        return {row["path"]: row["self"] for row in rows}
    return {row["phase"]: row["value"] for row in rows if row["name"] == name and row["phase"]}
