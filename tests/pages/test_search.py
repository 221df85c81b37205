"""Search, the queue and its expected times, and the button for what is missing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, Experiment, Project, Regression, Run, Trigger
from dashboard.pages.queue import LEAST_FOLDED, NEXT_WAITING, fold_waiting
from dashboard.querysets.queue import MOST_WAITING
from dashboard.querysets.search import find_commits
from dashboard.querysets.visibility import ProjectVisibility, VisibilityRule
from tests.dashboard import factories
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import create_experiment

pytestmark = pytest.mark.django_db


@pytest.fixture
def regression(db: None) -> Regression:
    return builders.create_stepped_regression()


def kinds_found(client: Client, text: str) -> dict[str, list[str]]:
    groups = client.get("/search/", {"q": text}).context["groups"]
    return {group.kind: [hit.name for hit in group.hits] for group in groups}


def test_each_kind_is_found_by_words(client: Client, regression: Regression) -> None:
    builders.create_machine("bench-12")
    assert "snake" in kinds_found(client, "snak")["Projects"]
    assert kinds_found(client, "SNAKE optim")["Cases"] == ["snake_dqn[variant=optimized]"]
    assert kinds_found(client, "stack fram")["Commits"] == [Commit.objects.get(position=2).short]
    assert kinds_found(client, "bench")["Machines"] == ["bench-1", "bench-12"]
    assert kinds_found(client, "step_time")["Regressions"][0].startswith("Step time")
    for text in ("replay push", "trainers/snake_dqn/replay.py:push", "PLAY.py:pu"):
        assert kinds_found(client, text)["Functions"] == ["trainers/snake_dqn/replay.py:push"]
    assert "Functions" not in kinds_found(client, "push:replay.py")
    assert "Nothing is called “nowhere”" in shown_text(client.get("/search/?q=nowhere"))


def test_one_exact_hit_is_shown_at_once(client: Client, regression: Regression) -> None:
    commit = regression.first_bad
    run = commit.runs.get()
    Commit.objects.filter(pk=commit.pk).update(tags=["v1.2"])
    page = f"/projects/snake/commits/{commit.hash}/"
    for text, address in (
        ("snake", "/projects/snake/"),
        (commit.hash[:8], page),
        ("v1.2", page),
        (f"run {run.pk}", run.get_absolute_url()),
        (f"#{run.pk}", run.get_absolute_url()),
        (f"regression {regression.pk}", regression.get_absolute_url()),
        ("bench-1", f"/machines/{run.machine_id}/"),
    ):
        assert client.get("/search/", {"q": text}).get("Location") == address, text


def test_nothing_is_found_that_a_visitor_may_not_view(client: Client, regression: Regression) -> None:
    Project.objects.update(visibility="private")
    run = regression.first_bad.runs.get()
    for text in ("snake", "stack frames", "push", "step time", f"run {run.pk}", regression.first_bad.hash):
        assert not kinds_found(client, text), text
    client.force_login(create_member("viewer", "viewer", regression.project))
    assert kinds_found(client, "stack frames")


def test_commits_are_found_by_indexes(regression: Regression) -> None:
    everyone = ProjectVisibility(VisibilityRule(every=True, own=False, by_token=False), None, None)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    rows: Any = Commit.objects.filter(hash__startswith="abc")
    assert "commit_hash_prefix" in rows.explain()
    assert find_commits(everyone, "stack:*&!", ["stack:*&!"])
    assert not find_commits(everyone, "':!", ["':!"])


def test_the_queue_tells_when_each_run_begins_and_ends(client: Client) -> None:
    line = builders.create_measured_commits(3)
    case = line[0].runs.get().case
    now = timezone.now()
    Run.objects.update(claimed_at=now - timedelta(hours=1), finished_at=now - timedelta(minutes=50))
    builders.create_run(
        line[0], case, Run.State.MEASURING, version=1, quick=False, claimed_at=now, requested_at=now
    )
    for commit in line[1:]:
        builders.create_run(commit, case, Run.State.REQUESTED, requested_at=now)
    walker = builders.create_case(line[0].project, "walker")
    builders.create_run(line[0], walker, Run.State.REQUESTED, requested_at=now, pool=builders.get_pool("gpu"))
    builders.create_machine()
    rows = client.get("/queue/").context["rows"]
    assert [row.takes for row in rows] == [pytest.approx(600), pytest.approx(600), pytest.approx(600), None]
    assert [row.starts for row in rows[:3]] == pytest.approx([0, 600, 1200], abs=30)
    assert [row.ends for row in rows[:3]] == pytest.approx([600, 1200, 1800], abs=30)
    assert (rows[3].starts, rows[3].ends) == (None, None)
    Project.objects.update(visibility="private")
    assert "4 more of projects that you may not view" in shown_text(client.get("/queue/"))


def test_what_waits_begins_after_the_experiment_that_is_measured(client: Client) -> None:
    line = builders.create_measured_commits(2)
    case = line[0].runs.get().case
    run = builders.create_run(line[1], case, Run.State.REQUESTED, requested_at=timezone.now())
    machine = builders.create_machine()
    experiment = create_experiment(line, state="measuring", most_seconds=600, seconds=240, machine=machine)
    answer = client.get("/queue/")
    assert [(row.job, row.starts) for row in answer.context["rows"]] == [(experiment, 0), (run, 360)]
    assert "in 6 min at most" in shown_text(answer)
    Experiment.objects.filter(pk=experiment.pk).update(purpose="proof")
    assert [row.starts for row in client.get("/queue/").context["rows"]] == [0, 360]
    # It gives way to what somebody waits for, and goes on after that.
    asked = Trigger.objects.create(project=line[0].project, source="web", revisions={})
    Run.objects.filter(pk=run.pk).update(trigger=asked)
    first, second = client.get("/queue/").context["rows"]
    assert (second.job, second.starts) == (run, 0)
    assert first.ends == pytest.approx(second.ends + 360)


def test_experiments_wait_in_the_queue_before_runs(client: Client) -> None:
    line = builders.create_measured_commits(2)
    now = timezone.now()
    run = builders.create_run(line[1], line[0].runs.get().case, Run.State.REQUESTED, requested_at=now)
    builders.create_machine()
    create_experiment(line, state="done", question="test", purpose="proof", seconds=90)
    proof = create_experiment(line, question="test", purpose="proof", most_seconds=1200)
    asked = create_experiment(line, question="estimate", purpose="person", most_seconds=600)
    answer = client.get("/queue/")
    rows = answer.context["rows"]
    assert [(row.job, row.starts, row.at_most) for row in rows] == [
        (asked, 0, True),
        (proof, 600, False),
        (run, 690, False),
    ]
    assert f"Experiment #{proof.pk}" in shown_text(answer)
    assert proof.get_absolute_url() in answer.content.decode()


def test_a_run_for_later_holds_up_none_that_may_begin(client: Client) -> None:
    line = builders.create_measured_commits(3)
    case = line[0].runs.get().case
    now = timezone.now()
    Run.objects.update(claimed_at=now - timedelta(hours=1), finished_at=now - timedelta(minutes=50))
    builders.create_machine()
    later, first, second = (
        builders.create_run(commit, case, Run.State.REQUESTED, requested_at=now, priority=priority)
        for commit, priority in zip(line, (5, 0, 0), strict=True)
    )
    Run.objects.filter(pk=later.pk).update(not_before=now + timedelta(minutes=15))
    rows = client.get("/queue/").context["rows"]
    assert [row.job for row in rows] == [first, second, later]
    assert [row.starts for row in rows] == pytest.approx([0, 600, 1200], abs=30)
    # Of the two that may begin one fits in before: the machine waits for neither.
    Run.objects.filter(pk=later.pk).update(not_before=now + timedelta(minutes=5))
    assert [row.job for row in client.get("/queue/").context["rows"]] == [first, later, second]


def test_of_many_that_wait_those_are_listed_that_may_begin(client: Client) -> None:
    (measured,) = builders.create_measured_commits(1)
    configuration, now = measured.runs.get().configuration, timezone.now()
    line = factories.create_commits(measured.project, MOST_WAITING + 1, first=1)
    common = {"configuration": configuration, "project": measured.project, "repetitions": 1, "time_limit": 60}
    later = {"priority": 5, "not_before": now + timedelta(days=1)}
    Run.objects.bulk_create(
        Run(commit=commit, **common, **(later if commit is not line[-1] else {})) for commit in line
    )
    answer = client.get("/queue/")
    rows = answer.context["rows"]
    assert line[-1] in [row.run.commit for row in rows]
    # What begins later is folded, not left out; a few more aren't worth a click.
    shown = answer.context["next_rows"]
    assert (len(shown), [*shown, *answer.context["later_rows"]]) == (NEXT_WAITING, rows)
    assert f"{len(rows) - NEXT_WAITING} more wait" in shown_text(answer)
    assert not fold_waiting(rows[: NEXT_WAITING + LEAST_FOLDED - 1])["later_rows"]


def test_a_run_of_one_machine_is_not_expected_on_another(client: Client) -> None:
    line = builders.create_measured_commits(3)
    now = timezone.now()
    case = line[0].runs.get().case
    away = builders.create_machine("bench-2", state="paused")
    builders.create_run(line[0], case, Run.State.MEASURING, quick=True, claimed_at=now, machine=away)
    kept = builders.create_run(line[1], case, Run.State.REQUESTED, only_on=away, requested_at=now)
    other = builders.create_run(line[2], case, Run.State.REQUESTED, requested_at=now)
    builders.create_machine()
    rows = client.get("/queue/").context["rows"]
    assert [(row.job, row.starts) for row in rows[1:]] == [(other, 0), (kept, None)]


def test_quiet_hours_are_waited_for(client: Client) -> None:
    line = builders.create_measured_commits(2)
    now = timezone.now()
    builders.create_run(line[1], line[0].runs.get().case, Run.State.REQUESTED, requested_at=now)
    builders.create_machine()
    Project.objects.update(quiet_from=now - timedelta(hours=1), quiet_until=now + timedelta(hours=1))
    assert [row.starts for row in client.get("/queue/").context["rows"]] == pytest.approx([3600], abs=30)


def test_a_new_case_is_expected_to_take_as_long_as_others_of_its_pool(client: Client) -> None:
    line = builders.create_measured_commits(2)
    now = timezone.now()
    Run.objects.update(claimed_at=now - timedelta(hours=1), finished_at=now - timedelta(minutes=50))
    walker = builders.create_case(line[0].project, "walker")
    run = builders.create_run(line[1], walker, Run.State.REQUESTED, requested_at=now)
    builders.create_machine()
    assert [row.ends for row in client.get("/queue/").context["rows"]] == pytest.approx([600])
    # Until its progress tells, as on its own page.
    begun = now - timedelta(minutes=5)
    Run.objects.filter(pk=run.pk).update(
        state=Run.State.MEASURING, claimed_at=begun, measuring_at=begun, progress=0.25
    )
    assert [row.ends for row in client.get("/queue/").context["rows"]] == pytest.approx([900], abs=30)


def test_what_is_missing_is_asked_for_by_who_may(client: Client, regression: Regression) -> None:
    Run.objects.filter(commit__position__in=(1, 3)).update(state=Run.State.FAILED)
    page, button = "/projects/snake/commits/", "/projects/snake/measure-missing/"
    assert "2 of the newest 40 commits that were read have no result." in shown_text(client.get(page))
    assert "Measure what is missing" not in shown_text(client.get(page))
    assert client.post(button).status_code == 302
    assert not Trigger.objects.exists()
    client.force_login(create_member("operator", "operator", regression.project))
    assert "Measure what is missing" in shown_text(client.get(page))
    client.post(button)
    asked = {trigger.revisions["commit"] for trigger in Trigger.objects.all()}
    assert asked == set(Commit.objects.filter(position__in=(1, 3)).values_list("hash", flat=True))
    # Until a worker has read these none of them is asked for again.
    assert "Nothing is missing: each of the newest commits" in shown_text(client.post(button, follow=True))
    Trigger.objects.update(state=Trigger.State.REFUSED)
    Commit.objects.filter(position=3).update(manifest_problem="Commit 0123456789 has no paceline.toml.")
    shown = shown_text(client.get(page))
    assert "1 of the newest 40 commits that were read has no result." in shown
    assert "1 has no manifest that can be read" in shown


def test_the_search_of_a_page_holds_what_was_searched_for_alone(signed_in: Client) -> None:
    builders.create_project()
    shown = signed_in.get("/projects/snake/settings/manifest/").content.decode()
    assert 'name="q" value=""' in shown
    assert 'name="q" value="walker"' in signed_in.get("/search/?q=walker").content.decode()


def test_every_page_has_the_search_and_the_keys(client: Client) -> None:
    shown = client.get("/machines/").content.decode()
    assert 'id="site-search"' in shown
    assert 'id="keys"' in shown
