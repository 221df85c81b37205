from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard import alerts
from dashboard.access import Visitor
from dashboard.models import Case, Channel, Commit, Delivery, Experiment, Project, Regression, Triage
from dashboard.regressions import TriageError, advance_proof, judge_run, redetect_project, triage_regression
from dashboard.sentences.comparisons.experiments import reason_sentence
from tests.dashboard import factories
from tests.dashboard.regressions.test_judging import judge_runs, measure_line
from tests.dashboard.shared_rows import share_rows

AWAY = ["intended", "not real", "won't fix"]
STEP = factories.noisy_levels((6, 0.010), (6, 0.014))


@pytest.fixture(scope="module")
def judged_line(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What each test begins with."""
    with share_rows(django_db_blocker, judge_line):
        yield


def judge_line() -> None:
    """Twenty commits, and a step among the twelve that are measured."""
    project = factories.create_project()
    line = factories.create_commits(project, 20)
    judge_runs(measure_line(line[:12], factories.create_case(project), "step_time", STEP))


@pytest.fixture
def project(judged_line: None, db: None) -> Project:
    return Project.objects.get()


@pytest.fixture
def case(project: Project) -> Case:
    return project.cases.get()


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def line(project: Project) -> list[Commit]:
    return list(project.commits.order_by("position"))


@pytest.fixture
def found(project: Project) -> Regression:
    return project.regressions.get()


def confirm_regression(regression: Regression) -> None:
    """As interleaved runs would have."""
    regression.experiments.update(state="done", verdict="confirmed", finished_at=timezone.now())
    Regression.objects.filter(pk=regression.pk).update(state="confirmed", proving=False)


def create_channel(project: Project) -> Channel:
    return Channel.objects.create(project=project, kind="email", address="team@example.org", suspicions=True)


def test_the_log_says_who_did_what_and_why(found: Regression, ada: User) -> None:
    triage_regression(found.pk, Visitor(ada), "acknowledge", "  I look at it.\r\nToday. ")
    triage_regression(found.pk, Visitor(ada), "comment", "A fix is on its way.")
    rows = Triage.objects.values_list("person__username", "action", "comment")
    assert list(rows) == [
        ("ada", "acknowledge", "I look at it.\nToday."),
        ("ada", "comment", "A fix is on its way."),
    ]
    found.refresh_from_db()
    assert (found.triaged, found.triaged_by) == ("acknowledged", ada)


@pytest.mark.parametrize(
    ("action", "comment", "sentence"),
    [
        ("resolve", "", "action: 'resolve' is none of acknowledge, intended"),
        ("reopen", "", "action: it is open already."),
        ("comment", " \n ", "comment: it is empty"),
        ("intended", "x" * 4001, "comment: 4,001 letters are more than 4,000."),
        ("intended", "a\0b", "comment: it holds a NUL character"),
    ],
)
def test_bad_input_is_refused(found: Regression, ada: User, action: str, comment: str, sentence: str) -> None:
    with pytest.raises(TriageError, match="^" + sentence):
        triage_regression(found.pk, Visitor(ada), action, comment)
    assert not Triage.objects.exists()


def test_reopening_forgets_who_decided_and_keeps_the_log(found: Regression, ada: User) -> None:
    triage_regression(found.pk, Visitor(ada), "intended")
    triage_regression(found.pk, Visitor(ada), "reopen")
    found.refresh_from_db()
    assert (found.triaged, found.triaged_by, found.triaged_at) == ("", None, None)
    assert Triage.objects.count() == 2


@pytest.mark.parametrize("action", AWAY)
def test_judging_again_leaves_the_decision(
    found: Regression, ada: User, project: Project, action: str
) -> None:
    triage_regression(found.pk, Visitor(ada), action)
    redetect_project(project)
    kept = Regression.objects.get()
    assert (kept.triaged, kept.withdrawn_at, kept.first_bad) == (action, None, found.first_bad)


def test_an_intended_level_is_the_baseline(
    found: Regression, ada: User, line: list[Commit], case: Case, project: Project
) -> None:
    create_channel(project)
    triage_regression(found.pk, Visitor(ada), "intended")
    judge_runs(
        measure_line(line[12:16], case, "step_time", [0.014 * factories.run_noise(n) for n in range(12, 16)])
    )
    assert (Regression.objects.count(), Delivery.objects.count()) == (1, 0)
    judge_runs(
        measure_line(line[16:], case, "step_time", [0.020 * factories.run_noise(n) for n in range(16, 20)])
    )
    newer = Regression.objects.exclude(pk=found.pk).get()
    assert (newer.first_bad.position, newer.triaged) == (16, "")
    assert newer.before == pytest.approx(0.014, rel=0.01)


def test_a_step_that_comes_back_beside_its_place_stays_decided(
    found: Regression, ada: User, project: Project, line: list[Commit]
) -> None:
    triage_regression(found.pk, Visitor(ada), "not real")
    Regression.objects.update(withdrawn_at=timezone.now(), first_bad=line[7], last_good=line[6])
    found.changes.all().delete()
    redetect_project(project)
    back = Regression.objects.get()
    assert (back.pk, back.first_bad, back.triaged) == (found.pk, line[6], "not real")
    assert back.withdrawn_at is None


def test_a_larger_step_at_that_place_is_another_one(
    found: Regression, ada: User, project: Project, line: list[Commit]
) -> None:
    triage_regression(found.pk, Visitor(ada), "not real")
    Regression.objects.update(withdrawn_at=timezone.now(), first_bad=line[7], last_good=line[6], ratio=1.1)
    found.changes.all().delete()
    redetect_project(project)
    assert Regression.objects.get(withdrawn_at=None).triaged == ""


def test_nothing_more_is_measured_or_told(found: Regression, ada: User, project: Project) -> None:
    create_channel(project)
    assert found.experiments.get().state == Experiment.State.REQUESTED
    triage_regression(found.pk, Visitor(ada), "won't fix")
    row = found.experiments.get()
    assert (row.state, reason_sentence(row.reason)) == ("cancelled", "ada called it won't fix.")
    judge_run(found.first_bad.runs.get().pk)
    assert found.experiments.count() == 1
    confirm_regression(found)
    assert alerts.announce_regression(Regression.objects.get()) == []


def test_a_dropped_message_goes_out_once_open_again(found: Regression, ada: User, project: Project) -> None:
    create_channel(project)
    confirm_regression(found)
    (waiting,) = alerts.announce_regression(Regression.objects.get())
    triage_regression(found.pk, Visitor(ada), "intended")
    alerts.attempt_delivery(waiting.pk)
    assert not Delivery.objects.exists()
    triage_regression(found.pk, Visitor(ada), "reopen")
    assert Delivery.objects.get().state == "pending"


def test_reopening_tells_nobody_twice(found: Regression, ada: User, project: Project) -> None:
    create_channel(project)
    confirm_regression(found)
    alerts.announce_regression(Regression.objects.get())
    Delivery.objects.update(state="delivered")
    for action in ("intended", "reopen"):
        triage_regression(found.pk, Visitor(ada), action)
    assert Delivery.objects.get().state == "delivered"


def test_reopened_it_is_measured_again(found: Regression, ada: User) -> None:
    triage_regression(found.pk, Visitor(ada), "intended")
    triage_regression(found.pk, Visitor(ada), "reopen")
    advance_proof(found.pk)
    states = found.experiments.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["cancelled", "requested"]


def test_a_suspicion_that_was_told_and_is_not_real_is_counted(
    found: Regression, ada: User, project: Project
) -> None:
    create_channel(project)
    assert alerts.announce_regression(found)
    before = (project.risk or {}).get("trust", 1.0)
    triage_regression(found.pk, Visitor(ada), "not real")
    project.refresh_from_db()
    assert project.risk["trust"] < before


def test_what_turns_out_to_be_one_keeps_what_was_said(
    found: Regression, ada: User, project: Project, line: list[Commit]
) -> None:
    triage_regression(found.pk, Visitor(ada), "intended", "The new renderer.")
    copied = {name: getattr(found, name) for name in ("project", "series", "before", "after", "last_good")}
    # The points put it where another one stands, which pairs have proved there.
    Regression.objects.update(first_bad=line[8])
    heir = Regression.objects.create(first_bad=line[6], **copied)
    factories.create_ended_experiment(heir, "confirmed", line[5], line[6], ratio=1.4)
    advance_proof(heir.pk)
    heir.refresh_from_db()
    found.refresh_from_db()
    assert found.withdrawn_at is not None
    assert (heir.triaged, heir.triaged_by) == ("intended", ada)
    assert heir.triages.get().comment == "The new renderer."
