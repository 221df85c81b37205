"""The second cause of a step: what bisection and pairs see of it before any series does.

Two steps close to each other are one for detection, whose points between them are few. Pairs of the commits
around one of them show a part only, and the rest becomes a regression of its own.
"""

from __future__ import annotations

from dashboard.models import Commit, Confirmation, Pair, Point, Project, Regression
from dashboard.regressions import branches, confirmations, history
from dashboard.regressions.asking import request
from dashboard.regressions.confirmations.weighing import Scale
from dashboard.regressions.proofs import Proof
from dashboard.regressions.ranges import commits_between
from dashboard.regressions.relevance import is_exact_counter, one_measurement

Purpose = Confirmation.Purpose
Verdict = Confirmation.Verdict


def weigh_culprit(project: Project, regression: Regression, proof: Proof) -> bool:
    """Has the commit that a counter names the whole step? True while that is measured.

    Another commit may have a part of it where the proof reached further than the counter's range, or where
    nobody has measured the next commits. That part gets a regression of its own.
    """
    good, bad, row = regression.last_good, regression.first_bad, proof.confirmation
    if is_exact_counter(regression.series) or proof.state != Regression.State.CONFIRMED:
        return False
    end = row.bad if row.bad.position > bad.position else next_measured(project, regression)
    if end is None or not (row.bad_id == end.pk or commits_between(project, bad, end)):
        return False
    steps = regression.confirmations.filter(
        purpose=Purpose.BISECT, series=regression.series, good=good, bad=bad
    )
    step = steps.exclude(state=Confirmation.State.CANCELLED).first()
    if step is not None:
        if step.verdict == Verdict.BETWEEN:
            open_behind(regression, step, end)
        return False
    of_it = (row.bad_id, row.series_id) == (bad.pk, regression.series_id)
    if of_it and confirmations.place(row, regression.before, regression.after) == Verdict.BAD:
        return False
    request(regression, Purpose.BISECT, good, bad, row if row.bad_id != bad.pk else None)
    return True


def next_measured(project: Project, regression: Regression) -> Commit | None:
    """The first commit behind the range with an undisturbed point of the series that speaks."""
    line = branches.of(project, regression.first_bad.branch)
    points = Point.objects.filter(line.holds("run__commit"), series=regression.series, tainted=False)
    behind = points.filter(position__gt=regression.first_bad.position).order_by("position")
    point = behind.select_related("run__commit").first()
    return point.run.commit if point else None


def look_beside(project: Project, regression: Regression, whole: Confirmation) -> None:
    """Where pairs surely show a part only of what the points show, look for the rest beside the range.

    The rest lies on the side where the range's own point stands between the levels, as the pairs say. Where
    none does, later points were slow for another reason than commits, and nothing is looked for.
    """
    metric, before, after = regression.series.metric, regression.before, regression.after
    if whole.series_id != regression.series_id or not whole.ratio:
        return
    if confirmations.place(whole, before, after) != Verdict.BETWEEN:
        return
    past = history.load(regression.series, branches.of(project, regression.first_bad.branch))
    first, last = past.at(whole.good.position), past.at(whole.bad.position)
    if first is None or last is None:
        return
    good, bad = past.measured[first], past.measured[last]
    scale = Scale.of(metric, before, after, [Pair(good=good.value, bad=bad.value)])
    if not scale.logarithmic:
        return
    part = scale.steps(metric.level(before, whole.ratio))
    earlier, later = past.before(first), past.after(last)
    if nearer(scale.steps(bad.value), part, 1.0) and later < len(past.measured):
        end = Commit.objects.get(pk=past.measured[later].commit_id)
        open_beside(regression, (whole.bad, end), (metric.level(before, whole.ratio), after))
    elif nearer(scale.steps(good.value), 1.0 - part, 0.0) and earlier >= 0:
        begin = Commit.objects.get(pk=past.measured[earlier].commit_id)
        rest = metric.level(before, scale.ratio(1.0 - part) or 1.0)
        open_beside(regression, (begin, whole.good), (before, rest))


def nearer(value: float, one: float, other: float) -> bool:
    return abs(value - one) < abs(value - other)


def open_behind(regression: Regression, part: Confirmation, bad: Commit) -> None:
    """Part of the step is there before the range's end: what comes after it has a cause of its own."""
    level = regression.series.metric.level(part.before, part.ratio or 1.0)
    open_beside(regression, (part.bad, bad), (level, part.after))


def open_beside(regression: Regression, ends: tuple[Commit, Commit], levels: tuple[float, float]) -> None:
    """Prove the rest of a step between two commits, as a regression of its own.

    It is asked once: where it ended, narrowed or refuted, it isn't measured again. Nor where detection sees
    a step there by now.
    """
    (good, bad), (before, after) = ends, levels
    project = regression.project
    if is_asked(regression, good, bad) or is_known(regression, good, bad):
        return
    there = Regression.objects.filter(project=project, first_bad=bad).first()
    if there and (there.withdrawn_at is None or there.is_away):
        return
    # The project is locked. What was withdrawn at this commit was an earlier step that detection saw there.
    second, _ = Regression.objects.update_or_create(
        project=project,
        first_bad=bad,
        defaults={
            "last_good": good,
            "series": regression.series,
            "before": before,
            "after": after,
            "ratio": regression.series.metric.ratio(before, after),
            "low": None,
            "high": None,
            "state": Regression.State.SUSPECTED,
            "proving": True,
            "withdrawn_at": None,
        },
    )
    request(second, Purpose.CONFIRM, good, bad)


def is_asked(regression: Regression, good: Commit, bad: Commit) -> bool:
    """Was it measured already whether the series steps between two commits?"""
    asked = Confirmation.objects.filter(purpose=Purpose.CONFIRM, series=regression.series_id)
    around = asked.filter(good__position__lte=good.position, bad__position__gte=bad.position)
    others = around.filter(bad__branch=bad.branch).exclude(regression=regression)
    return asked.filter(good=good, bad=bad).exists() or others.exists()


def is_known(regression: Regression, good: Commit, bad: Commit) -> bool:
    """Is there a regression of the same measurement between two commits already?"""
    inside = Regression.objects.filter(
        project=regression.project,
        withdrawn_at=None,
        first_bad__branch=bad.branch,
        last_good__position__gte=good.position,
        first_bad__position__lte=bad.position,
    ).select_related("series__metric")
    others = inside.exclude(pk=regression.pk)
    return any(one_measurement(one.series, regression.series) for one in others)
