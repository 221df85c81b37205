"""What isn't watched though nothing is red: disturbed runs, refused triggers; and what is repaired goes."""

from __future__ import annotations

import html
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from paceline.document import CODES_OF_DISTURBANCE, CODES_TAINTING_ALL

from dashboard import runs
from dashboard.models import Case, Commit, Project, Run, Trigger
from dashboard.querysets.disturbances import MEASURED_WITHIN, mostly_tainted_cases
from dashboard.sentences.measurements import disturbances
from tests.pages import builders
from tests.pages.conftest import get_page

pytestmark = pytest.mark.django_db
MOSTLY_TAINTED = "3 of the newest 5 runs are kept out of judgement: "
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def project() -> Project:
    return builders.create_project()


@pytest.fixture
def case(project: Project) -> Case:
    return builders.create_case(project)


@pytest.fixture
def commits(project: Project) -> list[Commit]:
    return builders.create_commits(project, 6)


def create_calm_run(commit: Commit, case: Case) -> Run:
    return builders.create_run(commit, case, requested_at=timezone.now())


def disturb_most(commits: list[Commit], case: Case) -> Run:
    """Three of the newest five; the newest of these three."""
    create_calm_run(commits[0], case)
    for commit in commits[1:3]:
        builders.create_tainted_run(commit, case, "co_tenant")
    last = builders.create_tainted_run(commits[3], case, "processor_contention", "calibration_drift")
    create_calm_run(commits[4], case)
    return last


@pytest.mark.parametrize("where", ["/", "/projects/snake/"])
def test_a_case_whose_runs_are_mostly_disturbed_is_named(
    client: Client, commits: list[Commit], case: Case, where: str
) -> None:
    last = disturb_most(commits, case)
    shown = get_page(client, where)
    assert MOSTLY_TAINTED in shown
    assert "other work kept the measured thread from its processor; the machine changed its speed" in shown
    assert "End other work on the machine while it measures; look for other work" in shown
    assert f"/runs/{last.pk}/" in shown
    assert "docs/workers.md" in shown
    assert "Nothing. No open regression" not in shown


def test_two_of_five_need_nobody(client: Client, commits: list[Commit], case: Case) -> None:
    disturb_most(commits, case)
    create_calm_run(commits[5], case)
    assert mostly_tainted_cases(timezone.now(), Project.objects.all()) != []
    create_calm_run(commits[5], case)
    assert mostly_tainted_cases(timezone.now(), Project.objects.all()) == []
    assert "Nothing. No open regression" in get_page(client)


def test_each_way_of_measuring_stands_for_itself(commits: list[Commit], case: Case) -> None:
    for number, commit in enumerate(commits[:4]):
        builders.create_tainted_run(commit, case, "co_tenant", quick=number > 1)
    assert mostly_tainted_cases(timezone.now(), Project.objects.all()) == []
    builders.create_tainted_run(commits[4], case, "co_tenant", quick=True)
    (found,) = mostly_tainted_cases(timezone.now(), Project.objects.all())
    assert (found.configuration.quick, found.tainted, found.measured) == (True, 3, 3)


def test_neither_sentinels_nor_last_months_runs_count(commits: list[Commit], case: Case) -> None:
    for commit in commits[:2]:
        builders.create_tainted_run(commit, case, "co_tenant")
    sentinel = builders.create_tainted_run(commits[2], case, "co_tenant", origin=Run.Origin.SENTINEL)
    assert mostly_tainted_cases(timezone.now(), Project.objects.all()) == []
    Run.objects.filter(pk=sentinel.pk).update(origin=Run.Origin.MEASURED)
    assert len(mostly_tainted_cases(timezone.now(), Project.objects.all())) == 1
    assert mostly_tainted_cases(timezone.now() + MEASURED_WITHIN, Project.objects.all()) == []


def test_a_project_tells_of_its_own_cases_alone(client: Client, commits: list[Commit], case: Case) -> None:
    disturb_most(commits, case)
    builders.create_project("other")
    assert MOSTLY_TAINTED not in get_page(client, "/projects/other/")


def test_every_code_that_taints_has_its_words() -> None:
    assert set(disturbances.ADVICE) == CODES_OF_DISTURBANCE | CODES_TAINTING_ALL | {"warmup_never_ended"}
    page = (DOCS / "workers.md").read_text().partition("## A calm machine")[2].partition("\n## ")[0]
    assert [code for code in CODES_OF_DISTURBANCE if f"`{code}`" not in page] == []


def test_a_disturbed_run_says_when_it_is_measured_again(
    client: Client, commits: list[Commit], case: Case
) -> None:
    run = builders.create_tainted_run(commits[3], case, "processor_contention")
    again = runs.remeasure_disturbed(run, ["processor_contention"])
    assert again is not None
    again.refresh_from_db()
    at = f"{again.not_before:%H:%M} UTC"
    assert f"Measured again at {at}, since this run was disturbed." in get_page(client, f"/runs/{run.pk}/")
    waiting = get_page(client, f"/runs/{again.pk}/")
    assert f"waits until {at}, since an earlier run of this commit was disturbed" in waiting
    assert f"requested for {at}" in get_page(client, "/projects/snake/runs/")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"not_before": None}, "Measured again as soon as a machine is free"),
        ({"state": Run.State.MEASURING}, "It is being measured again"),
        ({"state": Run.State.DONE}, "It was measured again."),
        (
            {"state": Run.State.DONE, "tainted": True},
            "measured again and kept out of judgement again.",
        ),
        ({"state": Run.State.FAILED}, "It was to be measured again, but that run failed."),
        ({"state": Run.State.CANCELLED}, "It was to be measured again, but that run was cancelled."),
    ],
)
def test_a_disturbed_run_says_what_became_of_it(
    client: Client, commits: list[Commit], case: Case, changes: dict[str, Any], sentence: str
) -> None:
    run = builders.create_tainted_run(commits[3], case, "processor_contention")
    again = builders.create_run(commits[3], case, Run.State.REQUESTED, not_before=timezone.now())
    Run.objects.filter(pk=again.pk).update(**changes)
    assert sentence in get_page(client, f"/runs/{run.pk}/")


def test_a_run_that_nothing_disturbed_says_nothing_of_the_next(
    client: Client, commits: list[Commit], case: Case
) -> None:
    run = builders.create_measured_run(commits[3], case, 0.01)
    create_calm_run(commits[3], case)
    assert "measured again" not in get_page(client, f"/runs/{run.pk}/")


@pytest.mark.parametrize("where", ["/", "/projects/snake/"])
def test_a_refused_trigger_is_shown_until_a_later_one_succeeds(
    client: Client, project: Project, where: str
) -> None:
    builders.create_refused_trigger(project)
    refused = "trigger was refused"
    assert refused in get_page(client, where)
    assert "last 2 commits" in get_page(client, where)
    assert "Commit 0123456789 has no paceline.toml." in get_page(client, where)
    other = builders.create_project("other")
    Trigger.objects.create(project=other, source="hook", state=Trigger.State.RESOLVED)
    Trigger.objects.create(project=project, source="hook", state=Trigger.State.RECEIVED)
    assert refused in get_page(client, where)
    Trigger.objects.create(project=project, source="web", state=Trigger.State.RESOLVED)
    assert refused not in get_page(client, where)


def test_a_refusal_after_a_success_is_shown(client: Client, project: Project) -> None:
    Trigger.objects.create(project=project, source="web", state=Trigger.State.RESOLVED)
    builders.create_refused_trigger(project)
    assert "A trigger was refused" in get_page(client)


def test_a_refusal_is_forgotten_after_a_day(client: Client, project: Project) -> None:
    Trigger.objects.filter(pk=builders.create_refused_trigger(project).pk).update(
        received_at=timezone.now() - timedelta(hours=25)
    )
    assert "trigger was refused" not in get_page(client)


def test_of_many_refusals_the_newest_of_each_project_is_shown(client: Client, project: Project) -> None:
    for number in range(4):
        builders.create_refused_trigger(project, f"Refused for reason {number}.")
    builders.create_refused_trigger(builders.create_project("other"), "Refused there.")
    shown = get_page(client)
    assert shown.count("A trigger was refused") == 2
    assert "Refused for reason 3." in shown
    assert "Refused there." in shown


def test_a_crash_that_a_later_commit_repaired_needs_nobody(
    client: Client, commits: list[Commit], case: Case
) -> None:
    crashed = builders.create_run(commits[2], case, Run.State.FAILED, failure="crash")
    told = f"Run #{crashed.pk} failed: crash"
    create_calm_run(commits[1], case)
    assert told in get_page(client)
    create_calm_run(commits[4], builders.create_case(crashed.case.project, "other"))
    builders.create_run(commits[4], case, Run.State.MEASURING)
    assert told in get_page(client)
    create_calm_run(commits[3], case)
    assert told not in get_page(client)


def test_another_branch_repairs_no_crash(client: Client, commits: list[Commit], case: Case) -> None:
    crashed = builders.create_run(commits[2], case, Run.State.FAILED, failure="crash")
    Commit.objects.filter(pk=commits[4].pk).update(branch="topic")
    create_calm_run(commits[4], case)
    assert f"Run #{crashed.pk} failed: crash" in get_page(client)


def test_a_refused_trigger_is_no_case_that_is_not_watched(client: Client, project: Project) -> None:
    trigger = builders.create_refused_trigger(project)
    shown = html.unescape(get_page(client, "/projects/snake/"))
    assert f'<a href="/projects/snake/triggers/{trigger.pk}/"><strong>Last 2 commits</strong></a>' in shown
    assert "What isn't watched" not in shown
