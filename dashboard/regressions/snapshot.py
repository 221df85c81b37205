"""Reads everything that a stored run or a verdict touched, once: changes, verdicts, regressions, limits.

What is touched are the changes and regressions whose commit ranges reach those that are new, moved or asked
about, however many others live beside them; the number of queries doesn't depend on either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Greatest, Least

from dashboard.models import (
    Change,
    Check,
    CheckedCase,
    Experiment,
    Limit,
    Project,
    Regression,
    RegressionExperiment,
    Run,
    Series,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.regressions.decision import facts
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.limit_violations import LimitCrossings, LimitsMeasured, limit_crossings
from dashboard.regressions.row_facts import change_fact, regression_fact, verdict_fact
from dashboard.regressions.series.branch_line import BranchLine

SERIES = ("series__metric", "series__configuration")
RELATED = (*SERIES, "last_good", "first_bad")
# Of a regression: shown, and in no decision.
EXPLANATION_DETAILS = ("operations", "device", "excerpts", "slow_processes")
# Of a row with a series: whether a host of this site has measured that one's configuration.
MEASURED_HERE = Exists(
    Run.objects.filter(
        configuration=OuterRef("series__configuration"), state=Run.State.DONE, origin=Run.Origin.MEASURED
    )
)
# What lies so many commits away from all that is touched shares no cause with it.
FAR_AWAY = 500

# A change or a regression: which, its key, its range, the regression that it belongs to.
Node = tuple[str, int, Range, int | None]


@dataclass(slots=True)
class AffectedChanges:
    """What a decision is about. `changes` are new, moved or of a new size, or belong to no regression yet.

    `regressions` lost a change, or something that they waited for has ended; `limits` are looked at along
    `line`; `reconsidered` have their cause class decided again; `maybe_recovered` have primary series that
    have improved, however long after them. `live`: what opens is news. `whole_branch`: all of the branch,
    explained again.
    """

    changes: set[int] = field(default_factory=set)
    regressions: set[int] = field(default_factory=set)
    reconsidered: set[int] = field(default_factory=set)
    maybe_recovered: set[int] = field(default_factory=set)
    limits: LimitsMeasured = field(default_factory=LimitsMeasured)
    line: BranchLine | None = None
    live: bool = True
    whole_branch: bool = False


def take_snapshot(project: Project, branch: str, touched: AffectedChanges) -> facts.Snapshot:
    """All that a decision on what was touched has to know of a branch, as frozen facts."""
    changes, keys = reached_keys(project, branch, touched)
    rows = changed_rows(branch, changes, keys)
    line = touched.line or BranchLine(branch)
    limits = limit_crossings(touched.limits, line) if touched.limits.series else LimitCrossings()
    regressions = regression_rows(project, rows, keys, limits)
    active, verdicts = read_experiments([row.pk for row in regressions])
    return facts.Snapshot(
        branch=branch,
        changes=tuple(change_fact(row) for row in rows),
        regressions=tuple(regression_fact(row, active.get(row.pk, ())) for row in regressions),
        verdicts=tuple(verdicts),
        limit_episodes=limits.episodes,
        limits_kept=limits.kept,
        focus=frozenset(touched.regressions),
        altered=frozenset(touched.changes),
        live=touched.live,
        whole_branch=touched.whole_branch,
        reconsidered=frozenset(touched.reconsidered),
        checked=checked_configurations(project),
    )


def _build_checked_configurations() -> QuerySet[Any, Any]:
    rows = CheckedCase.objects.filter(
        of__project=Parameter("project"), of__state=Check.State.DONE, is_control=False
    )
    return rows.order_by().values_list("configuration", flat=True).distinct()


_CHECKED_CONFIGURATIONS: CompiledQuery[Any] = CompiledQuery(_build_checked_configurations)


def checked_configurations(project: Project) -> frozenset[int]:
    """Those that checks of pull requests have measured: what was proved of a branch holds at its merge."""
    return frozenset(_CHECKED_CONFIGURATIONS.read_rows(project=project.pk))


def reached_keys(project: Project, branch: str, touched: AffectedChanges) -> tuple[set[int], set[int]]:
    """The keys of the changes and regressions that those touched may share a cause with.

    Ranges that overlap, noise's reach included, are taken together, and again what those overlap.
    """
    asked = touched.regressions | touched.reconsidered | touched.maybe_recovered
    given: dict[str, Any] = {"project": project.pk, "branch": branch, "asked": list(asked)}
    focus = list(touched.regressions)
    if not touched.whole_branch:
        given["least"], given["most"] = reached_positions(given, touched)
    spans = _CHANGE_SPANS.read_rows(touched.whole_branch, **given)
    places = _REGRESSION_PLACES.read_rows(touched.whole_branch, **given, focus=focus)
    if touched.whole_branch:
        return {span[0] for span in spans}, {place[0] for place in places}
    nodes: list[Node] = [("change", pk, Range(good, bad), owner) for pk, good, bad, owner in spans]
    nodes += [("regression", pk, with_neighbours(pk, Range(*ends), touched), pk) for pk, *ends in places]
    seeds = [
        index
        for index, (kind, pk, _, owner) in enumerate(nodes)
        if (kind == "change" and pk in touched.changes) or owner in asked
    ]
    taken = connected_nodes(nodes, seeds)
    return (
        {nodes[index][1] for index in taken if nodes[index][0] == "change"},
        {nodes[index][1] for index in taken if nodes[index][0] == "regression"} | asked,
    )


def with_neighbours(regression: int, place: Range, touched: AffectedChanges) -> Range:
    """A regression's place; where something of it was asked, with what lies right beside it.

    It may be the rest of a step that pairs have placed there.
    """
    return Range(place.good - 1, place.bad + 1) if regression in touched.regressions else place


def _changes_of_branch() -> QuerySet[Change]:
    rows = Change.objects.filter(
        series__configuration__case__project=Parameter("project"), first_bad__branch=Parameter("branch")
    )
    return rows.exclude(direction=Change.Direction.MOVED)


def _regressions_of_branch() -> QuerySet[Regression]:
    return Regression.objects.filter(project=Parameter("project"), first_bad__branch=Parameter("branch"))


def _build_change_spans(whole_branch: bool) -> QuerySet[Any, Any]:
    rows = _changes_of_branch()
    if not whole_branch:
        rows = rows.filter(reach_bad__gt=Parameter("least"), reach_good__lt=Parameter("most"))
    return rows.values_list("pk", "reach_good", "reach_bad", "regression_id")


def _build_regression_places(whole_branch: bool) -> QuerySet[Any, Any]:
    asked = Q(pk__in_array=Parameter("asked"))
    rows = _regressions_of_branch().filter(
        Q(withdrawn_at=None) | Q(triaged__in=Regression.TRIAGED_AWAY) | asked
    )
    if not whole_branch:
        rows = rows.filter(
            first_bad__position__gt=Parameter("least"), last_good__position__lt=Parameter("most")
        )
    return rows.values_list(
        "pk", _end_with_proofs(Min, "base", "last_good"), _end_with_proofs(Max, "head", "first_bad")
    )


def _end_with_proofs(end: type[Min | Max], side: str, column: str) -> Case:
    """An end of a regression's range; of one of which something was asked, of all in which pairs proved it.

    Bisection may lead the rest of a step away from the step that it is the rest of.
    """
    proofs = RegressionExperiment.objects.filter(
        regression=OuterRef("pk"), experiment__purpose=Experiment.Purpose.PROOF
    )
    ends = proofs.order_by().values("regression").annotate(end=end(f"experiment__{side}_commit__position"))
    farther, own = Least if end is Min else Greatest, F(f"{column}__position")
    both = farther(own, Subquery(ends.values("end")))
    return Case(When(pk__in_array=Parameter("focus"), then=both), default=own)


_CHANGE_SPANS: CompiledQuery[Any] = CompiledQuery(_build_change_spans)
_REGRESSION_PLACES: CompiledQuery[Any] = CompiledQuery(_build_regression_places)


def _ends_of_columns(rows: QuerySet[Any, Any], first: str, last: str) -> QuerySet[Any, Any]:
    """The least and the greatest of two columns, in one row."""
    together = rows.order_by().annotate(all=Value(1)).values("all")
    ends: QuerySet[Any, Any] = together.values_list(Min(first), Max(last))
    return ends


def _build_ends_of_changes() -> QuerySet[Any, Any]:
    requested = Q(pk__in_array=Parameter("changes")) | Q(regression__in_array=Parameter("asked"))
    return _ends_of_columns(_changes_of_branch().filter(requested), "reach_good", "reach_bad")


def _build_ends_of_regressions() -> QuerySet[Any, Any]:
    rows = _regressions_of_branch().filter(pk__in_array=Parameter("asked"))
    return _ends_of_columns(rows, "last_good__position", "first_bad__position")


_ENDS_OF_CHANGES: CompiledQuery[Any] = CompiledQuery(_build_ends_of_changes)
_ENDS_OF_REGRESSIONS: CompiledQuery[Any] = CompiledQuery(_build_ends_of_regressions)


def reached_positions(given: dict[str, Any], touched: AffectedChanges) -> tuple[int, int]:
    """Positions between which all lies that may be connected with what is touched."""
    ends: list[tuple[int | None, int]] = []
    if touched.changes or given["asked"]:
        ends += _ENDS_OF_CHANGES.read_rows(**given, changes=list(touched.changes))
    if given["asked"]:
        ends += _ENDS_OF_REGRESSIONS.read_rows(**given)
    known = [(least, most) for least, most in ends if least is not None]
    return (
        min((least for least, _ in known), default=0) - FAR_AWAY,
        max((most for _, most in known), default=0) + FAR_AWAY,
    )


def connected_nodes(nodes: list[Node], seeds: list[int]) -> set[int]:
    """The indices of all nodes that overlap one of the seeds, or one that is taken, or share its owner."""
    by_start = sorted(range(len(nodes)), key=lambda index: nodes[index][2].good)
    # In the order of their beginnings overlapping ranges are neighbours: one pass finds the components.
    component_of: dict[int, int] = {}
    component, end = -1, -1
    for index in by_start:
        span = nodes[index][2]
        if span.good >= end:
            component += 1
        component_of[index] = component
        end = max(end, span.bad)
    components_of_owner: dict[int, set[int]] = {}
    for index, (_, _, _, owner) in enumerate(nodes):
        if owner is not None:
            components_of_owner.setdefault(owner, set()).add(component_of[index])
    joined: dict[int, set[int]] = {}
    for components in components_of_owner.values():
        for number in components:
            joined.setdefault(number, set()).update(components)
    waiting, taken = [component_of[index] for index in seeds], set[int]()
    while waiting:
        number = waiting.pop()
        if number not in taken:
            taken.add(number)
            waiting.extend(joined.get(number, ()))
    return {index for index, number in component_of.items() if number in taken}


def _build_changed_rows() -> QuerySet[Change]:
    of_regressions = Series.objects.filter(regressions__in_array=Parameter("regressions"))
    changed = Series.objects.filter(changes__in_array=Parameter("changes"))
    better = (Q(series__in=of_regressions) | Q(series__in=changed)) & Q(
        direction=Change.Direction.IMPROVEMENT, first_bad__branch=Parameter("branch")
    )
    rows = Change.objects.filter(Q(pk__in_array=Parameter("changes")) | better)
    return rows.select_related(*RELATED).annotate(measured_here=MEASURED_HERE).order_by("pk")


_CHANGED_ROWS = CompiledQuery(_build_changed_rows)


def changed_rows(branch: str, changes: Collection[int], regressions: Collection[int]) -> list[Change]:
    """The changes of these keys, and the improvements of their series and of those that tell regressions."""
    if not changes and not regressions:
        return []
    return _CHANGED_ROWS.read_rows(branch=branch, changes=list(changes), regressions=list(regressions))


def _build_regression_rows() -> QuerySet[Regression]:
    at_ends = Regression.objects.filter(pk__in_array=Parameter("keys")).values("first_bad")
    wanted = Q(pk__in_array=Parameter("owners")) | Q(first_bad__in_array=Parameter("commits"))
    wanted |= Q(first_bad__in=at_ends)
    on_other_branches = Change.objects.filter(regression=OuterRef("pk")).exclude(
        first_bad__branch=OuterRef("first_bad__branch")
    )
    return (
        Regression.objects.filter(wanted, project=Parameter("project"))
        .select_related(*RELATED, "culprit")
        .defer(*EXPLANATION_DETAILS)
        .annotate(
            crossed=Exists(Limit.objects.filter(regression=OuterRef("pk"))),
            merged=Exists(on_other_branches),
            measured_here=MEASURED_HERE,
        )
        .order_by("pk")
    )


_REGRESSION_ROWS = CompiledQuery(_build_regression_rows)


def regression_rows(
    project: Project, changes: Iterable[Change], keys: Collection[int], limits: LimitCrossings
) -> list[Regression]:
    """Those of these keys, those that hold the changes, those at commits of either, and those of limits."""
    rows = list(changes)
    commits = {row.first_bad_id for row in rows if row.direction == Change.Direction.REGRESSION}
    commits |= limits.commits
    owners = {row.regression_id for row in rows if row.regression_id} | set(keys) | limits.regressions
    if not owners and not commits:
        return []
    return _REGRESSION_ROWS.read_rows(
        project=project.pk, keys=list(keys), owners=list(owners), commits=list(commits)
    )


def _build_experiment_links() -> QuerySet[RegressionExperiment]:
    names = ("base_commit", "head_commit", "metric")
    links = RegressionExperiment.objects.filter(regression__in_array=Parameter("keys"))
    links = links.exclude(experiment__state=Experiment.State.CANCELLED)
    related = links.select_related(*(f"experiment__{name}" for name in names), *SERIES)
    told = related.defer("experiment__profiles", "experiment__commands").annotate(
        machine=F("experiment__machine__name"), measured_head=F("experiment__pairs_of__head_commit__hash")
    )
    return told.order_by("experiment__finished_at", "experiment")


_EXPERIMENT_LINKS = CompiledQuery(_build_experiment_links)


def read_experiments(
    keys: Collection[int],
) -> tuple[dict[int, tuple[int, ...]], list[facts.ExperimentVerdict]]:
    """By regression the experiments that are under way, and the verdicts of all that have ended."""
    active: dict[int, tuple[int, ...]] = {}
    verdicts: list[facts.ExperimentVerdict] = []
    if not keys:
        return active, verdicts
    for link in _EXPERIMENT_LINKS.read_rows(keys=list(keys)):
        experiment = link.experiment
        if experiment.state in Experiment.ACTIVE:
            active[link.regression_id] = (*active.get(link.regression_id, ()), experiment.pk)
        else:
            verdicts.append(verdict_fact(link, len(verdicts)))
    return active, verdicts
