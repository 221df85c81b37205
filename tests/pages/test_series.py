"""One series."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Commit, Run, Series
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


def test_a_series_of_one_run_cannot_have_a_step_yet(client: Client, step_time: Series) -> None:
    assert "No step was found" in client.get(f"/series/{step_time.pk}/").content.decode()
    assert "One run so far" not in client.get(f"/series/{step_time.pk}/?show=1").content.decode()
    step_time.points.exclude(position=0).delete()
    assert "One run so far: a step needs" in client.get(f"/series/{step_time.pk}/").content.decode()


def test_how_many_runs_and_up_to_which_is_in_the_address(client: Client, step_time: Series) -> None:
    shown = client.get(f"/series/{step_time.pk}/?show=2&until=3")
    assert [point.position for point in shown.context["points"]] == [3, 2]
    assert "until=1" in shown.content.decode()


def test_points_of_other_branches_are_left_out(client: Client, step_time: Series) -> None:
    Commit.objects.filter(position=5).update(branch="feature")
    shown = client.get(f"/series/{step_time.pk}/")
    assert 5 not in [point.position for point in shown.context["points"]]


def test_without_points_it_says_what_to_type(client: Client, step_time: Series) -> None:
    step_time.points.all().delete()
    shown = client.get(f"/series/{step_time.pk}/").content.decode()
    assert "manage.py trigger snake --last 10 --benchmark snake_dqn" in shown


def test_a_number_that_is_none_is_refused_by_its_name(client: Client, step_time: Series) -> None:
    answer = client.get(f"/series/{step_time.pk}/?show=many")
    assert answer.status_code == 404
    assert "show must be a whole number" in answer.content.decode()


def test_another_machine_draws_a_marker_that_no_commit_is_blamed_for(
    client: Client, step_time: Series
) -> None:
    Run.objects.update(fingerprint={"kernel": "6.1", "cpu_model": "EPYC"})
    Run.objects.filter(commit__position__gte=4).update(fingerprint={"kernel": "6.9", "cpu_model": "EPYC"})
    where = f"/series/{step_time.pk}/"
    layout = embedded_figure(client, where, "trend")["layout"]
    assert [shape["x0"] for shape in layout["shapes"]] == [3.5]
    assert "kernel 6.1 → 6.9" in client.get(where).content.decode()
