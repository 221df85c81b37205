"""A check ends with its last experiment; what was missed meanwhile a sweep finds."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from dashboard import dispatch, outbox
from dashboard.models import Check, CheckedCase, Experiment
from dashboard.pull_requests.answer import answer_check
from dashboard.pull_requests.measured_cases import measured_cases
from dashboard.pull_requests.status_and_comment import send_untold_checks

State = Check.State


def experiment_ended(experiment_id: int) -> None:
    """An experiment has ended: the check that asked for it may be answered now. Safe to repeat."""
    key = CheckedCase.objects.filter(experiment=experiment_id).values_list("of", flat=True).first()
    if key is not None:
        end_answered(key)


def sweep_checks() -> None:
    """Prepare again what was requested and forgotten, answer what has ended unseen."""
    for key in Check.objects.filter(state=State.REQUESTED).values_list("pk", flat=True):
        dispatch.send_task(dispatch.PREPARE_CHECK, key)
    for key in Check.objects.filter(state=State.MEASURING).values_list("pk", flat=True):
        end_answered(key)
    send_untold_checks()


def end_answered(check_id: int) -> None:
    """Answer a check all of whose experiments have ended."""
    with transaction.atomic():
        check = Check.objects.select_for_update().filter(pk=check_id, state=State.MEASURING).first()
        if check is None or check.cases.exclude(experiment__state__in=Experiment.TERMINAL).exists():
            return
        cases, control = measured_cases(check)
        answered = answer_check(cases, control)
        check.state, check.answer, check.reason = State.DONE, answered.answer, answered.reason
        check.ended_at = timezone.now()
        check.save(update_fields=["state", "answer", "reason", "ended_at"])
        outbox.send_kept(dispatch.TELL_CHECK, check.pk)
