"""The inbox, one regression and the delivery log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.models import Case, Change, Commit, Document, Project, Regression, Run
from dashboard.regressions.explanation.excerpts import changed_lines
from dashboard.sentences.formatting.change_sizes import format_levels
from dashboard.sentences.formatting.numbers import MINUS, format_share
from dashboard.sentences.regressions.alerts import memory_fact
from tests.dashboard import factories
from tests.dashboard.conftest import Repository
from tests.pages import builders
from tests.pages.conftest import get_page
from tests.pages.documents import metric_row
from tests.pages.series.test_series import embedded_figure

pytestmark = pytest.mark.django_db


@pytest.fixture
def regression(db: None) -> Regression:
    return builders.create_stepped_regression()


@pytest.fixture
def repository(tmp_path: Path, settings: Any) -> Repository:
    settings.PACELINE_HOME = tmp_path / "home"
    return Repository(tmp_path / "repository")


def test_an_empty_inbox_says_when_something_appears_there(client: Client) -> None:
    assert "A regression appears here when" in get_page(client, "/regressions/")


def test_the_inbox_says_what_how_much_since_when_and_where(client: Client, regression: Regression) -> None:
    shown = get_page(client, "/regressions/")
    for part in ("Step time", "+38 % [35, 41]", regression.first_bad.short, "learn/push", "suspected"):
        assert part in shown
    assert shown.count(f"{format_levels(regression)}</span>") == 1


def test_levels_that_say_how_much_are_said_once(client: Client, regression: Regression) -> None:
    Regression.objects.update(before=0, after=2, ratio=None)
    regression.refresh_from_db()
    assert get_page(client, "/regressions/").count(f"{format_levels(regression)}</span>") == 1


def test_memory_that_grows_faster_is_told_as_that(client: Client, regression: Regression) -> None:
    growth = factories.get_series(regression.first_bad.runs.get(), "memory_growth")
    change = regression.changes.get()
    change.pk, change.series, change.before, change.after = None, growth, 1.07e6, 975e6
    change.save()
    said = "emory grows by 975 MB/1000 steps, 1.07 MB/1000 steps before"
    assert said in get_page(client, regression.get_absolute_url())
    assert memory_fact(regression) == [("memory", f"m{said}")]
    Change.objects.update(direction="improvement")
    assert "grows by" not in get_page(client, regression.get_absolute_url())


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"state": "confirmed"}, "confirmed"),
        ({"state": "refuted"}, "refuted"),
        ({"withdrawn_at": timezone.now()}, "withdrawn"),
    ],
)
def test_the_inbox_filters_by_state(
    client: Client, regression: Regression, fields: dict[str, object], state: str
) -> None:
    Regression.objects.filter(pk=regression.pk).update(**fields)
    link = f'href="/regressions/{regression.pk}/"'
    assert link in get_page(client, f"/regressions/?state={state}")
    assert (link in get_page(client, "/regressions/")) == (state == "confirmed")
    assert link not in get_page(client, "/regressions/?state=undecided")


def test_a_recovered_regression_names_the_commit_that_repaired_it(
    client: Client, regression: Regression
) -> None:
    regression.recovered_by = Commit.objects.get(position=3)
    regression.save()
    assert f'href="/regressions/{regression.pk}/"' in get_page(client, "/regressions/?state=recovered")
    assert "Repaired by" in get_page(client, f"/regressions/{regression.pk}/")


def test_the_inbox_filters_by_project(client: Client, regression: Regression) -> None:
    builders.create_project("other")
    assert "No open regression in other" in get_page(client, "/regressions/?project=other")
    assert "Step time" in get_page(client, "/regressions/?project=snake")


def test_an_unknown_state_is_refused_with_the_known_ones(client: Client) -> None:
    answer = client.get("/regressions/?state=lost")
    assert answer.status_code == 400
    assert "state must be one of open, suspected" in answer.content.decode()
    assert "No open regression" not in answer.content.decode()


def test_a_command_names_a_project_only_where_it_is_meant(client: Client) -> None:
    for slug in ("snake", "other"):
        builders.create_project(slug)
    assert "manage.py trigger" not in get_page(client, "/regressions/")
    Project.objects.filter(slug="snake").update(repository="git@example.org:snake")
    assert "manage.py trigger snake --last 5" in get_page(client, "/regressions/?project=snake")
    client.force_login(User.objects.create_superuser("ada"))
    assert "Measure the last commits" in get_page(client, "/regressions/?project=snake")


def test_an_unknown_project_is_refused(client: Client) -> None:
    assert client.get("/regressions/", {"project": "nobody"}).status_code == 404


def test_an_interval_without_width_is_left_out(client: Client, regression: Regression) -> None:
    Regression.objects.update(ratio=31.88, low=31.88, high=31.88)
    shown = get_page(client, "/regressions/")
    assert "+3,088 %" in shown
    assert "[3,088" not in shown


def test_a_suspect_shows_its_time_with_and_without_callees(client: Client, regression: Regression) -> None:
    assert "With callees" in get_page(client, f"/regressions/{regression.pk}/")
    suspect = builders.SUSPECT | {"cumulative_before": 0.0123, "cumulative_after": 0.0457}
    Regression.objects.update(suspects=[suspect])
    shown = get_page(client, f"/regressions/{regression.pk}/")
    for part in ("21.0 µs", "390 µs", "12.3 ms", "45.7 ms"):
        assert f">{part}</td>" in shown


def test_a_suspect_that_no_step_calls_has_no_times(client: Client, regression: Regression) -> None:
    unseen = builders.SUSPECT | {"calls_before": 0, "calls_after": 0, "self_before": 0, "self_after": 0}
    Regression.objects.update(suspects=[unseen])
    shown = get_page(client, f"/regressions/{regression.pk}/")
    assert "not called in a step" in shown
    assert ">0 s</td>" not in shown


def test_there_is_no_page_of_an_unknown_regression(client: Client) -> None:
    assert client.get("/regressions/7/").status_code == 404
    assert client.get(f"/regressions/{10**30}/").status_code == 404


def test_a_regression_is_told_in_words(client: Client, regression: Regression) -> None:
    shown = get_page(client, f"/regressions/{regression.pk}/")
    for part in (
        "explains 92 % of it, on the host, which has no device to wait for.",
        "is called 256 times per step instead of 1 and was changed in that commit",
        f"git log -p {regression.last_good.short}..{regression.first_bad.short}",
    ):
        assert part in shown


def test_the_inbox_tells_the_level_of_the_size_that_it_tells(client: Client, regression: Regression) -> None:
    Regression.objects.update(before=0.010, after=0.0138, ratio=1.2, low=1.1, high=1.3)
    assert "10 ms → 12 ms" in get_page(client, "/regressions/")


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (1e-5, "0 %"),
        (-1e-5, "0 %"),
        (0.004, "0.4 %"),
        (0.25, "25 %"),
        (-0.179, "-18 %"),
        (-1.2, "-120 %"),
        (1728 / 1728.000000000005, "100 %"),
        (0.9998, "> 99.9 %"),
    ],
)
def test_a_share_that_is_none_is_told_as_none(part: float, text: str) -> None:
    """And what is less than none with the digits of what is more."""
    assert format_share(part) == text.replace("-", MINUS)


def test_it_shows_which_tensor_operations_grew(client: Client, regression: Regression) -> None:
    where = f"/regressions/{regression.pk}/"
    shown = get_page(client, where)
    row = re.search(r"<tr><td class=\"path\"><code>aten::stack</code>.*?</tr>", shown, re.DOTALL)
    assert row
    cells = ["learn/push", ">1<", ">256<", "11 µs", "230 µs", "61 %"]
    assert [cell for cell in cells if cell not in row[0]] == []
    expected = "Of the tensor operations <code>aten::stack</code> is done 256 times per step instead of once."
    assert expected in shown
    Regression.objects.update(operations=[builders.OPERATION | {"share": 0.1}])
    assert "Of the tensor operations" not in get_page(client, where)
    Regression.objects.update(operations=[])
    assert "Tensor operations" not in get_page(client, where)


def create_exponent_regression(case: Case, name: str) -> Regression:
    """One that went from 1.1 to 1.5, between runs whose sweeps show `learn` growing faster."""
    line = list(Commit.objects.order_by("position"))
    for run in Run.objects.filter(commit__in=line[2:4], configuration__case=case):
        builders.create_points(run, [metric_row(name, "1", "lower", "time", [1.1])])
    series = builders.headline_series(case, name)
    regression = builders.create_regression(series, line[2], line[3], phase="learn", phase_share=1.0)
    for commit, power in ((regression.last_good, 1), (regression.first_bad, 2)):
        points = [
            {
                "value": value,
                "repetition": 0,
                "steps": value,
                "seconds": 0.02 * value,
                "phases": {"learn": 1e-4 * value**power, "act": 1e-4 * value},
            }
            for value in (100, 200, 400)
        ]
        for document in Document.objects.filter(run__points__series=series, run__commit=commit):
            document.body["scaling"] = {"parameter": "episodes", "params": {}, "points": points}
            document.save()
    return regression


def test_a_regression_of_an_exponent_shows_the_largest_loop(client: Client, regression: Regression) -> None:
    regression = create_exponent_regression(regression.series.case, "scaling_exponent")
    where = f"/regressions/{regression.pk}/"
    drawn = embedded_figure(client, where, "phases")
    assert drawn["layout"]["xaxis"]["title"]["text"] == "s of the whole loop with episodes 400, own time"
    assert set(drawn["data"][0]["y"]) == {"learn", "act"}
    shown = get_page(client, where)
    row = re.search(r"<tr><td class=\"path\"><code>learn</code>.*?</tr>", shown, re.DOTALL)
    assert row
    assert [text for text in (">40 ms<", ">16 s<", ">+16.0 s<", ">100 %<") if text not in row[0]] == []
    assert "Own times of the whole loop with episodes 400, the largest value that both" in shown
    assert "+0.32 [0.30, 0.34]" in shown
    assert "went from 1.10 to 1.42" in shown


def test_the_time_per_step_shows_a_step_of_the_largest_loop(client: Client, regression: Regression) -> None:
    regression = create_exponent_regression(regression.series.case, "scaling_exponent_step_time")
    where = f"/regressions/{regression.pk}/"
    title = embedded_figure(client, where, "phases")["layout"]["xaxis"]["title"]["text"]
    assert title == "ms of a step with episodes 400, own time"
    row = re.search(r"<tr><td class=\"path\"><code>learn</code>.*?</tr>", get_page(client, where), re.DOTALL)
    assert row
    assert [text for text in (">100 µs<", ">40 ms<") if text not in row[0]] == []


def test_sweeps_without_common_values_show_no_phases(client: Client, regression: Regression) -> None:
    regression = create_exponent_regression(regression.series.case, "scaling_exponent")
    document = Document.objects.get(run__points__series=regression.series, run__commit=regression.last_good)
    for point in document.body["scaling"]["points"]:
        point["value"] += 1
    document.save()
    assert "have no sweeps with two values in common" in get_page(client, f"/regressions/{regression.pk}/")


def test_the_number_of_steps_has_no_phases(client: Client, regression: Regression) -> None:
    regression = create_exponent_regression(regression.series.case, "scaling_exponent_steps")
    shown = get_page(client, f"/regressions/{regression.pk}/")
    assert "No phase explains how many steps a loop takes" in shown


def test_a_merge_to_blame_names_the_commit_that_it_brought(client: Client, regression: Regression) -> None:
    brought = regression.last_good
    Regression.objects.update(culprit=brought, cause="code")
    text = get_page(client, regression.get_absolute_url())
    assert f"<code>{brought.short}</code>" in text
    assert re.search(rf"merged by <a [^>]*><code>{regression.first_bad.short}</code>", text)


def test_it_shows_the_step_and_the_phases_before_and_after(client: Client, regression: Regression) -> None:
    where = f"/regressions/{regression.pk}/"
    assert "worse +38 %" in embedded_figure(client, where, "step")["layout"]["annotations"][0]["text"]
    traces = embedded_figure(client, where, "phases")["data"]
    assert {trace["name"] for trace in traces} == {"before", "after"}


def test_a_regression_of_a_phase_shows_that_phase(client: Client, regression: Regression) -> None:
    where = f"/regressions/{regression.pk}/"
    whole = embedded_figure(client, where, "phases")["data"][0]["y"]
    inside = [path for path in whole if path.startswith("learn")]
    regression.series.phase = "learn"
    regression.series.save()
    assert embedded_figure(client, where, "phases")["data"][0]["y"] == inside
    assert 0 < len(inside) < len(whole)


def test_a_regression_of_memory_shows_what_each_phase_grew_by(client: Client, regression: Regression) -> None:
    line = list(Commit.objects.order_by("position"))
    memory = builders.headline_series(regression.series.case, "peak_memory")
    regression = builders.create_regression(memory, line[2], line[3], ratio=1.2)
    drawn = embedded_figure(client, f"/regressions/{regression.pk}/", "phases")
    assert drawn["data"][0]["y"] == ["(setup)", "learn/push"]
    assert drawn["layout"]["xaxis"]["title"]["text"] == "MB that the phase grew by"


def test_where_counters_were_taken_over_the_memory_is_that_of_the_counted_commit(
    client: Client, regression: Regression
) -> None:
    line = list(Commit.objects.order_by("position"))
    memory = builders.headline_series(regression.series.case, "peak_memory")
    regression = builders.create_regression(memory, line[2], line[3], ratio=1.2)
    uncounted = Run.objects.filter(commit=line[2], configuration=memory.configuration)
    uncounted.update(counted_at=line[1].hash)
    document = Document.objects.get(run=uncounted.get())
    document.body["metrics"] = [row for row in document.body["metrics"] if row["name"] != "phase_memory"]
    document.save()
    where = f"/regressions/{regression.pk}/"
    assert embedded_figure(client, where, "phases")["data"][0]["y"] == ["(setup)", "learn/push"]
    assert f"measured at <code>{line[1].short}</code>" in get_page(client, where)


def test_without_documents_it_says_how_to_get_them(client: Client, regression: Regression) -> None:
    Document.objects.all().delete()
    assert "Measure both again" not in get_page(client, f"/regressions/{regression.pk}/")
    client.force_login(User.objects.create_superuser("ada"))
    span = f"{regression.last_good.short}~..{regression.first_bad.short}"
    found = f'<a href="/projects/snake/trigger/?which=range&amp;range={span}">Measure both again</a>'
    assert found in client.get(f"/regressions/{regression.pk}/").text
    form = client.get(f"/projects/snake/trigger/?which=range&range={span}").text
    assert f'name="range" value="{span}"' in form


@pytest.mark.parametrize(
    ("state", "part"),
    [("delivered", "delivered"), ("pending", "next at"), ("failed", "did not answer in 10 s")],
)
def test_the_log_says_what_became_of_a_message(
    client: Client, regression: Regression, state: str, part: str
) -> None:
    builders.create_delivery(regression, state)
    log = get_page(client, "/deliveries/")
    assert part in log
    # What was sent said another size, perhaps: no message is kept.
    assert "its size as it is now" in log
    assert part in get_page(client, f"/regressions/{regression.pk}/")


def test_addresses_are_whole_only_for_who_is_signed_in(
    client: Client, signed_in: Client, regression: Regression
) -> None:
    builders.create_delivery(regression)
    builders.create_delivery(regression, kind="webhook", address="https://hooks.example.org/T0/token")
    assert "/T0/token" in get_page(signed_in, "/deliveries/")
    shown = get_page(Client(), "/deliveries/")
    assert "hooks.example.org" in shown
    assert "token" not in shown
    assert "team@" not in shown


def test_an_empty_log_says_what_sends_messages(client: Client) -> None:
    assert "Nothing was sent yet" in get_page(client, "/deliveries/")


def test_the_changed_lines_stand_beside_the_sentence(
    client: Client, regression: Regression, repository: Repository
) -> None:
    good = repository.commit("old", replay_py="def push(batch):\n    keep(batch)\n")
    bad = repository.commit("new", replay_py="def push(batch):\n    for one in batch: keep('<b>', one)\n")
    project = regression.project
    project.repository = str(repository.folder)
    project.save()
    project.mirror.fetch()
    for commit, name in ((regression.last_good, good), (regression.first_bad, bad)):
        Commit.objects.filter(pk=commit.pk).update(hash=name)
    suspects = [builders.SUSPECT | {"file": "replay.py", "line": 1}]
    Regression.objects.update(suspects=suspects, excerpts=changed_lines(project, good, bad, suspects))
    shown = get_page(client, f"/regressions/{regression.pk}/")
    assert 'class="line removed" data-line="2">-     keep(batch)</span>' in shown
    assert "+     for one in batch: keep(&#x27;&lt;b&gt;&#x27;, one)</span>" in shown


def test_without_a_mirror_the_command_is_left(client: Client, regression: Regression) -> None:
    shown = get_page(client, f"/regressions/{regression.pk}/")
    assert "No suspect's lines can be shown" in shown
    assert "git log -p" in shown
