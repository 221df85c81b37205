"""The ranks and DataLoaders of a run: on its page, and by the API."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Run
from dashboard.pages.runs.ranks import MOST_RANKS, ranks_context
from tests.dashboard.training_processes import documents
from tests.pages import builders
from tests.pages.documents import create_document

pytestmark = pytest.mark.django_db

HELPER = {"repetition": 0, "name": "Evaluation", "count": 1, "cpu_time": 0.002}


def create_distributed_run(**members: Any) -> Run:
    case = builders.create_case(builders.create_project())
    body = create_document(case, 0.031, random.Random(0))  # noqa: S311
    return builders.create_measured_run(
        builders.create_commits(case.project, 1)[0], case, 0.031, body={**body, **members}
    )


def get_page(client: Client, run: Run) -> str:
    return client.get(f"/runs/{run.pk}/").content.decode()


@pytest.fixture
def distributed(db: None) -> Run:
    loaders = [documents.loader_row(0.008, (0.003, 0.030), 1, rank=2)]
    step = {"kind": "optimizer", "owner": "Adam", "chosen": False}
    helpers = [{**HELPER, "phases": {"forward": 0.001}, "counts": {"games": 0.5}}]
    return create_distributed_run(
        ranks=documents.four_ranks(0.020), loaders=loaders, step=step, helpers=helpers
    )


def test_the_page_shows_ranks_loaders_and_what_ends_a_step(client: Client, distributed: Run) -> None:
    shown = get_page(client, distributed)
    assert "Rank 2 is waited for" in shown
    assert "phases of the run are those of the rank with the longest step" in shown
    assert shown.count('<rect class="waiting"') == 4
    assert shown.count("waited for</span>") == 1
    assert "<code>all_reduce</code>" in shown
    assert "The loop starves" in shown
    assert "Evaluation" in shown
    assert "ends with the optimizer&#x27;s step of Adam" in shown


def test_a_bar_is_as_long_as_the_longest_step_at_most(client: Client, distributed: Run) -> None:
    bars = re.findall(r'class="share parts".*?</svg>', get_page(client, distributed), re.DOTALL)
    for bar in bars:
        widths = [float(width) for width in re.findall(r' width="([0-9.]+)" height="8"', bar)]
        assert sum(widths) == pytest.approx(100, abs=0.1)
    assert len(bars) == 4


def test_a_run_of_one_process_shows_no_ranks(client: Client) -> None:
    shown = get_page(client, create_distributed_run())
    assert 'id="ranks"' not in shown
    assert 'id="loaders"' not in shown


def test_of_many_ranks_the_slowest_is_among_those_that_are_shown() -> None:
    rows = [documents.rank_row(rank, {"backward": 0.01}) for rank in range(40)]
    context = ranks_context({"ranks": documents.ranks_member(rows, slowest=33)})
    shown = [row["rank"].number for row in context["ranks"]]
    assert len(shown) == MOST_RANKS
    assert shown[-1] == 33
    assert len(context["more_ranks"]) == 40 - MOST_RANKS


def test_ranks_whose_waits_are_unknown_make_a_page(client: Client) -> None:
    unknown = {"waits": None, "late": None, "last": None, "own_time": None, "peak_memory": None, "of": 0}
    rows = [documents.rank_row(rank, {"backward": 0.01}, **unknown) for rank in range(2)]
    shown = get_page(client, create_distributed_run(ranks=documents.ranks_member(rows)))
    assert "In collectives" in shown
    assert "no rank comes later than the others" in shown


def test_the_api_gives_what_the_page_shows(client: Client, distributed: Run) -> None:
    answer = client.get(f"/api/v1/runs/{distributed.pk}/processes").json()
    assert (answer["world_size"], answer["slowest"], answer["phase"]) == (4, 2, "augment")
    assert answer["sentence"] in get_page(client, distributed)
    assert answer["ranks"][0]["waits"] == pytest.approx(0.016)
    assert answer["ranks"][0]["collectives"][0]["bytes"] == 4e6
    assert answer["loaders"][0]["workers"][1]["fetch_time"] == 0.030
    assert answer["step"] == "ends with the optimizer's step of Adam, which stepped first"


def test_the_api_says_of_one_process_that_it_has_no_ranks(client: Client) -> None:
    answer = client.get(f"/api/v1/runs/{create_distributed_run().pk}/processes").json()
    assert (answer["world_size"], answer["ranks"], answer["loaders"]) == (1, [], [])
