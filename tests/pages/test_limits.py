"""A crossed limit is seen wherever a regression would be."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.models import Commit, Run
from tests.pages import builders
from tests.pages.test_series import figure

pytestmark = pytest.mark.django_db


@pytest.fixture
def line() -> list[Commit]:
    return list(Commit.objects.filter(project=builders.history(count=3)).order_by("position"))


def crossed(line: list[Commit], maximum: float = 0.001) -> Run:
    """Step times are about 1.05 ms."""
    runs = [commit.runs.get() for commit in line]
    series = builders.headline(runs[0].case)
    for run in runs:
        builders.limit(series, run, maximum if run == runs[-1] else 0.002)
    return runs[-1]


def shown(client: Client, where: str) -> str:
    return " ".join(client.get(where).content.decode().split())


def test_the_overview_and_the_project_tell_it(client: Client, line: list[Commit]) -> None:
    crossed(line)
    assert "crosses its limit: 1.0" in shown(client, "/")
    assert "must be at most 1 ms" in shown(client, "/")
    project = shown(client, "/projects/snake/")
    assert "Crossed limits" in project
    assert "at most 1 ms" in project


def test_a_limit_that_is_kept_is_not_told(client: Client, line: list[Commit]) -> None:
    crossed(line, maximum=0.01)
    assert "Needs you now" in shown(client, "/")
    assert "its limit" not in shown(client, "/")
    assert "Crossed limits" not in shown(client, "/projects/snake/")


def test_the_overview_leaves_it_to_an_open_regression(client: Client, line: list[Commit]) -> None:
    run = crossed(line)
    builders.regression(builders.headline(run.case), line[1], line[2])
    assert "crosses its limit" not in shown(client, "/")
    assert "Crossed limits" in shown(client, "/projects/snake/")


def test_its_series_has_a_line_at_the_bound(client: Client, line: list[Commit]) -> None:
    run = crossed(line)
    where = f"/series/{builders.headline(run.case).pk}/"
    drawn = figure(client, where, "trend")["layout"]
    (bound,) = [shape for shape in drawn["shapes"] if shape["line"]["dash"] == "longdash"]
    assert (bound["x0"], bound["y0"]) == (1.5, pytest.approx(1))
    assert "limit: at most 1 ms" in {text["text"] for text in drawn["annotations"]}
    assert "limit-crossed" in shown(client, where)


def test_a_far_bound_is_named_at_the_edge(client: Client, line: list[Commit]) -> None:
    crossed(line, maximum=1.0)
    where = f"/series/{builders.headline(line[0].runs.get().case).pk}/"
    drawn = figure(client, where, "trend")["layout"]
    assert "shapes" not in drawn
    assert drawn["annotations"][0]["text"] == "limit: at most 1 s \N{UPWARDS ARROW}"
