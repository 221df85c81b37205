"""What people make of a regression, kept so that judging again doesn't undo it."""

from __future__ import annotations

import math
from typing import Any

from django.db import transaction
from django.utils import timezone

from dashboard import alerts, dispatch
from dashboard.models import Change, Metric, Project, Regression, Triage
from dashboard.regressions import confirmations, promise
from dashboard.regressions.history import History
from dashboard.regressions.ranges import Range

Action = Triage.Action
Triaged = Regression.Triaged

MOST_LETTERS = 4000
TIMES = (Metric.Kind.TIME, Metric.Kind.RATE)
# A step that is larger than this times the one that people decided on has another cause too.
LARGER = 1.5
# What each action makes of a regression; a comment alone leaves it as it is.
BECOMES = {
    Action.ACKNOWLEDGE: Triaged.ACKNOWLEDGED,
    Action.INTENDED: Triaged.INTENDED,
    Action.NOT_REAL: Triaged.NOT_REAL,
    Action.WONT_FIX: Triaged.WONT_FIX,
    Action.REOPEN: Triaged.OPEN,
}


class TriageError(Exception):
    """It can't be done; the message is one sentence that names the field."""


def triage(regression_id: int, person: Any, action: str, comment: str = "") -> Triage:
    """Write down what a person says, and act on it. Raises TriageError, Regression.DoesNotExist."""
    said = cleaned(action, comment)
    with transaction.atomic():
        # Before the regression, as judging does.
        of = Regression.objects.values_list("project", flat=True).get(pk=regression_id)
        project = Project.objects.select_for_update(no_key=True).get(pk=of)
        regression = Regression.objects.select_for_update().get(pk=regression_id)
        row = Triage(regression=regression, person=person, action=action, comment=said)
        if action in BECOMES:
            become(project, row, BECOMES[Action(action)])
        row.save()
        return row


def cleaned(action: str, comment: str) -> str:
    """The comment as it is kept: one kind of line ends, nothing around it."""
    if action not in Action.values:
        raise TriageError(f"action: {action[:40]!r} is none of {', '.join(Action.values)}.")
    said = comment.replace("\r\n", "\n").strip()
    if "\0" in said:
        raise TriageError("comment: it holds a NUL character, which can't be kept.")
    if len(said) > MOST_LETTERS:
        raise TriageError(f"comment: {len(said):,} letters are more than {MOST_LETTERS:,}.")
    if action == Action.COMMENT and not said:
        raise TriageError("comment: it is empty, and no other action was chosen.")
    return said


def become(project: Project, row: Triage, wanted: Triaged) -> None:
    """Make the regression what the action says. Project and regression are locked."""
    regression = row.regression
    if regression.triaged == wanted:
        raise TriageError(f"action: it is {wanted or 'open'} already.")
    was_away = regression.is_away
    regression.triaged, regression.triaged_by, regression.triaged_at = wanted, row.person, timezone.now()
    if wanted == Triaged.OPEN:
        regression.triaged_by = regression.triaged_at = None
    regression.save(update_fields=["triaged", "triaged_by", "triaged_at", "updated_at"])
    if regression.is_away:
        put_away(project, regression, f"{row.person} called it {wanted}.")
    elif was_away and regression.proving:
        dispatch.send_task(dispatch.PROVE, regression.pk)
    elif was_away and regression.state == Regression.State.CONFIRMED:
        # To those whom the message hadn't reached: it was dropped on its way. Who was told isn't told twice.
        alerts.announce_regression(regression)


def put_away(project: Project, regression: Regression, reason: str) -> None:
    """Measure no more for it. A suspicion that was told and isn't real makes the next ones less credible."""
    confirmations.cancel(regression.confirmations.all(), reason)
    false = regression.triaged == Triaged.NOT_REAL and regression.state == Regression.State.SUSPECTED
    if false and regression.deliveries.exists():
        promise.refuted(project)


def hand_over(regression: Regression, heir: Regression) -> None:
    """Give what people said to the regression that this one turned out to be; what they said of it stays."""
    regression.triages.update(regression=heir)
    if regression.triaged and not heir.triaged:
        heir.triaged, heir.triaged_by_id = regression.triaged, regression.triaged_by_id
        heir.triaged_at = regression.triaged_at
        heir.save(update_fields=["triaged", "triaged_by", "triaged_at", "updated_at"])


def known(project: Project, change: Change, history: History) -> Regression | None:
    """The withdrawn regression in which people have decided on this very step already, newest first.

    Noise takes a step away and brings it back a commit beside: that is no news.
    """
    there = Range.of(change).widened(history)
    decided = Regression.objects.filter(
        project=project,
        triaged__in=Regression.AWAY,
        withdrawn_at__isnull=False,
        first_bad__branch=change.first_bad.branch,
        first_bad__position__gt=there.good,
        last_good__position__lt=there.bad,
        series__case=change.series.case_id,
        series__pool=change.series.pool_id,
        series__metric__kind__in=family(change.series.metric),
    ).order_by("-triaged_at")
    return next((one for one in decided if no_larger(change, one)), None)


def family(metric: Metric) -> tuple[str, ...]:
    """The kinds that see the same step: times and rates are one measurement."""
    return TIMES if metric.kind in TIMES else (metric.kind,)


def no_larger(change: Change, decided: Regression) -> bool:
    """Is the step about the one that was decided on, and not a second one on top of it?"""
    if not change.ratio or not decided.ratio:
        return change.ratio == decided.ratio
    return abs(math.log(change.ratio)) <= LARGER * abs(math.log(decided.ratio))
