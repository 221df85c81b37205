"""The grid of cases, the heat map and the noise: of three cases and of three hundred."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, Metric, Project, Series, SeriesLatest
from dashboard.pages.projects import case_grid
from dashboard.pages.projects.heatmap import TAINTED, HeatCell, shade_value
from dashboard.querysets.case_grid import read_case_states
from dashboard.sentences.formatting.numbers import MINUS, format_signed_quantity
from tests.pages import builders
from tests.pages.case_builders import create_cases
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

LIMIT = 150_000


@pytest.mark.parametrize("count", [3, 300])
def test_every_page_of_cases_is_bounded(
    client: Client, django_assert_num_queries: Callable[[int], Any], count: int
) -> None:
    create_cases(count)
    # Where few cases are shown each says what step it would find; of many calm ones no points are read.
    grid = 9 + (count < 12)
    for where, queries in (("", grid), ("?sort=moved&group=benchmark", grid), ("heatmap/", 4), ("noise/", 3)):
        with django_assert_num_queries(queries):
            answer = client.get(f"/projects/snake/{where}")
        assert answer.status_code == 200
        assert len(answer.content) < LIMIT, where


def shown_cases(client: Client, query: str) -> list[str]:
    return [str(row.state.case) for row in client.get(f"/projects/snake/?{query}").context["rows"]]


def test_words_sort_and_group_are_in_the_address(client: Client) -> None:
    create_cases(30)
    assert shown_cases(client, "")[0] == "mario[batch=029]"
    assert shown_cases(client, "sort=name")[0] == "mario[batch=002]"
    assert shown_cases(client, "q=SNAKE 02&sort=name") == [
        "snake[batch=021]",
        "snake[batch=024]",
        "snake[batch=027]",
    ]
    grouped = client.get("/projects/snake/?group=benchmark")
    assert [row.group for row in grouped.context["rows"]][::10] == ["mario", "snake", "walker"]
    assert f"mario: 10 cases, {MINUS}1.6 % in the mean" in shown_text(grouped)
    assert "No case has the words “nothing”" in shown_text(client.get("/projects/snake/?q=nothing"))


def test_what_moved_is_told_with_its_direction(client: Client) -> None:
    create_cases(30)
    row = client.get("/projects/snake/?q=029").context["rows"][0]
    assert (row.moved.text, row.word) == (f"{MINUS}2.9 %", "worse")
    row = client.get("/projects/snake/?q=029&metric=step_time").context["rows"][0]
    assert row.word == "better"


def test_what_rounds_to_nothing_has_no_direction(client: Client) -> None:
    create_cases(3, current_value=100.02)
    shown = shown_text(client.get("/projects/snake/?metric=step_time"))
    assert "0 %" in shown
    assert "0 % worse" not in shown


@pytest.mark.parametrize(
    ("metric", "base", "current", "movement", "word"),
    [
        ("step_time", 0.010, 0.011, "+10 %", "worse"),
        ("memory_growth", 1000.0, 3000.0, "+2 kB", "worse"),
        ("memory_growth", -1000.0, -500.0, "+500 B", "worse"),
        ("memory_growth", 500.0, -500.0, f"{MINUS}1 kB", "better"),
        ("memory_growth", 5.0, 5.0, "0", ""),
        ("host_device_copies", 0.0, 4.0, "+4", "worse"),
        ("phase_memory", -2000.0, -1000.0, "+1 kB", "worse"),
    ],
)
def test_what_may_be_below_zero_moves_by_its_difference(
    metric: str, base: float, current: float, movement: str, word: str
) -> None:
    unit = "bytes" if "memory" in metric else "s" if "time" in metric else ""
    moved = case_grid.measure_movement(metric, unit, base, current)
    assert moved is not None
    assert (moved.text, case_grid.describe_direction(moved.distance, "lower")) == (movement, word)


def test_a_group_of_differences_has_their_mean(client: Client) -> None:
    create_cases(30)
    rows = client.get("/projects/snake/?q=01").context["rows"]
    distances = (case_grid.Movement(-2.0, True, ""), case_grid.Movement(4.0, True, ""), None)
    moved = [replace(row, moved=distance) for row, distance in zip(rows, distances, strict=False)]
    unit = rows[0].state.unit
    assert case_grid.mean_movement(moved, "memory_growth") == format_signed_quantity(1.0, unit)
    assert case_grid.mean_movement(moved[2:], "memory_growth") == ""
    # Of what has ratios, those without one are left out.
    assert case_grid.mean_movement(moved, "step_time") == ""


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"current_value": None}, "not enough data: no untainted value, newest within a day"),
        ({"base_value": None, "recent": [1.0, 1.0]}, "not enough data: 2 of 5 values, newest within a day"),
        ({"base_value": None}, "nothing 30 days before to compare"),
    ],
)
def test_too_little_data_is_a_state_with_its_reason(
    client: Client, fields: dict[str, Any], sentence: str
) -> None:
    create_cases(1, **fields)
    assert sentence in shown_text(client.get("/projects/snake/"))


def test_of_many_metrics_those_of_most_cases_are_columns(client: Client) -> None:
    create_cases(3)
    latest = SeriesLatest.objects.select_related("series__configuration").order_by("pk")[0]
    configuration = latest.series.configuration
    for name in ("gauge.a", "gauge.b", "gauge.c", "gauge.d"):
        metric = Metric.objects.create(name=name, unit="1", better="lower", kind="time")
        latest.series = Series.objects.create(configuration=configuration, metric=metric, headline=True)
        latest.save(force_insert=True)
    answer = client.get("/projects/snake/")
    assert answer.context["columns"] == ["Throughput", "Step time", "Peak memory"]
    assert "Fewer cases have a (gauge) , b (gauge) , c (gauge) or d (gauge)" in shown_text(answer)
    assert 'href="?metric=gauge.d"' in answer.text


def test_what_was_not_measured_for_long_says_so(client: Client) -> None:
    create_cases(1)
    SeriesLatest.objects.update(updated_at=timezone.now() - timedelta(days=20))
    assert "not measured for 20 d" in shown_text(client.get("/projects/snake/"))


def test_a_chosen_base_is_a_tag_or_a_hash(client: Client) -> None:
    line = builders.create_measured_commits(4, step_at=2)
    Commit.objects.filter(pk=line[1].pk).update(tags=["v1"])
    SeriesLatest.objects.update(current_value=1.0)
    for base in ("v1", line[1].hash[:8]):
        answer = client.get(f"/projects/snake/?base={base}")
        assert answer.context["base_commit"].pk == line[1].pk
        assert answer.context["rows"][0].moved
    refused = client.get("/projects/snake/?metric=xx").context["grid_refused"]
    assert refused.count("step_time,") == 1
    for query in ("base=v9", "metric=speed", "sort=up", "group=colour"):
        answer = client.get(f"/projects/snake/?{query}")
        assert (answer.status_code, query.split("=")[0] in answer.context["grid_refused"]) == (400, True)


@pytest.mark.parametrize("page", ["/projects/snake/", "/"])
def test_the_value_of_a_tainted_run_is_not_shown_as_the_newest(client: Client, page: str) -> None:
    create_cases(1, recent=[100.0, 110.0, 999.0], recent_machines=[1, 1, None])
    answer = client.get(page)
    assert "2 newest values, between 100" in answer.text
    assert "; 1 tainted left out" in answer.text
    # Where it isn't the number of a run.
    newest = re.compile(r"(?<![#\d])999")
    assert not newest.search(shown_text(answer))
    SeriesLatest.objects.update(value=999.0, recent_machines=[None] * 3, current_value=None)
    assert "tainted" in shown_text(client.get(page))
    assert newest.search(shown_text(client.get(page)))


@pytest.mark.parametrize(
    ("machines", "current", "texts"),
    [
        ([None, 1, None], 100.0, [TAINTED, "·", TAINTED]),
        ([None, None, None], None, [TAINTED, TAINTED, TAINTED]),
    ],
)
def test_the_heat_map_colours_nothing_that_is_tainted(
    client: Client, machines: list[int | None], current: float | None, texts: list[str]
) -> None:
    create_cases(1, recent=[500.0, 100.0, 10.0], recent_positions=[1, 2, 3], recent_machines=machines,
                 base_value=None, current_value=current)  # fmt: skip
    (row,) = client.get("/projects/snake/heatmap/").context["rows"]
    assert [cell.text for cell in row.cells] == texts
    assert {cell.shade for cell in row.cells if cell.text == TAINTED} == {"same"}


def test_the_heat_map_shows_the_untainted_one_of_two_runs(client: Client) -> None:
    create_cases(1, recent=[100.0, 40.0, 100.0], recent_positions=[1, 1, 2], recent_machines=[1, None, 1],
                 base_value=None, current_value=100.0)  # fmt: skip
    (row,) = client.get("/projects/snake/heatmap/").context["rows"]
    assert [cell.text for cell in row.cells] == ["·", "·"]


@pytest.mark.parametrize(
    ("base", "value", "cell"),
    [
        (-2000.0, -1000.0, HeatCell("+50", "worse-3")),
        (1000.0, -1000.0, HeatCell(f"{MINUS}200", "better-3")),
        (1000.0, 1040.0, HeatCell("+4.0", "worse-1")),
        (-1000.0, -1010.0, HeatCell("·", "same")),
        (0.0, 5.0, HeatCell("?", "same")),
    ],
)
def test_the_heat_map_tells_growth_by_its_difference(base: float, value: float, cell: HeatCell) -> None:
    create_cases(1)
    (state,) = read_case_states(Project.objects.get(), "step_time")
    assert shade_value(state, value, False, base, signed=True) == cell


def test_the_heat_map_colours_what_is_worse(client: Client) -> None:
    project = create_cases(2)
    state = SeriesLatest.objects.filter(series__metric__name="throughput").earliest("pk")
    SeriesLatest.objects.filter(pk=state.pk).update(recent=[100.0] * 28 + [60.0, 150.0])
    answer = client.get("/projects/snake/heatmap/")
    cells = answer.context["rows"][0].cells if answer.context["rows"][0].state.series == state.pk else (
        answer.context["rows"][1].cells
    )  # fmt: skip
    assert [(cell.text, cell.shade) for cell in cells[-3:]] == [
        ("·", "same"), (f"{MINUS}40", "worse-3"), ("+50", "better-3"),
    ]  # fmt: skip
    newest = Commit.objects.filter(project=project).latest("position")
    assert f'href="/projects/snake/commits/{newest.hash}/"' in answer.content.decode()


@pytest.mark.parametrize(
    ("metric", "unit", "current", "word"),
    [
        ("step_time", "s", 1.00001, ""),
        ("step_time", "s", 1.2, "worse"),
        ("step_time", "s", 0.8, "better"),
        ("memory_growth", "B/1000 steps", 1.0, ""),
        ("memory_growth", "B/1000 steps", 9.0, "worse"),
    ],
)
def test_what_reads_as_no_difference_has_no_direction(
    metric: str, unit: str, current: float, word: str
) -> None:
    moved = case_grid.measure_movement(metric, unit, 1.0, current)
    assert moved is not None
    assert moved.direction("lower") == word
