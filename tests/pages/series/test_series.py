"""One series."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Change, Commit, Run, Series
from dashboard.pages.series.trend import environment_markers
from dashboard.querysets.trends import newest_rows
from dashboard.regressions import judge_run
from dashboard.sentences.measurements.environment_changes import describe_differences
from dashboard.sentences.series.doubts import describe_doubts
from tests.dashboard import factories
from tests.pages import builders

pytestmark = pytest.mark.django_db


def embedded_figure(client: Client, where: str, name: str) -> dict[str, Any]:
    shown = client.get(where).content.decode()
    script = re.search(rf'<script type="application/json" id="figure-{name}">(.*?)</script>', shown)
    assert script, f"no figure {name} in {where}"
    figure: dict[str, Any] = json.loads(script[1])
    return figure


@pytest.fixture
def step_time(db: None) -> Series:
    builders.create_history(count=6, step_at=3)
    return builders.headline_series(Series.objects.all()[0].case)


def test_the_trend_links_each_point_to_its_run(client: Client, step_time: Series) -> None:
    drawn = embedded_figure(client, f"/series/{step_time.pk}/", "trend")
    value = next(trace for trace in drawn["data"] if trace["name"] == "value")
    runs = step_time.points.order_by("position").values_list("run", flat=True)
    assert value["customdata"] == [f"/runs/{run}/" for run in runs]


def test_arrays_travel_as_typed_arrays(client: Client, step_time: Series) -> None:
    drawn = embedded_figure(client, f"/series/{step_time.pk}/", "trend")
    assert {"dtype", "bdata"} <= drawn["data"][-1]["y"].keys()


def test_a_change_is_marked_and_listed(client: Client, step_time: Series) -> None:
    line = list(Commit.objects.order_by("position"))
    regression = builders.create_regression(step_time, line[2], line[3])
    where = f"/series/{step_time.pk}/"
    assert "worse +38 %" in embedded_figure(client, where, "trend")["layout"]["annotations"][0]["text"]
    assert f">regression {regression.pk}</a>" in client.get(where).content.decode()


def test_tainted_points_alone_have_no_level(client: Client, step_time: Series) -> None:
    step_time.points.update(tainted=True)
    shown = client.get(f"/series/{step_time.pk}/").content.decode()
    assert "All runs shown are tainted: no changes are looked for" in shown
    assert "one level" not in shown


def test_why_a_point_is_tainted_has_the_room_of_its_commit(client: Client, step_time: Series) -> None:
    """A column of its runs would be a word or two wide on a phone."""
    step_time.points.update(tainted=True)
    Run.objects.update(warning_codes=["co_tenant"])
    shown = client.get(f"/series/{step_time.pk}/").content.decode()
    cells = re.findall(r'<td class="subject">(.*?)</td>', shown)
    assert len(cells) == 6
    assert all("another process computed on the device" in cell for cell in cells)


def test_a_series_of_one_run_cannot_have_a_step_yet(client: Client, step_time: Series) -> None:
    assert "No step was found" in client.get(f"/series/{step_time.pk}/").content.decode()
    assert "One run so far" not in client.get(f"/series/{step_time.pk}/?show=1").content.decode()
    step_time.points.exclude(position=0).delete()
    assert "One run so far: a step needs" in client.get(f"/series/{step_time.pk}/").content.decode()


def test_how_many_runs_and_up_to_which_is_in_the_address(client: Client, step_time: Series) -> None:
    shown = client.get(f"/series/{step_time.pk}/?show=2&until=3")
    assert [row["point"].position for row in shown.context["rows"]] == [3, 2]
    assert "until=1" in shown.content.decode()


def test_points_of_other_branches_are_left_out(client: Client, step_time: Series) -> None:
    Commit.objects.filter(position=5).update(branch="feature")
    shown = client.get(f"/series/{step_time.pk}/")
    assert 5 not in [row["point"].position for row in shown.context["rows"]]


def test_without_points_it_says_what_to_type(client: Client, step_time: Series) -> None:
    step_time.points.all().delete()
    shown = client.get(f"/series/{step_time.pk}/").content.decode()
    assert "manage.py trigger snake --last 10 --benchmark snake_dqn" in shown


def test_a_number_that_is_none_is_refused_by_its_name(client: Client, step_time: Series) -> None:
    answer = client.get(f"/series/{step_time.pk}/?show=many")
    assert answer.status_code == 400
    assert "show must be a whole number" in answer.content.decode()
    exported = client.get(f"/series/{step_time.pk}/points.csv?show=many")
    assert (exported.status_code, exported["Content-Type"]) == (400, "application/problem+json")
    assert exported.json()["detail"] == "show must be a whole number."


UPGRADES = [
    ({"torch": "2.14.0"}, "torch", "torch 2.13.0 → 2.14.0"),
    ({"python": "3.12.1"}, "python", "python 3.11.2 → 3.12.1"),
    ({"packages": {"numpy": "2.5.0"}}, "numpy", "numpy 2.4.6 → 2.5.0"),
    ({"driver": "560.2"}, "driver", "driver 550.1 → 560.2"),
    ({"harness": "0.2.0"}, "harness", "harness 0.1.0 → 0.2.0"),
    ({"machine": "bench-2"}, "machine", "machine bench-1 → bench-2"),
    (
        {"driver": "560.2", "torch": "2.14.0", "packages": {"numpy": "2.5.0", "pillow": "12.0"}},
        "driver + 3",
        "driver 550.1 → 560.2, torch 2.13.0 → 2.14.0, numpy 2.4.6 → 2.5.0, pillow none → 12.0",
    ),
]


@pytest.mark.parametrize(("upgrade", "label", "text"), UPGRADES)
def test_an_upgrade_draws_a_marker_and_judgement_says_the_same(
    client: Client, upgrade: dict[str, Any], label: str, text: str
) -> None:
    run = measure_upgrade(upgrade, at=5)
    judge_run(run.pk)
    change = Change.objects.get(series__metric__name="step_time", series__phase="")
    where = f"/series/{change.series_id}/"
    layout = embedded_figure(client, where, "trend")["layout"]
    assert label in [annotation["text"] for annotation in layout["annotations"]]
    assert [shape["x0"] for shape in layout["shapes"]] == [4.5]
    shown = html.unescape(client.get(where).content.decode())
    assert f'<span class="small">{text}</span>' in shown
    assert describe_differences(change.markers) == text
    assert any(text in doubt for doubt in describe_doubts(change))


def measure_upgrade(upgrade: dict[str, Any], at: int) -> Run:
    """The last of ten runs that became slower at the commit from which on they had another environment."""
    project = factories.create_project()
    case = factories.create_case(project)
    environment = {"python": "3.11.2", "torch": "2.13.0", "driver": "550.1", "packages": {"numpy": "2.4.6"}}
    for commit, value in zip(
        factories.create_commits(project, 10),
        factories.noisy_levels((at, 0.010), (10 - at, 0.014)),
        strict=True,
    ):
        values = environment | {"harness": "0.1.0", "machine": "bench-1"}
        if commit.position >= at:
            values |= upgrade
        machine = builders.create_machine(values.pop("machine"))
        run = factories.store_measured_run(
            commit, case, {"step_time": value}, machine=machine, environment=values,
            document={"harness": {"version": values.pop("harness")}},
        )  # fmt: skip
    return run


@pytest.mark.django_db
def test_machines_that_take_turns_are_marked_once() -> None:
    case = factories.create_case(factories.create_project())
    machines = [builders.create_machine(name) for name in ("bench-1", "bench-2")]
    for commit in factories.create_commits(case.project, 8):
        packages = {"numpy": "2" if commit.position > 4 else "1"}
        packages |= {"tqdm": "4.70"} if commit.position % 2 else {}
        values = {"driver": "570" if commit.position == 7 else "550", "packages": packages}
        factories.store_measured_run(
            commit, case, {"step_time": 0.01}, machine=machines[commit.position % 2], environment=values
        )
    rows = newest_rows(Series.objects.get(metric__name="step_time"), "main", 1000)
    markers = environment_markers(rows)
    assert [(marker.position, marker.label) for marker in markers] == [
        *((1, "tqdm + 1"), (5, "numpy"), (7, "driver")),
    ]


def test_runs_of_the_same_environment_are_not_read(step_time: Series, django_assert_num_queries: Any) -> None:
    rows = newest_rows(step_time, "main", 1000)
    with django_assert_num_queries(0):
        assert environment_markers(rows) == []
