"""What people make of a regression, kept so that judging again doesn't undo it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from dashboard import alerts, dispatch, experiments
from dashboard.access import AuditAction, Visitor, record_action
from dashboard.models import Project, Regression, Triage
from dashboard.regressions import false_alarm_budget
from dashboard.regressions.apply import keep_triage

Action = Triage.Action
Triaged = Regression.Triaged

MOST_LETTERS = 4000
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


def triage_regression(
    regression_id: int, visitor: Visitor, action: str, comment: str = "", *, seen: str | None = None
) -> Triage:
    """Write down what a person says, and act on it. Raises TriageError, Regression.DoesNotExist.

    `seen`: what the person saw that it was; where somebody else has said something since, nothing is changed.
    """
    text = clean_comment(action, comment)
    with transaction.atomic():
        # Before the regression, as judging does.
        project_id = Regression.objects.values_list("project", flat=True).get(pk=regression_id)
        project = Project.objects.select_for_update(no_key=True).get(pk=project_id)
        regression = Regression.objects.select_for_update().get(pk=regression_id)
        row = Triage(regression=regression, person=visitor.user, action=action, comment=text)
        if action in BECOMES:
            wanted = BECOMES[Action(action)]
            if seen is not None and regression.triaged not in (seen, wanted):
                raise TriageError(_describe_overtaken(regression, visitor))
            change_triage(project, row, wanted)
        row.save()
        record_action(visitor, AuditAction.REGRESSION_TRIAGED, project, regression, triage=action)
        return row


def _describe_overtaken(regression: Regression, visitor: Visitor) -> str:
    decided = regression.triaged_by
    who = "you" if decided == visitor.user else (decided or "somebody")
    decision = regression.triaged or "that it is open"
    return f"action: since you opened this page {who} said {decision}; nothing was changed."


def clean_comment(action: str, comment: str) -> str:
    """The comment as it is kept: one kind of line ends, nothing around it."""
    if action not in Action.values:
        raise TriageError(f"action: {action[:40]!r} is none of {', '.join(Action.values)}.")
    text = comment.replace("\r\n", "\n").strip()
    if "\0" in text:
        raise TriageError("comment: it holds a NUL character, which can't be kept.")
    if len(text) > MOST_LETTERS:
        raise TriageError(f"comment: {len(text):,} letters are more than {MOST_LETTERS:,}.")
    if action == Action.COMMENT and not text:
        raise TriageError("comment: it is empty, and no other action was chosen.")
    return text


def change_triage(project: Project, row: Triage, wanted: Triaged) -> None:
    """Make the regression what the action says. Project and regression are locked."""
    regression = row.regression
    if regression.triaged == wanted:
        raise TriageError(f"action: it is {wanted or 'open'} already.")
    was_away = regression.is_triaged_away
    keep_triage(regression, wanted, row.person)
    if regression.is_triaged_away:
        stop_proof(project, regression, {"code": "triaged", "person": str(row.person), "action": str(wanted)})
    elif was_away and regression.proving:
        dispatch.send_task(dispatch.PROVE, regression.pk)
    elif was_away and regression.state == Regression.State.CONFIRMED:
        # To those whom the message hadn't reached: it was dropped on its way. Nobody is notified twice.
        alerts.announce_regression(regression)
    alerts.announce_changes(regression)


def stop_proof(project: Project, regression: Regression, reason: Mapping[str, Any]) -> None:
    """Measure no more for it. A reported suspicion that isn't real makes the next ones less credible."""
    experiments.cancel_experiments(regression.experiments.all(), reason)
    false = regression.triaged == Triaged.NOT_REAL and regression.state == Regression.State.SUSPECTED
    if false and regression.deliveries.exists():
        false_alarm_budget.count_refuted_alert(project)
