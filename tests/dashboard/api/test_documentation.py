"""The commands of docs/api.md do what it says, and its numbers are those of the code."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.contrib.auth.models import User

from dashboard.access import Visitor, make_token
from dashboard.api.listing import DEFAULT_LIMIT, MOST_ITEMS
from dashboard.api.series import MOST_POINTS
from dashboard.models import Project, Trigger
from dashboard.throttling.rates import DEFAULT_RATES
from tests.dashboard.api.conftest import ACTIONS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/api.md"
COMMANDS = [
    block for block in re.findall(r"```sh\n(.*?)```", DOCUMENT.read_text(), re.DOTALL) if "curl" in block
]


@pytest.fixture
def site_variables(live_server: Any) -> dict[str, str]:
    """What the document exports, of a site that has the project."""
    project = Project.objects.create(slug="my-training", repository="/nowhere")
    person = User.objects.create_superuser("ada")
    token = make_token(Visitor(person), project, "script", ACTIONS)[1]
    return {"PACELINE_TOKEN": token, "SITE": f"{live_server.url}/api/v1", "PATH": "/usr/bin:/bin"}


def run_command(command: str, variables: dict[str, str]) -> Any:
    done = subprocess.run(
        ["sh", "-c", command], env=variables, capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


def test_regressions_are_listed(site_variables: dict[str, str]) -> None:
    assert run_command(COMMANDS[0], site_variables) == {"items": [], "next": None}


def test_runs_are_asked_for(site_variables: dict[str, str]) -> None:
    assert run_command(COMMANDS[1], site_variables)["revisions"] == {"last": 3}
    assert Trigger.objects.count() == 1


def test_an_experiment_is_asked_for(site_variables: dict[str, str]) -> None:
    # There is no repository at this site.
    assert run_command(COMMANDS[2], site_variables)["field"] == "project"


def test_its_numbers_are_those_of_the_code() -> None:
    text = " ".join(DOCUMENT.read_text().split())
    assert f"{DEFAULT_LIMIT} where you say nothing, {MOST_ITEMS} at most" in text
    assert f"{MOST_POINTS:,}" in text
    assert site_settings.DATA_UPLOAD_MAX_MEMORY_SIZE == 2 * 1024 * 1024
    assert f"| `api` | {DEFAULT_RATES['api']} |" in (DOCUMENT.parent / "sign-in.md").read_text()
    assert len(COMMANDS) == 3
