"""Checks of branches, asked for by a script."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import AuditEntry, Check, Project
from tests.dashboard.api.conftest import post_json
from tests.dashboard.conftest import Repository
from tests.pages import builders
from tests.pages.check_builders import create_check, measure_case

pytestmark = pytest.mark.django_db
API = "/api/v1"


@pytest.fixture
def snakes(project: Project, repository: Repository) -> Project:
    project.repository = str(repository.folder)
    project.save()
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit("Change the training", train_py="pass")
    return project


def test_a_check_is_asked_for_read_and_cancelled(
    script: Client, snakes: Project, repository: Repository, admin: User
) -> None:
    answer = post_json(script, "/projects/snake/checks", head="feature", minutes=3)
    asked = answer.json()
    head = repository.git("rev-parse", "feature")
    assert (answer.status_code, asked["state"], asked["head"], asked["onto"]) == (
        201,
        "requested",
        head,
        "main",
    )
    assert (asked["status"], asked["progress"], asked["minutes"], asked["rows"]) == ("pending", 0.0, 3.0, [])
    assert Check.objects.get().requested_by == admin
    assert script.get(f"{API}/checks/{asked['id']}").json() == asked
    listed = script.get(f"{API}/projects/snake/checks?head={head}").json()["items"]
    assert [row["id"] for row in listed] == [asked["id"]]
    ended = post_json(script, f"/checks/{asked['id']}/cancel")
    assert (ended.status_code, ended.json()["state"]) == (200, "cancelled")
    assert post_json(script, f"/checks/{asked['id']}/cancel").status_code == 409
    said = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert said[-2:] == ["check requested", "check cancelled"]


def test_an_answer_is_read_row_by_row(script: Client, project: Project) -> None:
    line = builders.create_commits(project, 2)
    check = create_check(line, answer="worse")
    measure_case(check, line, 1.3)
    told = script.get(f"{API}/checks/{check.pk}").json()
    assert (told["state"], told["answer"], told["status"], told["progress"]) == (
        "done",
        "worse",
        "failure",
        1.0,
    )
    worst = told["rows"][0]
    assert worst["metric"] == "step_time"
    assert worst["change"].startswith("+30 %")
    assert worst["values"]["ratio"] == pytest.approx(1.3, rel=0.01)
    assert told["causes"]
    assert told["commands"] == ["git checkout <it>"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"head": "nowhere"}, "head: "),
        ({"head": "feature", "onto": "nowhere"}, "onto: "),
        ({"head": "feature", "minutes": -1}, "minutes: -1 isn't above 0"),
        ({"onto": "main"}, "head: it is missing."),
    ],
)
def test_what_cannot_be_checked_is_refused(
    script: Client, snakes: Project, body: dict[str, Any], sentence: str
) -> None:
    answer = post_json(script, "/projects/snake/checks", **body)
    assert (answer.status_code, sentence in answer.json()["detail"]) == (422, True), answer.json()
    assert answer.json()["field"] == sentence.partition(":")[0]
    assert not Check.objects.exists()
