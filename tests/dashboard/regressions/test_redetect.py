from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from dashboard.models import Change, Channel, Delivery, Project, Regression
from tests.dashboard import factories


def redetect_output(slug: str = "snakes") -> str:
    out = StringIO()
    call_command("redetect", slug, stdout=out)
    return out.getvalue()


@pytest.fixture
def slower(project: Project) -> Project:
    case = factories.create_case(project)
    line = factories.create_commits(project, 10)
    levels = factories.noisy_levels((6, 0.010), (4, 0.014))
    factories.store_measured_runs(
        [(commit, {"step_time": value}) for commit, value in zip(line, levels, strict=True)], case
    )
    return project


def test_it_says_what_it_found_and_kept(slower: Project) -> None:
    assert redetect_output() == (
        "Changes: 1 found, 0 moved to another commit, 0 of a new size, 0 kept, 0 withdrawn.\n"
        "Regressions: 1 stand, 1 of them new.\n"
    )
    assert "0 found, 0 moved to another commit, 0 of a new size, 1 kept, 0 withdrawn" in redetect_output()


def test_it_explains_anew(slower: Project) -> None:
    redetect_output()
    Regression.objects.update(suspects=[{"function": "an older rule's"}], phase="old")
    redetect_output()
    assert list(Regression.objects.values_list("suspects", "phase")) == [([], "")]


def test_it_alerts_nobody(slower: Project) -> None:
    Channel.objects.create(project=slower, kind="email", address="a@example.org")
    redetect_output()
    assert Regression.objects.count() == 1
    assert not Delivery.objects.exists()


def test_it_withdraws_what_is_not_in_the_points(slower: Project) -> None:
    redetect_output()
    found = Change.objects.get()
    wrong = Regression.objects.create(
        project=slower,
        first_bad=found.last_good,
        last_good=slower.commits.get(position=0),
        series=found.series,
        before=1,
        after=2,
    )
    Change.objects.create(
        series=found.series,
        first_bad=wrong.first_bad,
        last_good=wrong.last_good,
        position=2,
        reach_good=0,
        reach_bad=6,
        direction="improvement",
        before=2,
        after=1,
        confidence=0.9,
        regression=wrong,
    )
    assert "1 kept, 1 withdrawn" in redetect_output()
    wrong.refresh_from_db()
    assert wrong.withdrawn_at is not None
    assert timezone.now() >= wrong.withdrawn_at


def test_an_unknown_project_is_one_sentence(project: Project) -> None:
    with pytest.raises(CommandError, match="did you mean snakes"):
        redetect_output("snakse")
