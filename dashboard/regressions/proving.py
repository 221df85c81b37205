"""What is to be measured next to prove a regression: first the whole step, then the commits inside its range.

A suspicion on a noisy metric is confirmed by interleaved runs of its last good and first bad commit. If that
refutes it, noise may have placed the step beside where it is: once more, with one measured commit more on
both sides. What is confirmed is bisected until one commit is left. Exact counters need no confirmation: for
them the middle is simply measured, and the counter tells. At the end the commits on both sides are measured
in full, so that the regression is explained by its own commit's profile.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import transaction
from django.db.models import Min
from django.utils import timezone

from dashboard import alerts, dispatch, repositories, runs
from dashboard.models import Change, Commit, Confirmation, Project, Regression, Run, Series
from dashboard.regressions import bisection, confirmations, promise, proofs, settling
from dashboard.regressions.ranges import Range
from dashboard.regressions.relevance import is_exact_counter
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

State = Regression.State
Purpose = Confirmation.Purpose
Verdict = Confirmation.Verdict

# Of a proof's own runs: before history, behind what somebody waits for.
PRIORITY = 5
MOST_BETWEEN = 500


def prove(regression_id: int) -> None:
    """Act on the verdicts of a regression's confirmations. Safe to repeat; one at a time in a project."""
    with transaction.atomic():
        row = Regression.objects.filter(pk=regression_id).values_list("project", flat=True).first()
        if row is None:
            return
        project = Project.objects.select_for_update(no_key=True).get(pk=row)
        regression = loaded(regression_id)
        done = regression.confirmations.filter(state=Confirmation.State.DONE, applied_at=None)
        if done.update(applied_at=timezone.now()):
            settling.settle_all(project, [regression])
            regression = loaded(regression_id)
            if regression.state == State.REFUTED and regression.deliveries.exists():
                promise.refuted(project)
        advance(project, regression)


def sweep() -> None:
    """What a lost message or worker left behind: confirmations without a holder, verdicts nobody acted on."""
    confirmations.requeue_lost()
    waiting = Confirmation.objects.filter(state=Confirmation.State.REQUESTED)
    for pool in waiting.order_by("pool").values_list("pool__name", flat=True).distinct():
        dispatch.ring(pool)
    done = Confirmation.objects.filter(state=Confirmation.State.DONE, applied_at=None)
    for regression in done.order_by("regression").values_list("regression", flat=True).distinct():
        dispatch.send(dispatch.PROVE, regression)


def loaded(regression_id: int) -> Regression:
    names = ("project", "first_bad", "last_good", "series__metric", "series__case", "series__pool")
    return Regression.objects.select_related(*names).get(pk=regression_id)


def begin(project: Project, opened: Sequence[Regression], resized: Sequence[Regression] = ()) -> None:
    """See to it that these regressions are proved, and go on with those that are being proved.

    The project is locked.
    """
    Regression.objects.filter(pk__in=[one.pk for one in opened]).update(proving=True)
    # What a counter alone had confirmed is suspected again once a time speaks for it, and proved then.
    changed = Regression.objects.filter(pk__in=[one.pk for one in resized], state=State.SUSPECTED)
    changed.update(proving=True)
    going = project.regressions.filter(proving=True).exclude(triaged__in=Regression.AWAY)
    for key in going.order_by("pk").values_list("pk", flat=True):
        advance(project, loaded(key))


def advance(project: Project, regression: Regression) -> None:
    """Request what is to be measured next, or tell that nothing is. The project is locked."""
    active = regression.confirmations.filter(state__in=Confirmation.ACTIVE)
    if regression.withdrawn_at or regression.is_away or not regression.proving:
        confirmations.cancel(active, "The regression was withdrawn.")
        return
    if active.exists():
        return
    if regression.state == State.SUSPECTED:
        request(regression, Purpose.CONFIRM, regression.last_good, regression.first_bad)
    elif regression.state == State.REFUTED and (wide := widened(regression)):
        request(regression, Purpose.CONFIRM, *wide)
    elif regression.state == State.CONFIRMED and narrow(project, regression):
        return
    else:
        regression.proving = False
        regression.save(update_fields=["proving", "updated_at"])
        alerts.announce(regression)


def request(regression: Regression, purpose: str, good: Commit, bad: Commit) -> None:
    series = regression.series
    Confirmation.objects.create(
        regression=regression,
        purpose=purpose,
        good=good,
        bad=bad,
        series=series,
        pool=series.pool,
        before=regression.before,
        after=regression.after,
        error=promise.error(regression.project),
    )
    dispatch.ring(series.pool.name)


def widened(regression: Regression) -> tuple[Commit, Commit] | None:
    """The range with one more measured commit on both sides; None where that was refuted too."""
    refuted = regression.confirmations.filter(purpose=Purpose.CONFIRM, state=Confirmation.State.DONE)
    measured = Commit.objects.filter(
        project=regression.project, branch=regression.first_bad.branch, runs__points__series=regression.series
    )
    before = measured.filter(position__lt=regression.last_good.position).order_by("-position").first()
    after = measured.filter(position__gt=regression.first_bad.position).order_by("position").first()
    good, bad = before or regression.last_good, after or regression.first_bad
    tried = refuted.filter(good__position__lte=good.position, bad__position__gte=bad.position)
    return None if tried.exists() else (good, bad)


def narrow(project: Project, regression: Regression) -> bool:
    """Bisect a confirmed range one step further; False where nothing is left to measure."""
    proof = proofs.of(regression, Range(regression.last_good.position, regression.first_bad.position))
    if proof is None or has_exact(regression):
        return narrow_by_counter(project, regression)
    line = commits_between(project, proof.confirmation.good, proof.confirmation.bad)
    steps = regression.confirmations.filter(
        purpose=Purpose.BISECT, good=proof.confirmation.good, state=Confirmation.State.DONE
    )
    verdicts = dict(steps.values_list("bad__hash", "verdict"))
    ends = proof.confirmation.good.hash, proof.confirmation.bad.hash
    left = bisection.narrow(ends[0], [one.hash for one in line], ends[1], verdicts)
    if left.middle is not None:
        middle = next(one for one in line if one.hash == left.middle)
        request(regression, Purpose.BISECT, proof.confirmation.good, middle)
        return True
    if left.second:
        open_second(regression, next(one for one in line if one.hash == left.second), proof.confirmation.bad)
    return explain(regression)


def narrow_by_counter(project: Project, regression: Regression) -> bool:
    """Measure the middle of the range in full: an exact counter tells at once on which side it lies."""
    line = commits_between(project, regression.last_good, regression.first_bad)
    series = regression.series
    tried = runs_of(series, line)
    if any(run.state not in Run.TERMINAL for run in tried.values()):
        return True
    verdicts = dict.fromkeys((one.hash for one in line if one.pk in tried), Verdict.UNTESTABLE)
    ends = regression.last_good.hash, regression.first_bad.hash
    left = bisection.narrow(ends[0], [one.hash for one in line], ends[1], verdicts)
    if left.middle is None:
        return explain(regression)
    return measure(regression, [one for one in line if one.hash == left.middle])


def commits_between(project: Project, good: Commit, bad: Commit) -> list[Commit]:
    """The first-parent commits strictly between two, oldest first.

    Rows are made for those never asked for.
    """
    if bad.position - good.position <= 1:
        return []
    mirror = repositories.mirror_of(project)
    try:
        hashes = repositories.between(mirror, good.hash, bad.hash)[:-1]
        rows = runs.known(project, repositories.facts(mirror, hashes[:MOST_BETWEEN])) if hashes else {}
    except RepositoryError as error:
        logger.warning("The commits between %s and %s can't be told: %s", good, bad, error)
        return []
    return [rows[one] for one in hashes if one in rows]


def explain(regression: Regression) -> bool:
    """Have the commits on both sides measured in full; False once they are, as far as they can be."""
    sides = [regression.last_good, regression.first_bad]
    return measure(regression, sides)


def measure(regression: Regression, commits: Sequence[Commit]) -> bool:
    """Request what no run has measured yet of the regression's cases.

    False where there is nothing to wait for.
    """
    waiting = False
    for series in by_case(regression):
        tried = runs_of(series, commits)
        waiting |= any(run.state not in Run.TERMINAL for run in tried.values())
        pattern = Run.objects.filter(state=Run.State.DONE, points__series=series).order_by("-pk").first()
        missing = [one for one in commits if one.pk not in tried]
        if pattern is None or not missing:
            continue
        for commit in missing:
            runs.repeat(pattern, commit, priority=PRIORITY)
        waiting = True
    return waiting


def by_case(regression: Regression) -> list[Series]:
    """One series of each case, pool and version that the regression's changes are of."""
    changes = Change.objects.filter(regression=regression).values(
        "series__case", "series__pool", "series__version", "series__quick"
    )
    keys = {regression.series_id, *(row["least"] for row in changes.annotate(least=Min("series")))}
    found: dict[tuple[int, int, int, bool], Series] = {}
    for one in Series.objects.filter(pk__in=keys).select_related("pool").order_by("pk"):
        found.setdefault((one.case_id, one.pool_id, one.version, one.quick), one)
    return list(found.values())


def runs_of(series: Series, commits: Sequence[Commit]) -> dict[int, Run]:
    """The newest run of the series' case at each of the commits that has one."""
    rows = Run.objects.filter(
        commit__in=commits,
        case=series.case_id,
        pool=series.pool_id,
        version=series.version,
        quick=series.quick,
    ).exclude(state=Run.State.CANCELLED)
    return {run.commit_id: run for run in rows.order_by("pk")}


def open_second(regression: Regression, good: Commit, bad: Commit) -> None:
    """Part of the step is there before the range's end: what comes after it has a cause of its own."""
    second, new = Regression.objects.get_or_create(
        project=regression.project,
        first_bad=bad,
        defaults={
            "last_good": good,
            "series": regression.series,
            "before": regression.before,
            "after": regression.after,
            "ratio": regression.ratio,
            "proving": True,
        },
    )
    if new:
        request(second, Purpose.CONFIRM, good, bad)


def has_exact(regression: Regression) -> bool:
    """Does an exact counter speak in it, which tells the place of the cause without a second measurement?"""
    return any(is_exact_counter(one.series) for one in settling.speaking_of(regression))
