"""The policy among a project's settings: what holds, from where, and what an administrator sets above it."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from django.test import Client
from paceline.manifest.policy import read_policy_table

from dashboard.models import AuditEntry, Commit, Project
from dashboard.policy.project_policy import keep_manifest_policy
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("admin")]

PAGE = "/projects/snake/settings/policy/"
MANIFEST = """
[policy]
paths_ignore = ["docs/**"]
most_queued = 50
[policy.benchmarks.train]
paths = ["src/**"]
[policy.schedule.nightly]
cron = "30 3 * * *"
benchmarks = ["train"]
cases = [{ size = 4 }]
"""


@pytest.fixture
def project(db: None) -> Project:
    made = builders.create_project("snake")
    keep_manifest_policy(made, read_policy_table(MANIFEST), "c" * 40)
    return made


def test_what_holds_is_shown_with_its_origin(client: Client) -> None:
    said = shown_text(client.get(PAGE))
    assert "branches main default" in said
    assert "paths_ignore docs/** manifest" in said
    assert "benchmarks.train.paths src/** manifest" in said
    assert "schedule.nightly 30 3 * * * · train · size=4 manifest" in said


def test_a_form_without_its_field_takes_no_policy_away(client: Client, project: Project) -> None:
    Project.objects.update(policy="[policy]\nmost_queued = 7")
    answer = client.post(PAGE, {})
    sentence = "policy: the form that was sent lacks this field, so nothing was changed."
    assert (answer.status_code, sentence in shown_text(answer)) == (400, True)
    project.refresh_from_db()
    assert project.policy == "[policy]\nmost_queued = 7"


def test_two_administrators_at_once_lose_nothing(client: Client, project: Project) -> None:
    opened = client.get(PAGE).content.decode()
    found = re.search(r'name="text_version" value="(\w+)"', opened)
    assert found
    Project.objects.update(policy="[policy]\nmost_queued = 7")
    mine = {"policy": "[policy]\nmost_queued = 9", "text_version": found[1]}
    answer = client.post(PAGE, mine)
    assert (answer.status_code, "Somebody has changed it since" in shown_text(answer)) == (400, True)
    assert "most_queued = 9" in answer.content.decode()
    project.refresh_from_db()
    assert project.policy == "[policy]\nmost_queued = 7"
    again = re.search(r'name="text_version" value="(\w+)"', answer.content.decode())
    assert again
    # Sent twice it is stored once: a page that is loaded again isn't overtaken by itself.
    for _ in range(2):
        assert client.post(PAGE, mine | {"text_version": again[1]}).status_code == 302
    project.refresh_from_db()
    assert project.policy == "[policy]\nmost_queued = 9"


def test_a_wrong_policy_is_still_made_from_what_was_shown(client: Client, project: Project) -> None:
    """Mended, it must not take the place of what somebody else has stored in the meantime."""
    answer = client.post(PAGE, {"policy": "[policy", "text_version": "0123456789abcdef"})
    assert 'value="0123456789abcdef"' in answer.content.decode()


def test_the_site_stands_above_the_manifest(client: Client, project: Project) -> None:
    text = '[policy]\nmost_queued = 7\nschedule = {}\nquiet_hours = { from = "00:00", until = "23:59" }'
    said = shown_text(client.post(PAGE, {"policy": text}, follow=True))
    assert "most_queued 7 runs site" in said
    assert "quiet_hours 00:00 to 23:59, daily site" in said
    assert not project.schedules.exists()
    project.refresh_from_db()
    assert isinstance(project.quiet_until, datetime)
    assert AuditEntry.objects.get(action="settings changed").details == {"fields": ["policy"]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("branches = []", "branches: belongs to the table policy, write [policy] above it."),
        ("[polcy]", "polcy: is unknown, did you mean 'policy'?"),
        ("[policy]\nbranch = []", "policy.branch: is unknown, did you mean 'branches'?"),
        ("[policy", "is not valid TOML"),
        ('[policy]\ntime_zone = "Europe/Atlantis"', "policy.time_zone: 'Europe/Atlantis' is unknown here."),
        (
            '[policy.schedule.a]\ncron = "0 0 30 2 *"',
            "policy.schedule.a.cron: '0 0 30 2 *' is never due.",
        ),
    ],
)
def test_what_is_wrong_is_said_and_nothing_kept(
    client: Client, project: Project, text: str, sentence: str
) -> None:
    answer = client.post(PAGE, {"policy": text})
    assert answer.status_code == 400
    assert sentence in shown_text(answer)
    assert "?." not in shown_text(answer)
    project.refresh_from_db()
    assert project.policy == ""


def test_names_that_are_not_known_yet_are_saved_with_a_warning(client: Client, project: Project) -> None:
    line = builders.create_commits(project, 2)
    Commit.objects.filter(pk=line[0].pk).update(tags=["v1.0"])
    builders.create_case(project, "train")
    text = """[policy]
baseline = { pinned = "v9", branches = { "release/*" = "v1.1", next = "rolling", old = "v1.0" } }
schedule.night = { cron = "0 3 * * *", benchmarks = ["train", "trian"] }
benchmarks.nope = { paths = ["src/**"] }"""
    said = shown_text(client.post(PAGE, {"policy": text}, follow=True))
    assert "Saved: it holds" in said
    assert "benchmarks.nope: no benchmark “nope” is known yet." in said
    assert "schedule.night.benchmarks: no benchmark “trian” is known yet, did you mean “train”?" in said
    assert "baseline.pinned: no commit or tag “v9” is known yet." in said
    assert "baseline.branches.release/*: no commit or tag “v1.1” is known yet, did you mean “v1.0”?" in said
    assert said.count("is known yet") == 4


def test_saving_what_is_there_changes_nothing(client: Client) -> None:
    client.post(PAGE, {"policy": ""})
    assert not AuditEntry.objects.filter(action="settings changed").exists()
