"""What was withdrawn says why."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Regression
from tests.pages import builders

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("withdrawal", "reason"),
    [
        ("rewritten", "its commits are no longer on the branch"),
        ("not found", "a later judgement, with more points, no longer finds the step"),
    ],
)
@pytest.mark.parametrize("where", ["/regressions/?state=withdrawn", "/regressions/{}/"])
def test_it_says_why_it_was_withdrawn(client: Client, where: str, withdrawal: str, reason: str) -> None:
    regression = builders.create_stepped_regression()
    Regression.objects.update(withdrawn_at=timezone.now(), withdrawal=withdrawal)
    shown = client.get(where.format(regression.pk)).content.decode()
    assert 'chip state-withdrawn">withdrawn<' in shown
    assert reason in shown


@pytest.mark.parametrize("where", ["/runs/{}/", "/projects/snake/runs/"])
def test_a_run_says_that_its_commit_left_the_branch(client: Client, where: str) -> None:
    run = builders.create_measured_commits(2)[1].runs.get()
    assert "no longer on" not in client.get(where.format(run.pk)).content.decode()
    run.commit.left_branch = "main"
    run.commit.save()
    assert "no longer on main" in client.get(where.format(run.pk)).content.decode()
