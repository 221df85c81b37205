"""One cause, one regression: changes for the worse of the same commit range, across series, in one row.

Everything here runs under the project's lock: two workers that find the same step make one regression.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from dashboard.models import Change, Confirmation, Project, Regression
from dashboard.regressions import elsewhere, proofs, triage
from dashboard.regressions.history import History
from dashboard.regressions.ranges import Range, span
from dashboard.regressions.relevance import TIME, is_exact_counter, is_time, siblings, speaks

Members = dict[int, list[Change]]

RELATED = ("series__metric", "series__case", "first_bad", "last_good")


@dataclass(slots=True)
class Grouped:
    """`touched` regressions have lost or won changes, or may have: they are settled next."""

    touched: set[int] = field(default_factory=set)


def group(
    project: Project, branch: str, changes: Sequence[Change], histories: dict[int, History], *, opening: bool
) -> Grouped:
    """Give every change for the worse its regression, earlier commits first.

    Only when `opening` does one that belongs to none open its own: before, those that are there must have
    moved to where their changes are now.
    """
    done = Grouped()
    speaking = [change for change in changes if speaks(change)]
    for change in sorted(speaking, key=lambda change: (change.position, change.series_id)):
        current = change.regression_id
        home = place(project, branch, change, histories[change.series_id])
        if home is None and opening and not price_of_improvement(change):
            home = elsewhere.known(project, change) or open_for(project, change, histories[change.series_id])
        if home != current:
            Change.objects.filter(pk=change.pk).update(regression_id=home)
            change.regression_id = home
        done.touched |= {one for one in (current, home) if one}
    return done


def place(project: Project, branch: str, change: Change, history: History) -> int | None:
    """The regression that a speaking change belongs to; None where there is none yet."""
    near = neighbours(project, branch, change, history)
    own = change.regression_id
    fitting = fits(change, near, history)
    if own in fitting:
        return own
    if fitting:
        return fitting[0]
    if own and own not in near:
        return own  # It was alone in it: the regression moves with it.
    return unspoken(project, branch, change)


def unspoken(project: Project, branch: str, change: Change) -> int | None:
    """The regression of a change's commits that pairs alone speak for: they saw its cause before detection.

    Where the two lie beside each other the pairs speak of another place, and prove nothing of this one.
    """
    here = Range.of(change)
    around = Regression.objects.filter(
        project=project,
        limit="",
        withdrawn_at=None,
        first_bad__branch=branch,
        first_bad__position__gt=here.good,
        last_good__position__lt=here.bad,
    ).select_related("first_bad")
    spoken = members_of(around.values_list("pk", flat=True))
    found = [(abs(here.bad - one.first_bad.position), one.pk) for one in around if one.pk not in spoken]
    return min(found)[1] if found else None


def neighbours(project: Project, branch: str, change: Change, history: History) -> Members:
    """The speaking changes of the live regressions around a change, itself left out, by regression."""
    reach = Range.of(change).widened(history)
    around = Change.objects.filter(
        Q(position__gt=reach.good, last_good__position__lt=reach.bad) | Q(regression=change.regression_id),
        series__case__project=project,
        first_bad__branch=branch,
        regression__withdrawn_at=None,
        regression__isnull=False,
    )
    members = members_of(around.values_list("regression_id", flat=True))
    return {
        key: others
        for key, all_ in members.items()
        if (others := [one for one in all_ if one.pk != change.pk and one.first_bad.branch == branch])
    }


def members_of(regressions: Iterable[int | None]) -> Members:
    """The speaking changes of regressions, by regression."""
    members: Members = defaultdict(list)
    rows = Change.objects.filter(regression__in=list(regressions)).select_related(*RELATED)
    for row in rows.order_by("pk"):
        if row.regression_id and speaks(row):
            members[row.regression_id].append(row)
    return dict(members)


def fits(change: Change, near: Members, history: History) -> list[int]:
    """The regressions whose cause may be this change's, best first.

    One cause moves a series once: a regression that has a change of the same series is another one.
    """
    exact, wide = [], []
    for key, others in near.items():
        if any(other.series_id == change.series_id for other in others):
            continue
        there = span(others)
        here = Range.of(change)
        if here.overlap(there):
            exact.append((abs(here.bad - there.bad), key))
        elif sees_the_same(change, others) and here.widened(history).overlap(there):
            wide.append((abs(here.bad - there.bad), key))
    return [key for _, key in sorted(exact) + sorted(wide) if not is_elsewhere(change, key)]


def is_elsewhere(change: Change, regression: int) -> bool:
    """Have pairs refuted it at the commits of a regression that others have proved, and is it seen beside?"""
    proved = Regression.objects.filter(pk=regression, state=Regression.State.CONFIRMED).first()
    rows = proofs.of_measurement(proofs.done(proved), change.series) if proved else []
    refuted = any(row.verdict == Confirmation.Verdict.REFUTED for row in rows)
    return refuted and proofs.of(rows, change.series, Range.of(change)) is None


def sees_the_same(change: Change, others: Sequence[Change]) -> bool:
    """Is one of the others what this one saw another way: the throughput of this step time, or its calls?"""
    return any(siblings(change.series, other.series) and alike(change, other) for other in others)


def alike(one: Change, other: Change) -> bool:
    """Are both times, or a time and an exact counter? Noise may put a time beside what a counter knows."""
    counters = (is_exact_counter(one.series), is_exact_counter(other.series))
    times = (is_time(one.series), is_time(other.series))
    return all(times) or (any(times) and any(counters))


def price_of_improvement(change: Change) -> bool:
    """More calls that bought a faster step at the same commits are no regression."""
    if not is_exact_counter(change.series):
        return False
    series, reach = change.series, Range.of(change)
    return Change.objects.filter(
        direction=Change.Direction.IMPROVEMENT,
        series__metric__name__in=TIME,
        series__case=series.case_id,
        series__version=series.version,
        series__pool=series.pool_id,
        series__quick=series.quick,
        position__gt=reach.good,
        last_good__position__lt=reach.bad,
    ).exists()


def open_for(project: Project, change: Change, history: History) -> int:
    """A new regression, or the one that was withdrawn at this very commit, or that people have decided on."""
    here = Regression.objects.filter(project=project, first_bad=change.first_bad)
    regression = None if here.exists() else triage.known(project, change, history)
    if regression is None:
        regression, _ = Regression.objects.get_or_create(
            project=project,
            first_bad=change.first_bad,
            defaults={
                "last_good": change.last_good,
                "series": change.series,
                "before": change.before,
                "after": change.after,
            },
        )
    if regression.withdrawn_at:
        Regression.objects.filter(pk=regression.pk).update(withdrawn_at=None)
    return regression.pk


def attract(project: Project, regression: Regression, reach: Range) -> None:
    """Give a regression the evidence that lies in its range: changes for the worse that don't speak alone."""
    free = Change.objects.filter(
        direction=Change.Direction.REGRESSION,
        regression=None,
        series__case__project=project,
        first_bad__branch=regression.first_bad.branch,
        position__gt=reach.good,
        last_good__position__lt=reach.bad,
    ).select_related(*RELATED)
    evidence = [one.pk for one in free if not speaks(one)]
    Change.objects.filter(pk__in=evidence).update(regression=regression)
