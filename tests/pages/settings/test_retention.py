"""Retention among a project's settings: what is kept for how long, what would go, and what went."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard import retention
from dashboard.models import Point, Project, Regression, Run, RunLog
from dashboard.sentences.formatting.numbers import DASH
from tests.dashboard import factories
from tests.dashboard.access.conftest import create_member
from tests.dashboard.retention.histories import measure_values
from tests.pages.comparison_builders import plant_difference
from tests.pages.conftest import shown_text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("admin")]
PAGE = "/projects/snake/settings/retention/"


@pytest.fixture
def project(db: None, settings: Any) -> Project:
    settings.PACELINE_KEEP_LEAST_DAYS = 30
    return factories.create_project("snake", policy="[policy.keep]\nlogs = 7\ntelemetry = 60\ndocuments = 0")


@pytest.fixture
def history(project: Project) -> list[Run]:
    return measure_values(project, factories.noisy_levels((12, 0.010)))


def test_it_says_for_how_long_and_by_whose_word(client: Client) -> None:
    said = shown_text(client.get(PAGE))
    assert "logs what a run printed 30 days, as the site allows; the policy asks for 7 days site" in said
    assert "telemetry memory, utilization and clocks over time 60 days site" in said
    assert "profiles functions and what called them 730 days default" in said
    assert "points of series that no judgement reads for ever default" in said
    assert "Nothing so far" in said
    assert "Would go now" not in said


def test_a_dry_run_counts_what_would_go_and_drops_nothing(client: Client, history: list[Run]) -> None:
    made = factories.create_regression([run.commit for run in history], 5, "step_time", 5)
    assert isinstance(made, Regression)
    said = shown_text(client.get(PAGE, {"dry-run": "yes"}))
    assert "5 runs 5 logs, 40 B 1 newest of a case, 2 at commits of regressions, 4 beside a step" in said
    assert f"730 days default none {DASH}" in said
    assert RunLog.objects.count() == 12


def test_what_was_dropped_stands_there_with_its_day(client: Client, history: list[Run]) -> None:
    retention.prune_runs(seconds=60)
    told = shown_text(client.get(PAGE))
    assert "logs 11 11 logs, 88 B" in told
    assert "telemetry 11 11 channels, " in told


def test_the_way_leads_to_the_policy(client: Client) -> None:
    page = client.get(PAGE).text
    assert 'href="/projects/snake/settings/policy/"' in page
    assert 'name="dry-run" value="yes"' in page
    holds = shown_text(client.get("/projects/snake/settings/policy/"))
    # Both pages say the same.
    assert "keep.logs 30 days, as the site allows; the policy asks for 7 days site" in holds
    assert "keep.profiles 730 days default" in holds


def test_a_comparison_says_that_points_may_be_gone(client: Client) -> None:
    line = plant_difference("viper")
    base = Run.objects.filter(commit=line[0])
    Point.objects.filter(run__in=base, series__metric__name="cpu_utilization").delete()
    address = f"/projects/viper/compare/?base={line[0].hash}&head={line[-1].hash}"
    assert "the base has no such metric, or no longer" not in shown_text(client.get(address))
    base.update(points_thinned=True)
    assert "the base has no such metric, or no longer" in shown_text(client.get(address))


def test_only_an_admin_sees_it(client: Client, project: Project) -> None:
    client.force_login(create_member("bob", "viewer", project))
    assert client.get(PAGE).status_code == 403
