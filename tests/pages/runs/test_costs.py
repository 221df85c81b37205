"""What runs cost: on a run's page as a bar and a table, by commit, and over a project's weeks."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, ExperimentPair, Run, RunCost
from dashboard.pages.runs.costs import stack_parts
from dashboard.sentences.measurements.run_costs import cost_of_run_sentence, part_label
from tests.pages import builders, experiment_builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

PARTS = [("waiting", 30.0), ("checkout", 1.0), ("start", 9.0), ("warmup", 6.0), ("window", 4.0)]


def give_costs(run: Run, parts: list[tuple[str, float]] = PARTS) -> None:
    RunCost.objects.bulk_create(
        RunCost(run=run, part=part, seconds=value, processes=3) for part, value in parts
    )


@pytest.fixture
def line(db: None) -> list[Commit]:
    return builders.create_measured_commits(3)


def test_a_runs_page_says_where_its_seconds_went(client: Client, line: list[Commit]) -> None:
    run = line[0].runs.get()
    give_costs(run)
    answer = client.get(f"/runs/{run.pk}/")
    page, said = answer.content.decode(), shown_text(answer)
    assert "20 s of machine time for 4 s of measured steps" in said
    assert "Its starts and twice its measured steps are 17 s; 3 s more were spent." in said
    assert "Before that it waited 30 s for a machine" in said
    bar = re.search(r'<svg class="cost-bar".*?</svg>', page, re.DOTALL)
    assert bar is not None
    widths = [float(width) for width in re.findall(r' width="([0-9.]+)"', bar[0])]
    assert widths == [5.0, 45.0, 30.0, 20.0]


def test_counters_of_another_commit_are_never_shown_as_measured(client: Client, line: list[Commit]) -> None:
    run = line[0].runs.get()
    give_costs(run)
    Run.objects.filter(pk=run.pk).update(counted_at="abcdef0123" + "4" * 30)
    said = shown_text(client.get(f"/runs/{run.pk}/"))
    assert "Taken over, not measured here: those of abcdef0123" in said
    assert "Taken over with the counters, as counted at abcdef0123" in said


def test_a_run_that_tells_nothing_shows_nothing(client: Client, line: list[Commit]) -> None:
    assert "What this run cost" not in client.get(f"/runs/{line[0].runs.get().pk}/").content.decode()
    assert "No run of the last 8 weeks tells what it cost" in shown_text(client.get("/projects/snake/costs/"))


def test_a_commit_costs_what_its_runs_cost(client: Client, line: list[Commit]) -> None:
    give_costs(line[1].runs.get())
    page = client.get("/projects/snake/commits/").content.decode()
    assert page.count("4 s of it measured steps") == 1
    assert ">20 s</span>" in page
    told = client.get("/api/v1/projects/snake/commits").json()["items"]
    assert [row["machine_seconds"] for row in told] == [None, 20.0, None]


def test_the_weeks_parts_and_cases_of_a_project(client: Client, line: list[Commit]) -> None:
    now = timezone.now()
    for commit, ago in zip(line, (0, 0, 300), strict=True):
        run = commit.runs.get()
        give_costs(run)
        Run.objects.filter(pk=run.pk).update(finished_at=now - timedelta(days=ago))
    said = shown_text(client.get("/projects/snake/costs/"))
    # Two runs of today, the third is too old; what they waited is no machine time.
    assert "40 s of machine time for 8 s of measured steps" in said
    assert part_label("warmup") in said
    assert "Waiting" not in said


def test_experiments_are_in_the_weeks_and_by_purpose(client: Client, line: list[Commit]) -> None:
    run = line[0].runs.get()
    give_costs(run)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())
    machine = builders.create_machine("gpu-1", fingerprint={"gpus": [{"name": "H100"}]})
    for ended, seconds in ((timezone.now(), 120), (None, 30), (timezone.now() - timedelta(days=300), 50)):
        asked = experiment_builders.create_experiment(
            line, machine=machine, finished_at=ended, seconds=seconds, state="done" if ended else "measuring"
        )
        for index, took in enumerate((50, 50, 0)):
            ExperimentPair.objects.create(
                experiment=asked, index=index, base_first=True, base=1, head=1.3, seconds=took
            )
    said = shown_text(client.get("/projects/snake/costs/"))
    assert "1 1 20 s 2 min 30 s 2 min 50 s" in said
    assert "person 2 4 2 min 30 s" in said
    assert "By case" in said
    RunCost.objects.all().delete()
    said = shown_text(client.get("/projects/snake/costs/"))
    assert "0 0 0 s 2 min 30 s" in said
    assert "every machine that measured has a GPU" in said
    assert "By case" not in said


def test_the_bar_is_full_and_the_measured_steps_keep_their_hue() -> None:
    known = (
        "start",
        "warmup",
        "window",
        "after",
        "disturbed",
        "counting start",
        "counting after",
        "of later",
    )
    rows = stack_parts([(part, 1.0, 1) for part in known])
    assert sum(row.width for row in rows) == pytest.approx(100)
    assert [row.hue for row in rows].count(rows[2].hue) == 1
    assert rows[5].hue == rows[6].hue != rows[7].hue
    assert stack_parts([]) == []


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], ""),
        ([("start", 3.0), ("window", 2.0)], "no more than its starts and twice its measured steps"),
        (
            [("start", 3.0), ("window", 1.0), ("sweep", 9.0)],
            "8 s more were spent. The largest other part: sweep (9 s).",
        ),
    ],
)
def test_the_sentence_says_what_went_beyond(parts: list[tuple[str, float]], words: str) -> None:
    assert words in cost_of_run_sentence(parts)


def test_hours_of_machines_with_a_gpu_are_gpu_hours(client: Client, line: list[Commit]) -> None:
    runs = [commit.runs.get() for commit in line[:2]]
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(finished_at=timezone.now())
    for run in runs:
        give_costs(run, [("window", 3600.0)])
    where = "/projects/snake/costs/"
    assert "2 machine-hours: no machine that measured has a GPU" in shown_text(client.get(where))
    gpu = builders.create_machine("gpu-1", fingerprint={"gpus": [{"name": "H100"}]})
    Run.objects.filter(pk=runs[0].pk).update(machine=gpu)
    assert "2 machine-hours, 1 of them GPU-hours" in shown_text(client.get(where))
    Run.objects.update(machine=gpu)
    assert "2 GPU-hours: every machine that measured has a GPU" in shown_text(client.get(where))
