"""What is to be measured next to prove a regression: first the whole step, then the commits inside its range.

A suspicion on a noisy metric is confirmed by interleaved runs of its last good and first bad commit. If
that refutes it, noise may have placed the step beside where it is: once more, with one measured commit more
on both sides. If that doesn't show it either, the commit that seemed bad is measured anew, alone. What is
confirmed is bisected until one commit is left. Exact counters need no confirmation: for them the middle is
simply measured, and the counter tells. At the end the commits on both sides are measured in full, so that
the regression is explained by its own commit's profile.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from dashboard import alerts, dispatch
from dashboard.models import Commit, Confirmation, Point, Project, Regression, Run, Series
from dashboard.regressions import (
    bisection,
    branches,
    confirmations,
    explaining,
    merges,
    promise,
    proofs,
    seconds,
    settling,
    speaking,
)
from dashboard.regressions.asking import all_runs, known, measure, measure_again, request, runs_of
from dashboard.regressions.proofs import Proof
from dashboard.regressions.ranges import Range, commits_between
from dashboard.regressions.relevance import is_exact_counter

State = Regression.State
Purpose = Confirmation.Purpose
Verdict = Confirmation.Verdict

NOT_PROVED = (State.REFUTED, State.UNDECIDED)


def prove(regression_id: int) -> None:
    """Act on the verdicts of a regression's confirmations. Safe to repeat; one at a time in a project."""
    with transaction.atomic():
        row = Regression.objects.filter(pk=regression_id).values_list("project", flat=True).first()
        if row is None:
            return
        project = Project.objects.select_for_update(no_key=True).get(pk=row)
        regression = loaded(regression_id)
        done = regression.confirmations.filter(state=Confirmation.State.DONE, applied_at=None)
        refuted = done.filter(purpose=Purpose.CONFIRM, verdict=Verdict.REFUTED).exists()
        if done.update(applied_at=timezone.now()):
            if refuted and is_told_suspicion(regression):
                promise.refuted(project)
            settling.settle_all(project, [regression])
            regression = loaded(regression_id)
        advance(project, regression)


def is_told_suspicion(regression: Regression) -> bool:
    """Was somebody told of it before anything had proved it?"""
    unproved = regression.state == State.SUSPECTED and not has_exact(regression)
    return unproved and regression.deliveries.exists()


def sweep() -> None:
    """What a lost message or worker left behind: confirmations without a holder, verdicts nobody acted on."""
    confirmations.requeue_lost()
    waiting = Confirmation.objects.filter(state=Confirmation.State.REQUESTED)
    for pool in waiting.order_by("pool").values_list("pool__name", flat=True).distinct():
        dispatch.wake_workers(pool)
    done = Confirmation.objects.filter(state=Confirmation.State.DONE, applied_at=None)
    for regression in done.order_by("regression").values_list("regression", flat=True).distinct():
        dispatch.send_task(dispatch.PROVE, regression)


def loaded(regression_id: int) -> Regression:
    names = ("project", "first_bad", "last_good", "series__metric", "series__case", "series__pool")
    return Regression.objects.select_related(*names).get(pk=regression_id)


def begin(project: Project, opened: Sequence[Regression], resized: Sequence[Regression] = ()) -> None:
    """See to it that these regressions are proved, and go on with those that are being proved.

    `opened` are also those that a louder series has joined. The project is locked.
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
    elif is_continued(project, regression):
        return
    else:
        regression.proving = False
        regression.save(update_fields=["proving", "updated_at"])
        explaining.explain_proved(project, regression)
        alerts.announce_regression(regression)


def is_continued(project: Project, regression: Regression) -> bool:
    """Is something measured after the whole step was confirmed, refuted or left undecided?"""
    if regression.state == State.CONFIRMED:
        return narrow(project, regression) or others_measured(regression)
    return regression.state in NOT_PROVED and measured_again(regression, regression.series)


def others_measured(regression: Regression) -> bool:
    """Is another series of a proved cause measured: a louder one by pairs, or the commit of a refuted one?"""
    found = speaking.of(regression)
    if found is None:
        return False
    if found.louder:
        ends = regression.last_good, regression.first_bad
        request(regression, Purpose.CONFIRM, *ends, change=found.louder)
        return True
    return any(measured_again(regression, one.series) for one in found.refuted)


def widened(regression: Regression) -> tuple[Commit, Commit] | None:
    """The range with one more measured commit on both sides; None where that was refuted too."""
    refuted = proofs.of_measurement(proofs.done(regression), regression.series)
    good, bad = regression.last_good, regression.first_bad
    span = Range(good.position, bad.position)
    around = [one for one in refuted if proofs.inside(span, proofs.seen_by(one))]
    if any((one.good, one.bad) != (good, bad) for one in around):
        return None
    line = branches.of(regression.project, regression.first_bad.branch)
    points = Point.objects.filter(line.holds("run__commit"), series=regression.series)
    measured = regression.project.commits.filter(pk__in=points.values("run__commit"))
    before = measured.filter(position__lt=good.position).order_by("-position").first()
    after = measured.filter(position__gt=bad.position).order_by("position").first()
    wide = before or good, after or bad
    return None if any((one.good, one.bad) == wide for one in refuted) else wide


def measured_again(regression: Regression, series: Series) -> bool:
    """Measure the first bad commit once more where pairs don't show its step; True while that is under way.

    Its run was disturbed then, and nobody saw it. Left alone it hides the place of a step that comes soon
    after it. Where many runs in a row were disturbed, the step moves on to the next: it isn't followed.
    """
    bad = regression.first_bad
    measured = proofs.of_measurement(proofs.done(regression), series)
    innocent = any(one.verdict == Verdict.REFUTED and one.bad == bad for one in measured)
    followed = all_runs(series, [regression.last_good]).count() > 1
    return innocent and not followed and measure_again(series, bad)


def narrow(project: Project, regression: Regression) -> bool:
    """Bisect a confirmed range one step further; False where nothing is left to measure."""
    found = speaking.of(regression)
    proof = found.proof if found else None
    if proof is None or has_exact(regression):
        return narrow_by_counter(project, regression, proof)
    good, bad = proof.confirmation.good, proof.confirmation.bad
    line = commits_between(project, good, bad)
    steps = proofs.steps(proofs.done(regression), proof.confirmation)
    verdicts = {row.bad.hash: row.verdict for row in steps}
    left = bisection.narrow(good.hash, line, bad.hash, verdicts)
    if left.middle is not None:
        request(regression, Purpose.BISECT, good, known(project, left.middle), proof.confirmation)
        return True
    parts = [row for row in steps if row.bad.hash == left.second and row.series_id == regression.series_id]
    if parts:
        seconds.open_behind(regression, parts[-1], bad)
    elif not left.second:
        seconds.look_beside(project, regression, proof.confirmation)
    skipped = {sha: verdict for sha, verdict in verdicts.items() if verdict in bisection.CANNOT_TELL}
    return merges.follow(project, regression, skipped) or explain(regression)


def narrow_by_counter(project: Project, regression: Regression, proof: Proof | None) -> bool:
    """Measure the middle of the range in full: an exact counter tells at once on which side it lies.

    The counter's commit need not be all that slowed the range down: what a noisy metric lost is weighed.
    """
    line = commits_between(project, regression.last_good, regression.first_bad)
    tried = runs_of(regression.series, project.commits.filter(hash__in=line))
    if any(run.state not in Run.TERMINAL for run in tried.values()):
        return True
    # Those that a counter was read at are the range's ends by now.
    verdicts = dict.fromkeys((run.commit.hash for run in tried.values()), Verdict.UNTESTABLE)
    left = bisection.narrow(regression.last_good.hash, line, regression.first_bad.hash, verdicts)
    if left.middle is not None and measure(regression, [known(project, left.middle)]):
        return True
    if proof is not None and seconds.weigh_culprit(project, regression, proof):
        return True
    counters = [one for one in speaking.members(regression) if is_exact_counter(one.series)]
    following = bool(counters) and merges.follow(project, regression, verdicts, counters[0])
    return following or explain(regression)


def explain(regression: Regression) -> bool:
    """Have the commits on both sides measured in full; False once they are, as far as they can be."""
    sides = [regression.last_good, regression.first_bad]
    return measure(regression, sides)


def has_exact(regression: Regression) -> bool:
    """Does an exact counter speak in it, which tells the place of the cause without a second measurement?"""
    return any(is_exact_counter(one.series) for one in speaking.members(regression))
