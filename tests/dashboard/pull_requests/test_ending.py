"""When a check is answered: early by what is proved to be worse, else with its last experiment."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from django.db import transaction

from dashboard import dispatch, pull_requests
from dashboard.models import Check, CheckedCase, Commit, Experiment
from dashboard.pull_requests import CheckError, sentences
from dashboard.pull_requests.report import read_report
from tests.dashboard.test_leases import at_once, wait_until_another_waits
from tests.pages import builders
from tests.pages.check_builders import create_check, create_pull_request, grow_memory, measure_case
from tests.pages.experiment_builders import get_configuration

pytestmark = pytest.mark.django_db
UNDER_WAY: dict[str, Any] = {"state": "measuring", "verdict": "", "finished_at": None}


@pytest.fixture
def line() -> list[Commit]:
    return builders.create_commits(builders.create_project("snakes"), 2)


@pytest.fixture
def check(line: list[Commit]) -> Check:
    return create_check(line, create_pull_request(line), state="measuring")


@pytest.fixture
def head(check: Check, line: list[Commit]) -> CheckedCase:
    """As slow as the merge base, which isn't known yet, with a third more memory, which is."""
    row = measure_case(check, line, 1.001, **UNDER_WAY)
    grow_memory(row, 1.3)
    return row


@pytest.fixture
def control(check: Check, line: list[Commit]) -> CheckedCase:
    return measure_case(check, [line[0], line[0]], 1, **{**UNDER_WAY, "state": "requested"})


def end_experiment(row: CheckedCase, verdict: str) -> None:
    Experiment.objects.filter(pk=row.experiment_id).update(state="done", verdict=verdict)
    pull_requests.experiment_ended(row.experiment_id)


def answer_of(check: Check) -> tuple[str, str]:
    check.refresh_from_db()
    return check.state, check.answer


def headline_of(check: Check) -> str:
    check.refresh_from_db()
    return sentences.answer_headline(read_report(check))


def test_what_is_proved_is_told_while_the_rest_is_measured(
    check: Check, head: CheckedCase, control: CheckedCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *call: sent.append(call))
    pull_requests.proved_worse(head.experiment_id)
    pull_requests.proved_worse(head.experiment_id)
    assert answer_of(check) == ("measuring", "worse")
    assert sentences.status_state(check) == "failure"
    said = "Worse: peak memory +30 % [29, 31] in walker[fast=true]. Step time is still being measured."
    assert headline_of(check) == sentences.status_description(read_report(check)) == said
    assert sent == [(dispatch.PUBLISH_CHECK, check.pk)]


def test_the_end_completes_what_was_told(check: Check, head: CheckedCase, control: CheckedCase) -> None:
    pull_requests.proved_worse(head.experiment_id)
    end_experiment(head, "not worse")
    assert headline_of(check).endswith("The merge base against itself is still being measured.")
    end_experiment(control, "not worse")
    assert answer_of(check) == ("done", "worse")
    assert headline_of(check) == "Worse: peak memory +30 % [29, 31] in walker[fast=true]."


def test_what_was_told_is_never_taken_back(check: Check, head: CheckedCase, control: CheckedCase) -> None:
    pull_requests.proved_worse(head.experiment_id)
    grow_memory(head, 1.001)
    end_experiment(head, "not worse")
    end_experiment(control, "not worse")
    assert answer_of(check) == ("done", "worse")
    assert headline_of(check).startswith("Worse: peak memory +0.1 %")


def test_a_slower_case_is_told_once_the_machine_is_known_to_tell(
    check: Check, line: list[Commit], control: CheckedCase
) -> None:
    row = measure_case(check, line, 1.38, state="done", verdict="worse")
    pull_requests.experiment_ended(row.experiment_id)
    assert answer_of(check) == ("measuring", "")
    waiting = create_second_case(check, line)
    end_experiment(control, "not worse")
    assert answer_of(check) == ("measuring", "worse")
    assert headline_of(check).endswith(f"{waiting.configuration.case} is still being measured.")


def create_second_case(check: Check, line: list[Commit]) -> CheckedCase:
    other = get_configuration(line[0], fast="false")
    row = measure_case(check, line, 1.001, head_configuration=other, **UNDER_WAY)
    row.experiment.pairs.all().delete()
    return row


def test_what_more_pairs_could_take_back_waits(check: Check, head: CheckedCase, control: CheckedCase) -> None:
    """Of 3.1 % with an interval that reaches below the floor."""
    grow_memory(head, 1.031, noise=0.01)
    pull_requests.proved_worse(head.experiment_id)
    assert answer_of(check) == ("measuring", "")
    end_experiment(control, "not worse")
    end_experiment(head, "not worse")
    assert answer_of(check) == ("done", "worse")


def test_cancelling_the_rest_keeps_the_answer(check: Check, head: CheckedCase, control: CheckedCase) -> None:
    pull_requests.proved_worse(head.experiment_id)
    with pytest.raises(CheckError, match="the rest is still being measured"):
        pull_requests.mark_intended(check, "ada")
    assert pull_requests.cancel_check(check, "ada")
    assert answer_of(check) == ("done", "worse")
    assert headline_of(check).endswith("The rest was cancelled.")
    assert set(Experiment.objects.values_list("state", flat=True)) == {"cancelled"}
    pull_requests.mark_intended(check, "ada")
    assert headline_of(check).endswith("The rest was cancelled. Intended, says ada.")


@pytest.mark.django_db(transaction=True)
def test_what_is_proved_while_somebody_cancels_is_kept(check: Check, head: CheckedCase) -> None:
    answered = Event()

    def act(number: int) -> None:
        if number:
            assert answered.wait(20)
            assert pull_requests.cancel_check(check, "ada")
            return
        with transaction.atomic():
            pull_requests.proved_worse(head.experiment_id)
            answered.set()
            wait_until_another_waits()

    at_once(2, act)
    assert answer_of(check) == ("done", "worse")


def test_the_sweep_tells_what_was_proved_unseen(check: Check, head: CheckedCase) -> None:
    pull_requests.sweep_checks()
    assert answer_of(check) == ("measuring", "worse")


def test_an_odd_check_keeps_no_other_from_its_answer(
    check: Check, head: CheckedCase, caplog: pytest.LogCaptureFixture
) -> None:
    line = builders.create_commits(builders.create_project("other"), 2)
    other = create_check(line, create_pull_request(line), state="measuring")
    grow_memory(measure_case(other, line, 1.001, **UNDER_WAY), 1.3)
    head.experiment.pairs.update(others={"peak_memory": {}})
    pull_requests.sweep_checks()
    assert answer_of(other) == ("measuring", "worse")
    assert answer_of(check) == ("measuring", "")
    assert f"Check {check.pk} can't be swept" in caplog.text


def test_what_is_learned_is_named_once_the_time_is_known(check: Check, head: CheckedCase) -> None:
    for pair in head.experiment.pairs.all():
        better = {"unit": "1", "better": "higher", "kind": "quality", "base": 9.0}
        pair.others["quality.return"] = {**better, "head": 9.0 + (-4, 0, 4)[pair.index % 3]}
        pair.save()
    pull_requests.proved_worse(head.experiment_id)
    assert headline_of(check).endswith("Return (quality) is still being measured.")
    head.experiment.pairs.filter(index__gt=1).delete()
    assert headline_of(check).endswith("Step time is still being measured.")


def test_what_is_faster_and_learns_less_is_refused(check: Check, line: list[Commit]) -> None:
    row = measure_case(check, line, 0.5)
    for pair in row.experiment.pairs.all():
        better = {"unit": "1", "better": "higher", "kind": "quality", "base": 10.0}
        pair.others["quality.return"] = {**better, "head": 2.0 + 0.1 * (pair.index % 3)}
        pair.save()
    end_experiment(row, "not worse")
    assert answer_of(check) == ("done", "worse")
    assert headline_of(check).startswith("Learns worse: return (quality)")
    assert sentences.status_state(check) == "failure"
    report = read_report(check)
    pace = next(row.bounded for row in report.rows if row.bounded.metric.name == "step_time")
    assert (report.learns_worse, pace.is_better) == (True, True)


def test_nothing_is_told_early_of_what_is_as_good(check: Check, head: CheckedCase) -> None:
    grow_memory(head, 1.0)
    pull_requests.proved_worse(head.experiment_id)
    assert answer_of(check) == ("measuring", "")
