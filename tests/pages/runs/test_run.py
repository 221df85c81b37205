"""One run, in each of its states."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, Document, Point, Run, RunLog
from dashboard.pages.runs.summary import largest_phases
from dashboard.repositories import DETACHED
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.series.test_series import embedded_figure

pytestmark = pytest.mark.django_db


@pytest.fixture
def measured(db: None) -> Run:
    project = builders.create_project()
    case = builders.create_case(project, variant="optimized")
    return builders.create_measured_run(builders.create_commits(project, 1)[0], case, 0.001)


def get_page(client: Client, run: Run, query: str = "") -> str:
    return client.get(f"/runs/{run.pk}/{query}").content.decode()


@pytest.mark.parametrize(
    "part",
    [
        "Phases",
        "Over time",
        "Metrics",
        "Counters",
        "Profile",
        "Environment",
        "Log",
        "replay.py:31",
        "AMD EPYC",
    ],
)
def test_a_run_that_is_done_shows_all_that_was_measured(client: Client, measured: Run, part: str) -> None:
    assert part in get_page(client, measured)


def test_its_phases_are_a_flame_chart(client: Client, measured: Run) -> None:
    (bars,) = embedded_figure(client, f"/runs/{measured.pk}/", "flame")["data"]
    assert "backward  24 %" in bars["text"]
    assert "It is the repetition with the median step" in get_page(client, measured)


def test_start_up_warm_up_and_window_are_bands(client: Client, measured: Run) -> None:
    window, startup, warmup = embedded_figure(client, f"/runs/{measured.pk}/", "telemetry")["layout"][
        "shapes"
    ]
    assert (window["x0"], window["x1"]) == (3.2, 14.8)
    assert (startup["name"], startup["x0"], startup["x1"]) == ("start-up", 0, 2.1)
    assert (warmup["name"], warmup["x0"], warmup["x1"]) == ("warm-up", pytest.approx(2.2, abs=0.05), 3.2)


def test_repetitions_can_be_laid_over_each_other(client: Client, measured: Run) -> None:
    alone = embedded_figure(client, f"/runs/{measured.pk}/", "telemetry")
    drawn = embedded_figure(client, f"/runs/{measured.pk}/?repetition=all", "telemetry")
    assert drawn["layout"]["hoversubplots"] == "axis"
    behind = [trace["name"] for trace in drawn["data"] if trace.get("opacity") == 0.4]
    assert sorted(behind) == sorted(f"{trace['name']}, repetition 1" for trace in alone["data"])


def test_which_repetition_is_shown_is_in_the_address(client: Client, measured: Run) -> None:
    assert 'repetition=1#time" aria-current' in get_page(client, measured, "?repetition=1")
    assert "has no such repetition" in get_page(client, measured, "?repetition=77")


def test_metrics_link_to_their_series(client: Client, measured: Run) -> None:
    assert f'href="/series/{builders.headline_series(measured.case).pk}/"' in get_page(client, measured)


def test_a_phase_that_holds_others_is_told_by_itself() -> None:
    rows = [("learn", 0.5), ("learn/push", 0.1), ("act", 0.4)]
    document = {"phases": [{"path": path, "self": seconds, "thread": "main"} for path, seconds in rows]}
    assert largest_phases(document) == [("learn itself", 0.5), ("act", 0.4)]


def test_the_largest_phases_are_told_by_medians_over_repetitions() -> None:
    rows = [("backward", 2.0, "main"), ("act", 6.0, "main"), ("act", 1.0, "loader"), ("log", 2.0, "main")]
    phases = [{"path": path, "self": seconds, "thread": thread} for path, seconds, thread in rows]
    medians = {"step_time": [(None, 8.0)], "phase_self_time": [("backward", 4.0), ("act", 3.0)]}
    metrics = [
        {"name": name, "phase": phase, "value": value}
        for name, values in medians.items()
        for phase, value in values
    ]
    # What another thread does by the same name is in the metric, and not in the step.
    assert largest_phases({"phases": phases, "metrics": metrics}) == [("act", 0.75), ("backward", 0.5)]


def test_the_story_sets_a_run_beside_the_one_before_it(client: Client) -> None:
    line = builders.create_measured_commits(3, step_at=2)
    first, second, third = (commit.runs.get() for commit in line)
    shown = shown_text(client.get(f"/runs/{third.pk}/"))
    assert (
        f"Beside the case's run before, #{second.pk} at {second.commit.short}, throughput is worse" in shown
    )
    assert "step time is worse (+3" in shown
    assert "learn/backward takes 24 % of a step, learn/forward 16 %." in shown
    assert "no headline metric differs by more than its interval" in get_page(client, second)
    assert "No run of this case came before it on main." in get_page(client, first)
    # As a comparison of the two says, three repetitions don't tell.
    for point in Point.objects.filter(run=second):
        Point.objects.filter(pk=point.pk).update(samples=point.samples[:3])
    shown = shown_text(client.get(f"/runs/{third.pk}/"))
    assert "is worse" not in shown
    assert "may differ by chance: runs of fewer than 4 repetitions don't tell." in shown
    Commit.objects.update(branch=DETACHED)
    assert "took its commit off its branch, so that no run stands before it." in get_page(client, third)


def test_beside_a_tainted_run_nothing_is_told_of_what_it_taints(client: Client) -> None:
    line = builders.create_measured_commits(2, step_at=1)
    Point.objects.filter(run__commit=line[0], series__metric__name="step_time").update(tainted=True)
    shown = shown_text(client.get(f"/runs/{line[1].runs.get().pk}/"))
    assert "throughput is worse" in shown
    assert "; step time can't be determined: a warning keeps one of the two out of judgement." in shown
    assert "step time is worse" not in shown


def test_it_leads_to_the_case_s_runs_before_and_after_it(client: Client) -> None:
    first, second, third = (commit.runs.get() for commit in builders.create_measured_commits(3))
    shown = get_page(client, second)
    assert f'href="/runs/{first.pk}/" rel="prev" data-key="["' in shown
    assert f'href="/runs/{third.pk}/" rel="next" data-key="]"' in shown
    assert 'rel="next"' not in get_page(client, third)


def test_its_document_is_a_file_that_compare_reads(client: Client, measured: Run) -> None:
    answer = client.get(f"/runs/{measured.pk}/document/")
    assert answer["Content-Disposition"] == f'attachment; filename="paceline-run-{measured.pk}.json"'
    assert json.loads(answer.content) == Document.objects.get(run=measured).body
    assert (
        client.get(f"/runs/{builders.create_run(measured.commit, measured.case).pk}/document/").status_code
        == 404
    )


def test_it_gives_the_command_that_measures_the_same(client: Client, measured: Run) -> None:
    shown = get_page(client, measured)
    assert f"git checkout {measured.commit.hash}" in shown
    assert "python -m paceline run snake_dqn --set variant=optimized --exact --repetitions 5" in shown


def test_a_parameter_with_a_quote_is_quoted_for_the_shell(client: Client) -> None:
    run = builders.create_only_run(Run.State.DONE)
    run.case.params = {"name": "it's $HOME", "flag": True}
    run.case.save()
    shown = get_page(client, run).replace("&#x27;", "'").replace("&quot;", '"')
    assert """--set flag=true --set 'name=it'"'"'s $HOME'""" in shown


@pytest.mark.parametrize(("code", "part"), [("throttled", "its times"), ("memory_pressure", "the run")])
def test_warnings_come_with_advice(client: Client, measured: Run, code: str, part: str) -> None:
    document = Document.objects.get(run=measured)
    document.body["warnings"] = [
        {"code": code, "message": "the clock fell", "advice": "cool the machine", "taints": True}
    ]
    Run.objects.filter(pk=measured.pk).update(tainted=True)
    document.save()
    shown = get_page(client, measured)
    assert "The clock fell" in shown
    assert "Cool the machine" in shown
    assert f"keeps {part} out of judgement" in shown
    assert f"A warning keeps {part} out of judgement." in shown


@pytest.mark.parametrize(
    "missing", ["phases", "profile", "telemetry", "repetitions", "metrics", "environment"]
)
def test_a_document_without_a_part_still_makes_a_page(client: Client, measured: Run, missing: str) -> None:
    document = Document.objects.get(run=measured)
    document.body[missing] = {} if missing == "environment" else None if missing == "profile" else []
    document.save()
    assert client.get(f"/runs/{measured.pk}/").status_code == 200


@pytest.mark.parametrize(
    ("failure", "advice"), [("timeout", "10 min"), ("crash", "end of the log"), ("lost", "vanished")]
)
def test_a_failed_run_says_why_and_what_to_do(client: Client, failure: str, advice: str) -> None:
    run = builders.create_only_run(Run.State.FAILED, failure=failure, reason="It stopped at step 7.")
    RunLog.objects.create(run=run, text="ValueError: no steps")
    shown = get_page(client, run)
    assert "It stopped at step 7." in shown
    assert advice in shown
    assert "ValueError: no steps" in shown


def test_an_active_run_asks_for_its_state_again_and_reloads_without_scripts(client: Client) -> None:
    run = builders.create_only_run(Run.State.MEASURING, progress=0.43, activity="repetition 3 of 5")
    shown = get_page(client, run)
    assert f'hx-get="/runs/{run.pk}/status/"' in shown
    assert '<noscript><meta http-equiv="refresh"' in shown
    assert "Repetition 3 of 5" in shown


def test_a_waiting_run_misses_a_worker_only_where_none_lives(client: Client) -> None:
    run = builders.create_only_run(Run.State.REQUESTED, requested_at=timezone.now() - timedelta(minutes=9))
    builders.create_machine(seen=timedelta(minutes=2))
    shown = get_page(client, run)
    assert "</code> for 9 min" in shown
    assert "No active machine of this pool was seen" in shown
    builders.create_machine()
    shown = get_page(client, run)
    assert "its turn comes after the runs before it" in shown
    assert "No active machine" not in shown


def test_the_state_is_a_part_of_a_page_while_the_run_is_active(client: Client) -> None:
    run = builders.create_only_run(Run.State.MEASURING, progress=0.43)
    RunLog.objects.create(run=run, text="step 100")
    shown = client.get(f"/runs/{run.pk}/status/").content.decode()
    assert "<html" not in shown
    assert 'value="0.43"' in shown
    assert "step 100" in shown


def test_the_page_is_loaded_again_once_the_run_has_ended(client: Client) -> None:
    assert client.get(f"/runs/{builders.create_only_run(Run.State.DONE).pk}/status/")["HX-Refresh"] == "true"


def test_a_long_log_is_shown_from_its_end_and_served_whole_as_text(client: Client) -> None:
    run = builders.create_only_run(Run.State.FAILED)
    RunLog.objects.create(run=run, text="the beginning\n" + "x" * 40_000 + "\nthe end")
    assert "the beginning" not in get_page(client, run)
    log = client.get(f"/runs/{run.pk}/log/")
    assert log["Content-Type"].startswith("text/plain")
    assert log.content.startswith(b"the beginning")


def test_a_signed_in_person_cancels_an_active_run(signed_in: Client) -> None:
    run = builders.create_only_run(Run.State.REQUESTED)
    assert "Cancel this run" in get_page(signed_in, run)
    signed_in.post(f"/runs/{run.pk}/cancel/")
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED


def test_cancelling_what_has_ended_changes_nothing(signed_in: Client) -> None:
    run = builders.create_only_run(Run.State.DONE)
    shown = signed_in.post(f"/runs/{run.pk}/cancel/", follow=True).content.decode()
    assert "had already ended: it is done" in shown


def test_nobody_else_cancels_a_run(client: Client) -> None:
    run = builders.create_only_run(Run.State.REQUESTED)
    assert client.post(f"/runs/{run.pk}/cancel/")["Location"].startswith("/sign-in/")
    client.force_login(User.objects.create_user("viewer"))
    answer = client.post(f"/runs/{run.pk}/cancel/")
    assert answer.status_code == 403
    assert "You can view snake but not act in it" in answer.content.decode()
    run.refresh_from_db()
    assert run.state == Run.State.REQUESTED


def test_a_run_whose_document_was_dropped_keeps_its_values(client: Client, measured: Run) -> None:
    Document.objects.filter(run=measured).delete()
    RunLog.objects.filter(run=measured).delete()
    page = shown_text(client.get(measured.get_absolute_url()))
    assert "The document, profile and telemetry of a run this old aren't kept" in page
    assert re.search(r"Throughput [\d,]+ steps/s \[", page)
    assert "The log of a run this old isn't kept." in page
    # Other tools tell none.
    Point.objects.filter(run=measured).update(low=None, high=None)
    page = shown_text(client.get(measured.get_absolute_url()))
    assert "Metric Value Throughput" in page
