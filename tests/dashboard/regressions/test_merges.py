"""What is said of a merge whose branch can't tell, or not all of it."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.models import Change, Experiment, Regression, Run, Series
from dashboard.regressions import advance_proof
from dashboard.sentences.regressions.bisections import bisection_sentence
from dashboard.sentences.regressions.regressions import regression_title
from tests.dashboard import factories
from tests.dashboard.regressions.planted import History, linear_history

pytestmark = pytest.mark.django_db

BRANCH = {"b0": ["m0"], "b1": ["b0"], "b2": ["b1"]}


def proved_regression(history: History) -> Regression:
    """Proved between the first commit of the main line and its newest."""
    history.make().suspect("m0", history.main)
    history.answer_all()
    return history.project.regressions.get()


def culprit_subject(found: Regression) -> str:
    assert found.culprit
    return found.culprit.subject


def test_an_octopus_stays_named_as_a_whole() -> None:
    parents = linear_history(1) | {"b0": ["m0"], "c0": ["m0"], "merge": ["m1", "b0", "c0"]}
    found = proved_regression(History(parents, {"c0": 1.4}, main="merge"))
    assert (found.first_bad.subject, found.culprit) == ("merge", None)
    assert (
        bisection_sentence(found)
        == f"{found.first_bad} merges 2 branches at once: it stays named as a whole."
    )


def test_an_unrelated_history_stays_named_as_a_whole() -> None:
    parents = linear_history(1) | {"u0": [], "u1": ["u0"], "merge": ["m1", "u1"]}
    found = proved_regression(History(parents, {"u1": 1.4}, main="merge"))
    assert (found.first_bad.subject, found.culprit) == ("merge", None)
    assert (
        bisection_sentence(found)
        == f"{found.first_bad} merges an unrelated history: it stays named as a whole."
    )


def test_a_branch_whose_newest_commit_does_not_run_cannot_tell() -> None:
    parents = linear_history(1) | BRANCH | {"merge": ["m1", "b2"]}
    found = proved_regression(History(parents, {"b1": 1.4}, frozenset({"b2"}), main="merge"))
    assert found.culprit is None
    assert "Whether its branch brought it isn't known" in bisection_sentence(found)
    assert bisection_sentence(found).endswith("don't both run.")


def test_a_part_by_the_branch_and_a_part_by_the_merge_are_said() -> None:
    parents = linear_history(1) | BRANCH | {"merge": ["m1", "b2"]}
    found = proved_regression(
        History(parents, {"b1": 1.3, "merge": 1.3}, evil=frozenset({"merge"}), main="merge")
    )
    assert culprit_subject(found) == "b1"
    assert bisection_sentence(found).endswith("The branch brings a part of it, the merge itself the rest.")


def test_two_culprits_in_a_branch_are_said() -> None:
    parents = linear_history(1) | BRANCH | {"merge": ["m1", "b2"]}
    found = proved_regression(History(parents, {"b0": 1.3, "b2": 1.3}, main="merge"))
    assert culprit_subject(found) == "b0"
    assert bisection_sentence(found).endswith(
        "It has a part of it; a later commit of the branch has the rest."
    )
    culprit = found.culprit
    assert f"since {culprit} “b0”, merged by {found.first_bad}" in regression_title(found)


def test_a_branch_merged_at_its_base_needs_no_second_look_at_its_newest_commit() -> None:
    parents = linear_history(1) | {"b0": ["m1"], "b1": ["b0"], "merge": ["m1", "b1"]}
    found = proved_regression(History(parents, {"b1": 1.4}, main="merge"))
    assert culprit_subject(found) == "b1"
    inside = Experiment.objects.filter(purpose="merge")
    assert [(row.base_commit.subject, row.head_commit.subject) for row in inside] == [("m1", "b0")]


def test_another_commit_forgets_the_merge() -> None:
    parents = linear_history(1) | BRANCH | {"merge": ["m1", "b2"]}
    history = History(parents, {"b1": 1.4}, main="merge")
    found = proved_regression(history)
    assert bisection_sentence(found)
    rows = history.rows
    found.experiments.filter(purpose="bisection").delete()
    factories.create_ended_experiment(found, "whole", rows["m0"], rows["m1"], "bisection", ratio=1.4)
    advance_proof(found.pk)
    found.refresh_from_db()
    assert found.first_bad == rows["m1"]
    assert (found.culprit, bisection_sentence(found)) == (None, "")


def count_calls(history: History, name: str) -> None:
    """The run of a commit, whose calls go with the planted truth."""
    project = history.project
    row = history.rows[name]
    case = project.cases.first() or factories.create_case(project)
    factories.store_measured_run(row, case, {"function_calls": round(1e6 * history.level(name))})


def test_an_exact_counter_tells_the_commit_of_a_branch() -> None:
    parents = linear_history(1) | BRANCH | {"merge": ["m1", "b2"]}
    history = History(parents, {"b1": 1.4, "m1": 0.9}, main="merge").make()
    for name in ("m0", "m1", "merge"):
        count_calls(history, name)
    found = history.suspect("m1", "merge")
    series = Series.objects.get(metric__name="function_calls")
    ends: dict[str, Any] = {"before": history.level("m1") * 1e6, "after": history.level("merge") * 1e6}
    ends |= {"reach_good": found.last_good.position, "reach_bad": found.first_bad.position}
    ends |= {"first_bad": found.first_bad, "last_good": found.last_good, "position": found.first_bad.position}
    Change.objects.create(
        series=series, regression=found, ratio=1.4, confidence=1, direction="regression", **ends
    )
    Regression.objects.update(state="confirmed")
    advance_proof(found.pk)
    asked = []
    while waiting := Run.objects.filter(state=Run.State.REQUESTED).first():
        asked.append(waiting.commit.subject)
        waiting.delete()
        count_calls(history, asked[-1])
        advance_proof(found.pk)
    found.refresh_from_db()
    assert (found.culprit, found.experiments.count()) == (history.rows["b1"], 0)
    assert sorted(asked) == ["b0", "b1", "b2"]
