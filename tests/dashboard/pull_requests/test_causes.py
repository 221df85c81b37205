"""What a check says of memory that grew and of learning that was lost: which changed functions explain it."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from dashboard import pull_requests, regressions
from dashboard.models import Check, CheckedCase, Experiment, Project
from dashboard.pull_requests import sentences
from dashboard.pull_requests.report import read_report
from dashboard.sentences.regressions.regressions import describe_function_change
from tests.dashboard.conftest import Repository
from tests.dashboard.pull_requests.conftest import TRAIN, prepare_check
from tests.pages.experiment_builders import build_profile

pytestmark = pytest.mark.django_db

REPLAY = "def push(row):\n    return [row]\n\n\ndef sample(rows):\n    return rows\n"
KEEPS_ALL = REPLAY.replace("[row]", "[row] * 1000")


@pytest.fixture
def case(tracked: Project, proposed: Repository) -> CheckedCase:
    """Twelve pairs of a head whose `push` keeps more: as fast, with more memory and a lower return."""
    proposed.git("checkout", "--quiet", "main")
    proposed.commit("Replay", replay_py=REPLAY)
    proposed.git("checkout", "--quiet", "-b", "keep")
    proposed.commit("Keep all", replay_py=KEEPS_ALL, train_py=TRAIN)
    check = prepare_check(pull_requests.request_check(tracked, pull_requests.CheckRequest("keep")))
    row = check.cases.select_related("experiment").get(is_control=False)
    row.experiment.profiles = {
        side: build_profile(calls, 0.001) for side, calls in (("base", 1), ("head", 9))
    }
    row.experiment.save()
    others: dict[str, Any] = {
        "peak_memory": {"unit": "B", "better": "lower", "kind": "memory", "base": 1e8, "head": 1.3e8},
        "quality.return": {"unit": "1", "better": "higher", "kind": "quality", "base": 9.0, "head": 3.0},
    }
    for index in range(12):
        row.experiment.pairs.create(
            index=index, base_first=index % 2 == 0, base=0.01, head=0.01, seconds=6, others=others
        )
    return row


def causes_of(check: Check) -> list[str]:
    check.refresh_from_db()
    return [sentences.cause_text(cause) for cause in read_report(check).causes]


def test_changed_functions_explain_what_is_worse_beside_the_time(case: CheckedCase) -> None:
    assert causes_of(case.of) == []
    regressions.explain_checked_case(case.experiment_id)
    told = "replay.py:push is called 9 times per step instead of 1 and was changed"
    assert causes_of(case.of) == [f"Peak memory: {told}", f"Return (quality): {told}"]
    pull_requests.proved_worse(case.experiment_id)
    case.of.refresh_from_db()
    assert f"Peak memory: {told.split()[0]}" in sentences.comment_markdown(read_report(case.of))


def test_a_slower_step_is_blamed_on_what_was_changed_in_its_phase(case: CheckedCase) -> None:
    longer = {"learn": [0.008, 0.018], "act": [0.002, 0.002]}
    case.experiment.pairs.update(head=0.02, others={}, phases=longer)
    told = {}
    for phase in ("act", "learn/update"):
        case.experiment.profiles = {
            side: build_profile(calls, 0.001) for side, calls in (("base", 1), ("head", 9))
        }
        for profile in case.experiment.profiles.values():
            profile["functions"][0]["phase"] = phase
        case.experiment.save()
        regressions.explain_checked_case(case.experiment_id)
        told[phase] = causes_of(case.of)
    explained = "learn explains 100 % of it"
    pushed = "Step time: replay.py:push is called 9 times per step instead of 1 and was changed"
    assert told == {"act": [explained], "learn/update": [explained, pushed]}


def test_of_what_neither_changed_nor_is_called_more_often_nothing_is_said(case: CheckedCase) -> None:
    regressions.explain_checked_case(case.experiment_id)
    case.experiment.refresh_from_db()
    (suspect,) = case.experiment.profiles["suspects"]["memory"]
    never = describe_function_change({**suspect, "calls_before": 0}, "memory")
    assert never == "is called 9 times per step instead of never", "it may have been there all the same"
    dull = {**suspect, "function": "append", "changed": False, "calls_before": 9, "calls_after": 10}
    case.experiment.profiles["suspects"]["memory"] = [dull, suspect]
    case.experiment.save()
    assert [cause.split(" is ")[0] for cause in causes_of(case.of)] == [
        "Peak memory: replay.py:push",
        "Return (quality): replay.py:push",
    ]


def test_they_are_looked_for_once(case: CheckedCase, monkeypatch: pytest.MonkeyPatch) -> None:
    regressions.explain_checked_case(case.experiment_id)
    monkeypatch.delattr("dashboard.regressions.checked_causes.touched_functions")
    regressions.explain_checked_case(case.experiment_id)
    assert len(causes_of(case.of)) == 2


def test_what_is_proved_again_by_each_pair_reads_none_of_them(
    case: CheckedCase, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """What has got worse beside it is explained at the end."""
    others = case.experiment.pairs.all()[0].others
    case.experiment.pairs.update(others={"peak_memory": others["peak_memory"]})
    regressions.explain_checked_case(case.experiment_id)
    pull_requests.proved_worse(case.experiment_id)
    case.experiment.pairs.update(others=others)
    with django_assert_num_queries(1):
        regressions.explain_checked_case(case.experiment_id)
    Experiment.objects.filter(pk=case.experiment_id).update(state="done")
    regressions.explain_checked_case(case.experiment_id)
    assert [cause.partition(":")[0] for cause in causes_of(case.of)] == ["Peak memory", "Return (quality)"]


def test_what_is_as_good_has_no_causes(case: CheckedCase) -> None:
    case.experiment.pairs.update(others={})
    regressions.explain_checked_case(case.experiment_id)
    assert set(Experiment.objects.get(pk=case.experiment_id).profiles) == {"base", "head"}
    assert causes_of(case.of) == []
