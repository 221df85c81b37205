"""What a regression's page, the inbox and a project say of a cause that is no commit's code."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Machine, Point, Regression, Run, Sentinel
from tests.pages.conftest import get_page

pytestmark = pytest.mark.django_db
UPGRADE = {"code": "system changed", "items": [["driver", "550.1", "560.2"]], "count": 1}
DRIVER = "Changed between the two runs: driver 550.1 → 560.2."
MOVED = {
    "code": "sentinel",
    "machine": "bench-1",
    "commit": "a1b2c3d4e5",
    "metric": "step_time",
    "ratio": 1.12,
    "low": 1.1,
    "high": 1.14,
    "after": "2026-03-01 08:00",
    "before": "2026-03-02 08:00",
    "moved": True,
}


@pytest.fixture
def regression(suspected: Regression) -> Regression:
    return suspected


def set_cause(regression: Regression, cause: str, *evidence: dict[str, object]) -> None:
    Regression.objects.filter(pk=regression.pk).update(cause=cause, cause_evidence=list(evidence))


def test_another_cause_names_no_commit(client: Client, regression: Regression) -> None:
    set_cause(regression, "driver or system", UPGRADE)
    shown = get_page(client, regression.get_absolute_url())
    assert DRIVER in shown
    assert "No commit is to blame" in shown
    assert f"by {regression.first_bad.author}" not in shown.split('class="lead"')[1].split("</p>")[0]


@pytest.mark.parametrize("where", ["/", "/regressions/"])
def test_what_no_runs_can_prove_is_not_called_suspected(
    client: Client, regression: Regression, where: str
) -> None:
    Regression.objects.filter(pk=regression.pk).update(state="suspected", proving=True)
    assert "state-suspected" in get_page(client, where)
    Regression.objects.filter(pk=regression.pk).update(proving=False)
    assert 'chip state-not-proved">not proved<' in get_page(client, where)
    set_cause(regression, "driver or system", UPGRADE)
    shown = get_page(client, where)
    assert 'chip state-not-blamed">not blamed<' in shown
    assert "state-suspected" not in shown


def test_code_names_its_commit_with_the_evidence(client: Client, regression: Regression) -> None:
    set_cause(regression, "code", {"code": "suspect changed", "place": "replay.py:push"})
    shown = get_page(client, regression.get_absolute_url())
    assert "The suspect replay.py:push was changed." in shown
    assert "No commit is to blame" not in shown
    assert f"<code>{regression.first_bad.short}</code>" in shown.split('class="lead"')[1].split("</p>")[0]


def test_the_inbox_shows_the_class_and_what_moved(client: Client, regression: Regression) -> None:
    set_cause(regression, "machine", MOVED)
    shown = get_page(client, "/regressions/")
    assert '<span class="chip cause">machine</span>' in shown
    assert "The machine bench-1 moved: its sentinel a1b2c3d4e5, always the same code, had step time" in shown
    assert regression.first_bad.short not in shown


def test_without_a_class_nothing_is_said(client: Client, regression: Regression) -> None:
    assert "chip cause" not in get_page(client, "/regressions/")
    assert 'id="cause"' not in get_page(client, regression.get_absolute_url())


@pytest.mark.parametrize(("days", "expected"), [(1, True), (30, False)])
def test_a_project_says_which_machine_moved_lately(
    client: Client, regression: Regression, days: int, expected: bool
) -> None:
    at = timezone.now() - timedelta(days=days)
    Sentinel.objects.create(
        configuration=regression.series.configuration,
        machine=Machine.objects.first(),
        commit=regression.last_good,
        moved_after=at - timedelta(days=1),
        moved_before=at,
        ratio=1.12,
        low=1.1,
        high=1.14,
    )
    shown = get_page(client, "/projects/snake/")
    assert ("Machines whose speed changed" in shown) == expected
    assert ("+12 % [10, 14]" in shown) == expected


def test_a_sentinels_run_is_shown_as_one(client: Client, regression: Regression) -> None:
    run = Run.objects.filter(document__isnull=False).latest("pk")
    Run.objects.filter(pk=run.pk).update(origin="sentinel")
    Point.objects.filter(run=run).delete()
    assert ">sentinel</span>" in get_page(client, run.get_absolute_url())
