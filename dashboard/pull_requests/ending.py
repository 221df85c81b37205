"""A check ends with its last experiment, and says earlier what is proved to be worse.

What was missed meanwhile a sweep finds.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from dashboard import dispatch, failed_jobs, outbox
from dashboard.models import Check, CheckedCase, Experiment
from dashboard.pull_requests.answer import answer_check, prove_worse
from dashboard.pull_requests.case_evaluation import evaluate_cases
from dashboard.pull_requests.status_and_comment import send_unpublished_checks

State = Check.State


def experiment_ended(experiment_id: int) -> None:
    """An experiment has ended: the check that asked for it may be answered now. Safe to repeat."""
    key = check_of_experiment(experiment_id)
    if key is not None:
        end_answered(key)
        answer_early(key)


def proved_worse(experiment_id: int) -> None:
    """An experiment that goes on has proved that something is worse. Safe to repeat."""
    key = check_of_experiment(experiment_id)
    if key is not None:
        answer_early(key)


def check_of_experiment(experiment_id: int) -> int | None:
    """The key of the check that asked for it; None where none did."""
    return CheckedCase.objects.filter(experiment=experiment_id).values_list("of", flat=True).first()


def sweep_checks() -> None:
    """Prepare again what was requested and forgotten, answer what has ended, or was proved, unseen."""
    for key in Check.objects.filter(state=State.REQUESTED).values_list("pk", flat=True):
        dispatch.send_task(dispatch.PREPARE_CHECK, key)
    measuring = Check.objects.filter(state=State.MEASURING).values_list("pk", flat=True)
    failed_jobs.try_each(measuring, answer_measuring, "Check")
    send_unpublished_checks()


def answer_measuring(check_id: int) -> None:
    end_answered(check_id)
    answer_early(check_id)


def end_answered(check_id: int) -> None:
    """Answer a check all of whose experiments have ended."""
    with transaction.atomic():
        check = Check.objects.select_for_update().filter(pk=check_id, state=State.MEASURING).first()
        if check is None or check.cases.exclude(experiment__state__in=Experiment.TERMINAL).exists():
            return
        answered = answer_check(*evaluate_cases(check))
        # What was told stays, whatever the last pairs say.
        named = {name: check.reason[name] for name in ("case", "metric") if check.answer}
        check.answer, check.reason = check.answer or answered.answer, {**answered.reason, **named}
        check.state, check.ended_at = State.DONE, timezone.now()
        check.save(update_fields=["state", "answer", "reason", "ended_at"])
        outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)


def answer_early(check_id: int) -> None:
    """Answer a check that goes on as soon as something is proved to be worse, once."""
    with transaction.atomic():
        unanswered = Check.objects.filter(pk=check_id, state=State.MEASURING, answer="")
        check = unanswered.select_for_update().first()
        proved = prove_worse(*evaluate_cases(check)) if check else None
        if check is None or proved is None:
            return
        check.answer, check.reason = proved.answer, proved.reason
        check.save(update_fields=["answer", "reason"])
        outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)
