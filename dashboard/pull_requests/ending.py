"""A check ends with its last experiment; what was missed meanwhile a sweep finds."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from dashboard import dispatch, experiments
from dashboard.models import Check, CheckedCase, Experiment
from dashboard.pull_requests.answer import MeasuredCase, answer_check
from dashboard.sentences.experiments import reason_sentence

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
        dispatch.send_task(dispatch.TELL_CHECK, check.pk)


def measured_cases(check: Check) -> tuple[list[MeasuredCase], MeasuredCase | None]:
    """What the experiments of a check say by now; apart, that of the base against itself."""
    rows = check.cases.select_related("configuration__case", "experiment__metric")
    measured = [(row, measure_case(row)) for row in rows.prefetch_related("experiment__pairs")]
    control = next((case for row, case in measured if row.is_control), None)
    return [case for row, case in measured if not row.is_control], control


def measure_case(row: CheckedCase) -> MeasuredCase:
    experiment = row.experiment
    own, others = experiments.bound_experiment(experiment, list(experiment.pairs.all()))
    failed = experiment.verdict == Experiment.Verdict.UNTESTABLE
    failure = reason_sentence(experiment.reason) if failed else ""
    return MeasuredCase(str(row.configuration.case), own, others, failure)
