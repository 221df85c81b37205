"""Two commits, branches, tags, runs or cases beside each other: a planted difference is found everywhere."""

from __future__ import annotations

import csv
import io
import random
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Case, Commit
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.documents import create_document, profile_member

pytestmark = pytest.mark.django_db

PAGE = "/projects/snake/compare/"
STACK = ["<module> train.py:1", "learn train.py:20", "push replay.py:31"]


def planted_document(case: Case, step_time: float, seed: int, *, pushes: float = 1.0) -> dict[str, Any]:
    """Of a step that calls `push` so many times, with stacks; the slower one has another torch."""
    body = create_document(case, step_time, random.Random(seed))  # noqa: S311
    profile = body["profile"] = profile_member(0.001)
    push = next(row for row in profile["functions"] if row["function"] == "push")
    push |= {"calls": pushes, "self": 2e-6 * pushes}
    profile["stacks"] = [
        {"stack": STACK[:2], "phase": "learn", "calls": 1.0, "self": 5e-4},
        {"stack": STACK, "phase": "learn/push", "calls": pushes, "self": 2e-6 * pushes},
    ]
    calls = next(row for row in body["metrics"] if row["name"] == "function_calls" and not row["phase"])
    calls |= {"value": 411.0 + pushes, "samples": [411.0 + pushes] * 2}
    if pushes > 1:
        profile["functions"].append({**push, "function": "copy_all", "calls": 3.0, "self": 1e-4})
        profile["operations"][0] = {"name": "aten::mm", "count": 30.0}
        body["environment"] = {**body["environment"], "torch": "9.9.9"}
    return body


@pytest.fixture
def planted(db: None) -> list[Commit]:
    """Four commits, of which the last is 38 % slower, by 256 calls in the place of one."""
    line = builders.create_commits(builders.create_project(), 4)
    case = builders.create_case(line[0].project, variant="optimized")
    for commit in line:
        is_slow = commit is line[-1]
        body = planted_document(
            case, 0.00138 if is_slow else 0.001, commit.position, pushes=256.0 if is_slow else 1.0
        )
        builders.create_measured_run(commit, case, 0.0, body=body)
    line[1].tags = ["v1.0"]
    line[1].save()
    return line


def read_answer(client: Client, **query: str) -> dict[str, Any]:
    response = client.get("/api/v1/projects/snake/comparison", query)
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = response.json()
    return answer


def find_metric(answer: dict[str, Any], name: str, phase: str = "") -> dict[str, Any]:
    rows: list[dict[str, Any]] = answer["comparison"]["metrics"]
    return next(row for row in rows if (row["metric"]["name"], row["phase"]) == (name, phase))


def test_a_planted_difference_is_found_on_page_files_and_api(client: Client, planted: list[Commit]) -> None:
    query = {"base": "v1.0", "head": planted[-1].hash[:8]}
    row = find_metric(read_answer(client, **query), "step_time")
    assert row["low"] < 1.38 < row["high"]
    assert (row["verdict"], row["direction"]) == ("higher", "worse")
    text = shown_text(client.get(PAGE, query))
    percent = f"{100 * (row['ratio'] - 1):.0f}"
    assert f"step time +{percent} %" in text.lower()
    assert "copy_all" in text
    assert "9.9.9" in text
    table = list(
        csv.DictReader(io.StringIO(client.get("/projects/snake/compare.csv", query).content.decode()))
    )
    told = next(cells for cells in table if cells["part"] == "metric" and cells["name"] == "step_time")
    assert (float(told["ratio"]), told["verdict"], told["reason"]) == (row["ratio"], "higher", "worse")
    markdown = client.get("/projects/snake/compare.md", query).content.decode()
    assert "`copy_all" in markdown


def test_equal_commits_show_no_difference(client: Client, planted: list[Commit]) -> None:
    query = {"base": planted[0].hash, "head": planted[2].hash}
    answer = read_answer(client, **query)
    told = {row["verdict"] for row in answer["comparison"]["metrics"]}
    assert told == {"~", "?"}
    assert answer["comparison"]["functions"] == []
    assert "No metric shows a difference" in shown_text(client.get(PAGE, query))


def test_what_calls_otherwise_is_named(client: Client, planted: list[Commit]) -> None:
    found = read_answer(client, base=planted[0].hash, head=planted[3].hash)["comparison"]
    assert {row["name"]: row["what"] for row in found["functions"]} == {"push": "more", "copy_all": "new"}
    assert [(row["name"], row["what"]) for row in found["operations"]] == [("aten::mm", "more")]
    assert {"name": "torch", "base": "2.13.0+cpu", "head": "9.9.9"} in found["environment"]
    calls = next(
        row for row in found["metrics"] if row["metric"]["name"] == "function_calls" and not row["phase"]
    )
    assert (calls["base"], calls["head"], calls["exact"], calls["low"]) == (412, 667, True, None)


def test_the_flame_graph_of_the_difference_colours_what_moved(client: Client, planted: list[Commit]) -> None:
    query = {"base": planted[0].hash, "head": planted[3].hash}
    page = client.get(PAGE, query).content.decode()
    assert 'class="much-more"' in page
    assert "2 µs → 512 µs" in page
    inside = client.get(
        PAGE, {"base": planted[0].hash, "head": planted[3].hash, "frame": "3"}
    ).content.decode()
    assert '<code class="strong">push replay.py</code>' in inside
