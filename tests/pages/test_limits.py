"""A crossed limit is seen wherever a regression would be."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from dashboard.alerts.kinds.email import compose_email
from dashboard.alerts.kinds.payload import alert_payload
from dashboard.models import Commit, Regression, Run
from tests.pages import builders
from tests.pages.series.test_series import embedded_figure

pytestmark = pytest.mark.django_db


@pytest.fixture
def line() -> list[Commit]:
    return builders.create_measured_commits(3)


def create_crossed_limit(line: list[Commit], maximum: float = 0.001) -> Run:
    """Step times are about 1.05 ms."""
    runs = [commit.runs.get() for commit in line]
    series = builders.headline_series(runs[0].case)
    for run in runs:
        builders.create_limit(series, run, maximum if run == runs[-1] else 0.002)
    return runs[-1]


def get_page(client: Client, where: str) -> str:
    return " ".join(client.get(where).content.decode().split())


def test_the_overview_and_the_project_tell_it(client: Client, line: list[Commit]) -> None:
    create_crossed_limit(line)
    assert "crosses its limit: 1.0" in get_page(client, "/")
    assert "must be at most 1 ms" in get_page(client, "/")
    project = get_page(client, "/projects/snake/")
    assert "Crossed limits" in project
    assert "at most 1 ms" in project


def test_a_limit_that_is_kept_is_not_told(client: Client, line: list[Commit]) -> None:
    create_crossed_limit(line, maximum=0.01)
    assert "Needs you now" in get_page(client, "/")
    assert "its limit" not in get_page(client, "/")
    assert "Crossed limits" not in get_page(client, "/projects/snake/")


def test_the_overview_leaves_it_to_an_open_regression(client: Client, line: list[Commit]) -> None:
    run = create_crossed_limit(line)
    builders.create_regression(builders.headline_series(run.case), line[1], line[2])
    assert "crosses its limit" not in get_page(client, "/")
    assert "Crossed limits" in get_page(client, "/projects/snake/")


def test_its_series_has_a_line_at_the_bound(client: Client, line: list[Commit]) -> None:
    run = create_crossed_limit(line)
    where = f"/series/{builders.headline_series(run.case).pk}/"
    drawn = embedded_figure(client, where, "trend")["layout"]
    (bound,) = [shape for shape in drawn["shapes"] if shape["line"]["dash"] == "longdash"]
    assert (bound["x0"], bound["y0"]) == (1.5, pytest.approx(1))
    assert "limit: at most 1 ms" in {text["text"] for text in drawn["annotations"]}
    assert "limit-crossed" in get_page(client, where)


def test_the_regression_that_tells_it_says_the_bound(client: Client, line: list[Commit]) -> None:
    run = create_crossed_limit(line)
    regression = builders.create_regression(builders.headline_series(run.case), line[1], line[2])
    regression.limits.add(*run.limits.all())
    assert re.search(
        r"<p>Step time is [\d.]+ ms, its limit is at most 1 ms\.</p>",
        get_page(client, regression.get_absolute_url()),
    )


def test_a_limit_alone_is_told_by_its_bound_in_subject_and_title(line: list[Commit]) -> None:
    run = create_crossed_limit(line)
    regression = builders.create_regression(builders.headline_series(run.case), line[1], line[2])
    regression.changes.all().delete()
    regression.limits.add(*run.limits.all())
    delivery = builders.create_delivery(regression)
    for text in (compose_email(delivery).subject, alert_payload(delivery)["title"]):
        assert re.search(rf"step time [\d.]+ ms \(limit 1 ms\) since {line[2].short}", text)
        assert "+38 %" not in text


def test_a_limit_alone_is_not_called_an_exact_counter(client: Client, line: list[Commit]) -> None:
    run = create_crossed_limit(line)
    regression = builders.create_regression(builders.headline_series(run.case), line[1], line[2])
    Regression.objects.update(state="confirmed")
    where = f"/regressions/{regression.pk}/"
    assert "Exact counters need no second measurement" in get_page(client, where)
    regression.limits.add(*run.limits.all())
    regression.changes.all().delete()
    page = get_page(client, where)
    assert "Exact counters" not in page
    assert "The limit of the manifest is the judgement" in page


def test_a_far_bound_is_named_at_the_edge(client: Client, line: list[Commit]) -> None:
    create_crossed_limit(line, maximum=1.0)
    where = f"/series/{builders.headline_series(line[0].runs.get().case).pk}/"
    drawn = embedded_figure(client, where, "trend")["layout"]
    assert "shapes" not in drawn
    assert drawn["annotations"][0]["text"] == "limit: at most 1 s \N{UPWARDS ARROW}"
