"""Regressions as the inbox and the other pages read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    BooleanField,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Window,
)
from django.db.models.functions import RowNumber

from dashboard.models import (
    Case,
    Change,
    Check,
    Commit,
    Delivery,
    Experiment,
    Limit,
    Metric,
    Point,
    Project,
    Regression,
    Run,
    Triage,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import PROJECT_DETAILS, compose_details, is_among
from dashboard.querysets.visibility import ProjectVisibility, VisibilityRule

# So long an alert that didn't get through stands on the overview.
RECENT_DELIVERIES = timedelta(days=7)

# ONGOING: real as far as we know, whatever people decided about it. UNRESOLVED: nor has anybody put it away.
ONGOING = Q(recovered_by=None, withdrawn_at=None) & ~Q(state=Regression.State.REFUTED)
UNRESOLVED = ONGOING & ~Q(triaged__in=Regression.TRIAGED_AWAY)
# IMPORTED: another tool's results alone show it, and nothing of them can be measured again.
_POINTS_OF_STEP = Point.objects.filter(
    Q(run__commit=OuterRef("first_bad")) | Q(run__commit=OuterRef("last_good")), series=OuterRef("series")
)
# Tested first, by an index: most sites, and most configurations, have no imported run.
_IMPORTED_RUNS = Run.objects.filter(origin=Run.Origin.IMPORTED)
IMPORTED = (
    Q(Exists(_IMPORTED_RUNS))
    & Q(Exists(_IMPORTED_RUNS.filter(configuration__series=OuterRef("series"))))
    & Q(Exists(_POINTS_OF_STEP))
    & ~Q(Exists(_POINTS_OF_STEP.exclude(run__origin=Run.Origin.IMPORTED)))
)


def inbox_filters(imported: Q) -> dict[str, Q]:
    """The tabs of the inbox, in the order shown; `imported` says which those are."""
    # What needs a person now. An old history is there to be looked through, and has a tab of its own.
    needs_person = UNRESOLVED & ~imported
    return {
        "open": needs_person,
        "suspected": needs_person & Q(state=Regression.State.SUSPECTED),
        "confirmed": needs_person & Q(state=Regression.State.CONFIRMED),
        "undecided": needs_person & Q(state=Regression.State.UNDECIDED),
        "acknowledged": UNRESOLVED & Q(triaged=Regression.Triaged.ACKNOWLEDGED),
        "intended": Q(triaged=Regression.Triaged.INTENDED),
        "not real": Q(triaged=Regression.Triaged.NOT_REAL),
        "won't fix": Q(triaged=Regression.Triaged.WONT_FIX),
        "refuted": Q(state=Regression.State.REFUTED),
        "recovered": Q(recovered_by__isnull=False),
        "withdrawn": Q(withdrawn_at__isnull=False),
        "imported": UNRESOLVED & imported,
        "all": Q(),
    }


FILTERS = inbox_filters(IMPORTED)
IS_OPEN = FILTERS["open"]

# Only of these causes a commit is the culprit.
CAUSES_WITH_COMMIT = ("", Regression.Cause.CODE)


def regressions_with_related() -> QuerySet[Regression]:
    """With all that a line about a regression names."""
    triages = Triage.objects.filter(regression=OuterRef("pk")).exclude(action=Triage.Action.COMMENT)
    account = triages.order_by("-at", "-pk").values("account")[:1]
    # Where there are others a title names the case: the same commit may have slowed several.
    others = Case.objects.filter(project=OuterRef("project")).exclude(
        pk=OuterRef("series__configuration__case")
    )
    annotated = Regression.objects.annotate(triaged_account=Subquery(account), has_other_cases=Exists(others))
    return annotated.select_related(
        "project",
        "first_bad",
        "culprit",
        "last_good",
        "recovered_by",
        "triaged_by",
        "snooze__person",
        "series__metric",
        "series__configuration__case",
        "series__configuration__pool",
    )


def with_titles(rows: QuerySet[Regression]) -> QuerySet[Regression]:
    """With what titles ask for beside `regressions_with_related`: of many at once, by two queries."""
    limits = Limit.objects.select_related("series__metric", "series__configuration__case")
    return rows.prefetch_related(Prefetch("limits", limits.order_by("series_id")), "changes")


# What only the page of a regression shows: of many at once these would be read and decoded in vain.
REGRESSION_DETAILS = ("suspects", "operations", "device", "excerpts", "slow_processes")
TITLED_OF_KEYS = compose_details(lambda: with_titles(regressions_with_related()))


def listed_regressions() -> QuerySet[Regression]:
    """With all that a line names, and without what only its own page shows."""
    return regressions_with_related().defer(
        *REGRESSION_DETAILS, *(f"project__{name}" for name in PROJECT_DETAILS)
    )


REGRESSIONS_OF_KEYS = compose_details(listed_regressions)


def open_regressions(projects: QuerySet[Project], most: int) -> QuerySet[Regression]:
    """The newest of those that need a person."""
    rows = Regression.objects.filter(IS_OPEN, project__in=projects)
    return listed_regressions().filter(is_among(rows[:most]))


@dataclass(frozen=True, slots=True)
class UnresolvedRegressions:
    """Those that nobody has put away: `imported` are those that imported results alone show."""

    open: list[Regression]
    imported: list[Regression]


def unresolved_regressions(project: Project, most: int) -> UnresolvedRegressions:
    """The newest of each, `most` at most, in one query."""
    found = _UNRESOLVED.read_rows(most, project=project.pk)
    return UnresolvedRegressions(
        open=[row for row in found if not row.is_imported], imported=[row for row in found if row.is_imported]
    )


def _build_unresolved(most: int) -> QuerySet[Regression]:
    rank = Window(
        RowNumber(), partition_by=F("is_imported"), order_by=[F("opened_at").desc(), F("pk").desc()]
    )
    is_imported = ExpressionWrapper(IMPORTED, BooleanField())
    rows: Any = Regression.objects.filter(UNRESOLVED, project=Parameter("project")).order_by()
    newest = rows.annotate(is_imported=is_imported).annotate(rank=rank).filter(rank__lte=most)
    detailed: Any = listed_regressions().annotate(is_imported=is_imported)
    shown: QuerySet[Regression] = detailed.filter(is_among(newest)).order_by("-opened_at", "-pk")
    return shown


_UNRESOLVED = CompiledQuery(_build_unresolved)


def filter_regressions(state: str, projects: QuerySet[Project]) -> QuerySet[Regression]:
    """`state` is a key of FILTERS."""
    return Regression.objects.filter(FILTERS[state], project__in=projects)


def newest_of_filter(
    state: str, visibility: ProjectVisibility, project: Project | None, most: int
) -> list[Regression]:
    """The first `most` that `filter_regressions` lists, of this project or of all that are seen, with what a
    line of a list names."""
    values = {**visibility.values, "project": project.pk if project else None}
    return _NEWEST_OF_FILTER.read_rows(state, visibility.rule, project is not None, most, **values)


def _build_newest_of_filter(
    state: str, rule: VisibilityRule, of_one: bool, most: int
) -> QuerySet[Regression]:
    projects = rule.given_projects()
    projects = projects.filter(pk=Parameter("project")) if of_one else projects
    return listed_regressions().filter(is_among(filter_regressions(state, projects)[:most]))


_NEWEST_OF_FILTER = CompiledQuery(_build_newest_of_filter)


def regressions_by_commit(project: Project, commits: Sequence[Commit]) -> dict[int, Regression]:
    """The regression, not put away, that each of these commits of the project's branch may be to blame for.

    As long as several commits are left each of them may; of two regressions the narrower one counts.
    """
    positions = [commit.position for commit in commits]
    if not positions:
        return {}
    rows = _BLAMING.read_rows(
        project=project.pk, branch=project.branch, least=min(positions), most=max(positions)
    )
    by_commit: dict[int, Regression] = {}
    for regression in sorted(rows, key=lambda row: -row.commits_left):
        last = regression.first_bad.position
        first = last - regression.commits_left + 1
        within = (commit.pk for commit in commits if first <= commit.position <= last)
        by_commit |= dict.fromkeys(within, regression)
    return by_commit


def _build_blaming() -> QuerySet[Regression]:
    rows = Regression.objects.filter(
        UNRESOLVED,
        project=Parameter("project"),
        cause__in=CAUSES_WITH_COMMIT,
        first_bad__branch=Parameter("branch"),
        first_bad__position__gte=Parameter("least"),
        last_good__position__lt=Parameter("most"),
    )
    return rows.select_related("first_bad", "last_good", "culprit").defer(*REGRESSION_DETAILS)


_BLAMING = CompiledQuery(_build_blaming)


def regression_around(run: Run) -> Regression | None:
    """Of the run's configuration, the newest not put away that began at its commit or before."""
    rows = Regression.objects.filter(
        UNRESOLVED,
        series__configuration=run.configuration_id,
        first_bad__branch=run.commit.branch,
        first_bad__position__lte=run.commit.position,
    )
    return rows.select_related("last_good").order_by("-first_bad__position").first()


def changes_by_series(project: Project, series: Iterable[int]) -> dict[int, Change]:
    """The newest change of each of these series that a regression, not put away, holds."""
    changes = _UNRESOLVED_CHANGES.read_rows(project=project.pk, series=list(series))
    return {change.series_id: change for change in changes}


def _build_unresolved_changes() -> QuerySet[Change]:
    open_here = Regression.objects.filter(UNRESOLVED, project=Parameter("project"))
    changes = Change.objects.filter(series__in_array=Parameter("series"), regression__in=open_here)
    related = changes.select_related("series__metric", "regression").order_by("position")
    return related.defer(*(f"regression__{name}" for name in REGRESSION_DETAILS))


_UNRESOLVED_CHANGES = CompiledQuery(_build_unresolved_changes)


def regressions_of_check(check: Check) -> QuerySet[Regression]:
    """Those at the merge of its head: its pairs proved them, or somebody had called them intended."""
    reused = Experiment.objects.filter(pairs_of__checked_case__of=check).values("regression_link__regression")
    called_intended = Triage.objects.filter(merged_check=check).values("regression")
    found = Regression.objects.filter(Q(pk__in=reused) | Q(pk__in=called_intended))
    return found.select_related("first_bad").order_by("pk")


def deliveries_with_related() -> QuerySet[Delivery]:
    """With all that a line of the log names."""
    rows = Delivery.objects.select_related(
        "channel__project", "regression__series__metric", "claim_measurement__claim"
    )
    return rows.defer(
        *(f"regression__{name}" for name in REGRESSION_DETAILS),
        *(f"channel__project__{name}" for name in PROJECT_DETAILS),
    )


DELIVERIES_OF_KEYS = compose_details(deliveries_with_related)


def deliveries_of_channels(projects: QuerySet[Project], channel: int | None = None) -> QuerySet[Delivery]:
    """Which there are, to the channels of these projects or to one of them alone; the newest first."""
    rows = Delivery.objects.filter(channel__project__in=projects)
    return rows.filter(channel=channel) if channel else rows


def deliveries_of_regression(regression: Regression) -> list[Delivery]:
    return _DELIVERIES_OF_REGRESSION.read_rows(regression=regression.pk)


_DELIVERIES_OF_REGRESSION = CompiledQuery(
    lambda: deliveries_with_related().filter(regression=Parameter("regression"))
)


def given_up_deliveries(now: datetime, projects: QuerySet[Project]) -> QuerySet[Delivery]:
    """Alerts of these projects' open regressions that never got through, lately.

    A channel that was turned off wants none.
    """
    rows = deliveries_with_related().filter(
        state=Delivery.State.FAILED,
        next_attempt_at__gte=now - RECENT_DELIVERIES,
        channel__enabled=True,
        channel__project__in=projects,
        regression__in=Regression.objects.filter(IS_OPEN),
    )
    return rows.order_by("-next_attempt_at", "-pk")


def count_by_filter(visibility: ProjectVisibility, project: Project | None) -> dict[str, int]:
    """How many each of FILTERS would list, of this project or of all that are seen."""
    values = {**visibility.values, "project": project.pk if project else None}
    total = Counter(dict.fromkeys(FILTERS, 0))
    for is_imported, *counts in _COUNTS.read_rows(visibility.rule, project is not None, **values):
        each = len(counts) // 2
        of_these = counts[each:] if is_imported else counts[:each]
        total.update(dict(zip(FILTERS, of_these, strict=True)))
    return dict(total)


def _build_counts(rule: VisibilityRule, of_one: bool) -> QuerySet[Any]:
    """Of those that imported results alone show, and of all others, as many as each filter would list if all
    were others, and if all were such: so what is imported is found out once for each row."""
    projects = rule.given_projects()
    projects = projects.filter(pk=Parameter("project")) if of_one else projects
    rows: Any = Regression.objects.filter(project__in=projects).order_by()
    split = rows.values(is_imported=ExpressionWrapper(UNRESOLVED & IMPORTED, BooleanField()))
    none, every = Q(pk__isnull=True), Q(pk__isnull=False)
    rules = [*inbox_filters(none).values(), *inbox_filters(every).values()]
    counters = {f"n{index}": Count("pk", filter=rule or None) for index, rule in enumerate(rules)}
    counts: QuerySet[Any] = split.annotate(**counters).values_list("is_imported", *counters)
    return counts


_COUNTS = CompiledQuery(_build_counts)


def learning_lost_at(changes: Iterable[Change]) -> set[int]:
    """Of the commits that made something better, those since which training learns less: that is no gain.

    No query where nothing got better, or where what got better is what is learned.
    """
    better = [
        change
        for change in changes
        if change.direction == Change.Direction.IMPROVEMENT and not change.series.metric.is_quality
    ]
    if not better:
        return set()
    return set(
        _LEARNING_LOST.read_rows(
            commits=[change.first_bad_id for change in better],
            configurations=list({change.series.configuration_id for change in better}),
        )
    )


def _build_learning_lost() -> QuerySet[Any]:
    lost = Regression.objects.filter(
        first_bad__in_array=Parameter("commits"),
        series__metric__kind=Metric.Kind.QUALITY,
        series__configuration__in_array=Parameter("configurations"),
        state=Regression.State.CONFIRMED,
        withdrawn_at=None,
    )
    return lost.values_list("first_bad", flat=True)


_LEARNING_LOST: CompiledQuery[Any] = CompiledQuery(_build_learning_lost)
