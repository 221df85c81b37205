"""Reads everything that a stored run or a verdict touched, once: changes, verdicts, regressions, limits.

What is touched are the changes and regressions whose commit ranges reach those that are new, moved or asked
about, however many others live beside them; the number of queries doesn't depend on either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet

from dashboard.models import (
    Change,
    Check,
    CheckedCase,
    Delivery,
    Experiment,
    Limit,
    Project,
    Regression,
    Series,
)
from dashboard.models import RegressionExperiment as Asked
from dashboard.regressions.decision import facts
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.limit_violations import kept_limits, limits_of_run, new_violations
from dashboard.regressions.row_facts import change_fact, regression_fact, verdict_fact
from dashboard.regressions.series.branch_line import Line

SERIES = ("series__metric", "series__configuration")
RELATED = (*SERIES, "last_good", "first_bad")
# What lies so many commits away from all that is touched shares no cause with it.
FAR_AWAY = 500

# A change or a regression: which, its key, its range, the regression that it belongs to.
Node = tuple[str, int, Range, int | None]


@dataclass(slots=True)
class Touched:
    """What a decision is about. `changes` are new, moved or of a new size, or belong to no regression yet.

    `regressions` lost a change, or something that they waited for has ended; `run` is one whose limits are
    looked at; `reconsidered` have their cause class decided again. `live`: what opens is news. `anew`: all of
    the branch, explained again.
    """

    changes: set[int] = field(default_factory=set)
    regressions: set[int] = field(default_factory=set)
    reconsidered: set[int] = field(default_factory=set)
    run: int | None = None
    line: Line | None = None
    live: bool = True
    anew: bool = False


def take_snapshot(project: Project, branch: str, touched: Touched) -> facts.Snapshot:
    changes, keys = reached_keys(project, branch, touched)
    rows = list(changed_rows(branch, changes, keys))
    limits = limits_of_run(touched.run) if touched.run else []
    regressions = regression_rows(project, rows, keys, of_limits(branch, limits))
    active, verdicts = read_experiments([row.pk for row in regressions])
    return facts.Snapshot(
        branch=branch,
        main_branch=project.branch,
        changes=tuple(change_fact(row) for row in rows),
        regressions=tuple(regression_fact(row, active.get(row.pk, ())) for row in regressions),
        verdicts=tuple(verdicts),
        violations=tuple(new_violations(limits, touched.line or Line(branch))),
        kept_limits=tuple(kept_limits(limits)),
        focus=frozenset(touched.regressions),
        altered=frozenset(touched.changes),
        live=touched.live,
        anew=touched.anew,
        reconsidered=frozenset(touched.reconsidered),
        checked=checked_configurations(project),
    )


def checked_configurations(project: Project) -> frozenset[int]:
    """Those that checks of pull requests have measured: what was proved of a branch holds at its merge."""
    rows = CheckedCase.objects.filter(of__project=project, of__state=Check.State.DONE, is_control=False)
    return frozenset(rows.order_by().values_list("configuration", flat=True).distinct())


def reached_keys(project: Project, branch: str, touched: Touched) -> tuple[set[int], set[int]]:
    """The keys of the changes and regressions that those touched may share a cause with.

    Ranges that overlap, noise's reach included, are taken together, and again what those overlap.
    """
    asked = touched.regressions | touched.reconsidered
    changes = Change.objects.filter(series__configuration__case__project=project, first_bad__branch=branch)
    changes = changes.exclude(direction=Change.Direction.MOVED)
    regressions = Regression.objects.filter(project=project, first_bad__branch=branch)
    standing = regressions.filter(Q(withdrawn_at=None) | Q(triaged__in=Regression.AWAY) | Q(pk__in=asked))
    if not touched.anew:
        least, most = reached_positions(changes, regressions, touched)
        changes = changes.filter(reach_bad__gt=least, reach_good__lt=most)
        standing = standing.filter(first_bad__position__gt=least, last_good__position__lt=most)
    spans = list(changes.values_list("pk", "reach_good", "reach_bad", "regression_id"))
    places = list(standing.values_list("pk", "last_good__position", "first_bad__position"))
    if touched.anew:
        return {span[0] for span in spans}, {place[0] for place in places}
    nodes: list[Node] = [("change", pk, Range(good, bad), owner) for pk, good, bad, owner in spans]
    nodes += [("regression", pk, Range(good, bad), pk) for pk, good, bad in places]
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


def reached_positions(
    changes: QuerySet[Change], regressions: QuerySet[Regression], touched: Touched
) -> tuple[int, int]:
    """Positions between which all lies that may be connected with what is touched."""
    asked = touched.regressions | touched.reconsidered
    mine = Q(pk__in=touched.changes) | Q(regression__in=asked)
    ends = changes.filter(mine).aggregate(least=Min("reach_good"), most=Max("reach_bad"))
    places = regressions.filter(pk__in=asked).aggregate(
        least=Min("last_good__position"), most=Max("first_bad__position")
    )
    least = [found["least"] for found in (ends, places) if found["least"] is not None]
    most = [found["most"] for found in (ends, places) if found["most"] is not None]
    return min(least, default=0) - FAR_AWAY, max(most, default=0) + FAR_AWAY


def connected_nodes(nodes: list[Node], seeds: list[int]) -> set[int]:
    """The indices of all nodes that overlap one of the seeds, or one that is taken, or share its owner."""
    by_start = sorted(range(len(nodes)), key=lambda index: nodes[index][2].good)
    # In the order of their beginnings overlapping ranges are neighbours: one pass finds the islands.
    island_of: dict[int, int] = {}
    island, end = -1, -1
    for index in by_start:
        span = nodes[index][2]
        if span.good >= end:
            island += 1
        island_of[index] = island
        end = max(end, span.bad)
    islands_of_owner: dict[int, set[int]] = {}
    for index, (_, _, _, owner) in enumerate(nodes):
        if owner is not None:
            islands_of_owner.setdefault(owner, set()).add(island_of[index])
    joined: dict[int, set[int]] = {}
    for islands in islands_of_owner.values():
        for number in islands:
            joined.setdefault(number, set()).update(islands)
    waiting, taken = [island_of[index] for index in seeds], set[int]()
    while waiting:
        number = waiting.pop()
        if number not in taken:
            taken.add(number)
            waiting.extend(joined.get(number, ()))
    return {index for index, number in island_of.items() if number in taken}


def changed_rows(branch: str, changes: Collection[int], regressions: Collection[int]) -> QuerySet[Change]:
    """The changes of these keys, and the improvements of the series by which these regressions are told."""
    told = Series.objects.filter(regressions__in=regressions)
    better = Q(direction=Change.Direction.IMPROVEMENT, series__in=told, first_bad__branch=branch)
    owned = Q(series__in=Series.objects.filter(changes__in=changes), direction=Change.Direction.IMPROVEMENT)
    here = Q(first_bad__branch=branch)
    found = Change.objects.filter(Q(pk__in=changes) | better | (owned & here))
    return found.select_related(*RELATED).order_by("pk")


def of_limits(branch: str, limits: Iterable[Limit]) -> Q:
    """The regressions that a run's limits are about: of its commit, or of a limit that it keeps again."""
    rows = list(limits)
    crossed = {limit.run.commit_id for limit in rows if limit.crossed}
    kept = {limit.series_id for limit in rows if not limit.crossed}
    # Keys, not a join: that would give a regression once for each of its limits.
    before = Limit.objects.filter(series__in=kept, regression__isnull=False).values("regression")
    open_before = Q(pk__in=before, first_bad__branch=branch, recovered_by=None, withdrawn_at=None)
    return Q(first_bad__in=crossed) | open_before


def regression_rows(
    project: Project, changes: Iterable[Change], keys: Collection[int], beside: Q
) -> list[Regression]:
    """Those of these keys, those that hold the changes, those at commits of either, and those `beside`."""
    rows = list(changes)
    owners = {row.regression_id for row in rows if row.regression_id}
    commits = {row.first_bad_id for row in rows if row.direction == Change.Direction.REGRESSION}
    at_ends = Regression.objects.filter(pk__in=keys).values("first_bad")
    found = Regression.objects.filter(
        Q(pk__in=owners | set(keys)) | Q(first_bad__in=commits) | Q(first_bad__in=at_ends) | beside,
        project=project,
    )
    branch = OuterRef("first_bad__branch")
    abroad = Change.objects.filter(regression=OuterRef("pk")).exclude(first_bad__branch=branch)
    return list(
        found.select_related(*RELATED, "culprit")
        .annotate(
            is_told=Exists(Delivery.objects.filter(regression=OuterRef("pk"))),
            crossed=Exists(Limit.objects.filter(regression=OuterRef("pk"))),
            merged=Exists(abroad),
        )
        .order_by("pk")
    )


def read_experiments(keys: Collection[int]) -> tuple[dict[int, tuple[int, ...]], list[facts.Verdict]]:
    """By regression the experiments that are under way, and the verdicts of all that have ended."""
    names = ("base_commit", "head_commit", "machine", "metric", "pairs_of__head_commit")
    links = Asked.objects.filter(regression__in=keys).exclude(experiment__state=Experiment.State.CANCELLED)
    related = links.select_related(*(f"experiment__{name}" for name in names), *SERIES)
    active: dict[int, tuple[int, ...]] = {}
    verdicts: list[facts.Verdict] = []
    for link in related.order_by("experiment__finished_at", "experiment"):
        experiment = link.experiment
        if experiment.state in Experiment.ACTIVE:
            active[link.regression_id] = (*active.get(link.regression_id, ()), experiment.pk)
        else:
            verdicts.append(verdict_fact(link, len(verdicts)))
    return active, verdicts
