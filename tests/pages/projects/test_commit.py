"""A commit over all cases: its values beside those before it, what it began, and what it lacks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Case, Commit, Point, Regression, Run, Series, Trigger
from dashboard.repositories import DETACHED
from dashboard.sentences.formatting.change_sizes import describe_movement
from dashboard.sentences.formatting.numbers import MINUS
from tests.pages import builders
from tests.pages.check_builders import create_check
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import create_ended

pytestmark = pytest.mark.django_db


def page_of(commit: Commit, query: str = "") -> str:
    return f"/projects/{commit.project.slug}/commits/{commit.hash}/{query}"


@pytest.fixture
def stepped() -> Regression:
    return builders.create_stepped_regression()


def add_case(line: list[Commit], name: str, times: list[float], **fields: Any) -> Case:
    """A case that took so long at each of these commits; None where it wasn't measured."""
    case = builders.create_case(line[0].project, name)
    for commit, took in zip(line, times, strict=True):
        if took:
            builders.create_measured_run(commit, case, took, **fields)
    return case


def test_it_says_what_it_is_and_where_it_stands(client: Client, stepped: Regression) -> None:
    bad = stepped.first_bad
    shown = shown_text(client.get(page_of(bad)))
    assert f"by {bad.author}" in shown
    assert f"main , position {bad.position}" in shown
    assert f'href="{page_of(stepped.last_good)}"' in client.get(page_of(bad)).content.decode()


def test_what_a_force_push_took_away_stands_beside_its_ancestor_on_the_branch(
    client: Client, stepped: Regression
) -> None:
    bad, good = stepped.first_bad, stepped.last_good
    Commit.objects.filter(position__gte=bad.position).update(branch=DETACHED)
    for commit in (bad, Commit.objects.get(position=bad.position + 1)):
        Commit.objects.filter(pk=commit.pk).update(parents=[good.hash])
        (row,) = client.get(page_of(commit)).context["rows"]
        assert row.base.hash == good.hash


def test_a_step_stands_beside_the_value_before_and_leads_to_its_regression(
    client: Client, stepped: Regression
) -> None:
    answer = client.get(page_of(stepped.first_bad))
    (row,) = answer.context["rows"]
    step_time = next(cell for cell in row.cells if cell and cell.measured.metric == "step_time")
    assert (step_time.word, step_time.base.hash) == ("worse", stepped.last_good.hash)
    assert step_time.moved.distance == pytest.approx(math.log(1.38), abs=0.05)
    assert f'<a class="worse" href="/regressions/{stepped.pk}/" title="a level of' in answer.content.decode()
    assert "began with this commit" in shown_text(answer)


def test_the_levels_of_a_step_tell_where_two_neighbours_lie_the_other_way(
    client: Client, stepped: Regression
) -> None:
    points = Point.objects.filter(series=stepped.series, run__commit=stepped.first_bad)
    points.update(value=stepped.changes.get(series=stepped.series).before * 0.9)
    (row,) = client.get(page_of(stepped.first_bad)).context["rows"]
    step_time = next(cell for cell in row.cells if cell and cell.measured.metric == "step_time")
    assert (step_time.word, step_time.change_text[0]) == ("worse", "+")


def test_work_that_moved_between_phases_is_told_apart(client: Client, stepped: Regression) -> None:
    moved = {"code": "moved", "from": ["env"], "to": ["rollout/env"], "share": 0.042}
    stepped.changes.update(direction="moved", doubts=[moved], regression=None)
    bad = stepped.first_bad
    said = "4.2 % of the step moved from env to rollout/env: nothing was lost."
    assert said in shown_text(client.get(page_of(bad)))
    series = shown_text(client.get(stepped.series.get_absolute_url()))
    assert f"moved {bad.short}" in series
    assert said in series


def test_what_it_repaired_and_may_have_begun_is_told_apart(client: Client, stepped: Regression) -> None:
    repairing = Commit.objects.latest("position")
    Regression.objects.update(recovered_by=repairing)
    assert "repaired by this commit" in shown_text(client.get(page_of(repairing)))
    Regression.objects.update(first_bad=repairing, recovered_by=None)
    assert "one of 2 commits, this one among them" in shown_text(client.get(page_of(stepped.first_bad)))


def test_intervals_that_overlap_tell_no_difference(client: Client) -> None:
    line = builders.create_measured_commits(3)
    Point.objects.update(low=0, high=1e12)
    (row,) = client.get(page_of(line[1])).context["rows"]
    assert {cell.word for cell in row.cells if cell} == {""}


def test_a_tainted_value_is_passed_over(client: Client) -> None:
    line = builders.create_measured_commits(3)
    Point.objects.filter(run__commit=line[1]).update(tainted=True)
    (row,) = client.get(page_of(line[2])).context["rows"]
    assert row.base.hash == line[0].hash


def test_what_may_be_nothing_has_a_difference(client: Client) -> None:
    line = builders.create_measured_commits(2)
    Series.objects.filter(metric__name="memory_growth").update(headline=True)
    for commit, value in zip(line, (5000.0, 2000.0), strict=True):
        grown = Point.objects.filter(run__commit=commit, series__metric__name="memory_growth")
        grown.update(value=value, low=value - 10, high=value + 10)
    assert f"{MINUS}3 kB/1000 steps" in shown_text(client.get(page_of(line[1])))
    assert describe_movement("memory_growth", "bytes", 5.0, -2.0) == f"{MINUS}7 B"
    assert describe_movement("step_time", "s", 1.0, 1.25) == "+25 %"


def test_on_a_branch_the_value_before_is_that_where_it_left(client: Client) -> None:
    line = builders.create_measured_commits(3)
    project, case = line[0].project, line[0].runs.get().case
    own = Commit.objects.create(
        project=project, hash="f" * 40, branch="faster", position=2, fork=1, committed_at=line[1].committed_at
    )
    builders.create_measured_run(own, case, 0.0005)
    (row,) = client.get(page_of(own)).context["rows"]
    assert row.base.hash == line[1].hash


def test_what_moved_most_stands_first_and_words_filter(client: Client) -> None:
    line = builders.create_measured_commits(2)
    add_case(line, "walker", [0.001, 0.003], seed=3)
    names = [str(row.configuration.case) for row in client.get(page_of(line[1])).context["rows"]]
    assert names[0] == "walker"
    (row,) = client.get(page_of(line[1], "?q=SNAKE")).context["rows"]
    assert str(row.configuration.case).startswith("snake_dqn")
    assert "No case measured here matches" in shown_text(client.get(page_of(line[1], "?q=nothing")))


def test_runs_that_failed_or_are_tainted_say_why(client: Client) -> None:
    line = builders.create_measured_commits(2)
    case = line[0].runs.get().case
    builders.create_run(line[1], case, Run.State.FAILED, failure="crash", reason="Killed.", quick=True)
    builders.create_run(line[1], case, tainted=True, warning_codes=["co_tenant"], version=2)
    shown = shown_text(client.get(page_of(line[1])))
    assert "Killed." in shown
    assert "failed: crash" in shown
    assert "tainted" in shown


def test_what_asked_for_it_and_what_was_left_out(client: Client) -> None:
    line = builders.create_measured_commits(2)
    left_out = [{"reason": "budget", "benchmark": "walker", "commits": 1}]
    trigger = Trigger.objects.create(
        project=line[0].project, source="web", state="resolved", left_out=left_out
    )
    Run.objects.filter(commit=line[1]).update(trigger=trigger)
    assert "the budget of a commit is spent" in shown_text(client.get(page_of(line[1])))


def test_what_is_not_measured_here_can_be_asked_for(signed_in: Client) -> None:
    line = builders.create_measured_commits(2)
    add_case(line, "walker", [0.001, 0])
    shown = shown_text(signed_in.get(page_of(line[1])))
    assert "walker : measured at other commits of main" in shown
    assert "Measure walker here" in shown
    assert "Not measured here" not in shown_text(signed_in.get(page_of(line[0])))


def test_a_prefix_leads_to_the_commit_and_an_unknown_hash_nowhere(client: Client) -> None:
    commit = builders.create_commits(builders.create_project(), 1)[0]
    answer = client.get(f"/projects/snake/commits/{commit.hash[:9]}/")
    assert answer["Location"] == page_of(commit)
    for text in ("0" * 40, commit.hash[:4]):
        assert client.get(f"/projects/snake/commits/{text}/").status_code == 404
    assert "Nothing was measured at this commit yet" in shown_text(client.get(page_of(commit)))


@pytest.mark.parametrize("cases", [3, 20])
def test_it_asks_twelve_questions(
    client: Client, django_assert_num_queries: Callable[[int], Any], cases: int
) -> None:
    line = builders.create_measured_commits(3, step_at=2)
    for number in range(cases):
        add_case(line, f"case-{number}", [0.001, 0.001, 0.0015])
        builders.create_run(line[2], line[0].runs.get(configuration__case__benchmark="snake_dqn").case,
                            Run.State.FAILED, version=number + 2)  # fmt: skip
    series = builders.headline_series(line[0].runs.get(configuration__case__benchmark="snake_dqn").case)
    builders.create_regression(series, line[1], line[2])
    create_ended(line)
    create_check(line)
    with django_assert_num_queries(12):
        assert client.get(page_of(line[2])).status_code == 200
