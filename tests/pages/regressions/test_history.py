"""What regressed since a day: by whom, proven or not, how long it took, and what it cost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Change, Commit, Experiment, Project, Regression
from tests.dashboard import factories
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

WHERE = "/projects/snake/regressions/"


@pytest.fixture
def regression(db: None) -> Regression:
    """At a commit of ten days ago: found after a day, proved two hours later, repaired after three days."""
    made = builders.create_stepped_regression(state="confirmed", ratio=1.5)
    began = timezone.now() - timedelta(days=10)
    Commit.objects.filter(pk=made.first_bad_id).update(committed_at=began)
    newest = Commit.objects.latest("position")
    Commit.objects.filter(pk=newest.pk).update(committed_at=began + timedelta(days=3))
    found = began + timedelta(days=1)
    Regression.objects.update(opened_at=found, recovered_by=newest)
    proof = factories.create_ended_experiment(made, "confirmed", made.last_good, made.first_bad)
    proved = {"finished_at": found + timedelta(hours=2), "seconds": 5400}
    Experiment.objects.filter(pk=proof.pk).update(**proved)
    return made


def test_a_refused_filter_hides_no_regression(client: Client, regression: Regression) -> None:
    answer = client.get(WHERE, {"since": "x"})
    assert answer.status_code == 400
    assert answer.context["count"] == 1
    assert "1 in the last" in shown_text(answer)


def test_times_and_costs_are_told(client: Client, regression: Regression) -> None:
    Project.objects.update(training_hours_per_week=70)
    answer = client.get(WHERE)
    ((row,),) = [group.rows for group in answer.context["groups"]]
    assert (row.to_find, row.to_prove, row.to_repair) == pytest.approx((24, 2, 72))
    assert row.proof_hours == pytest.approx(1.5)
    # Half as slow again for three days of a week of 70 hours.
    assert row.training_hours == pytest.approx(70 * 0.5 * 3 / 7)
    shown = shown_text(answer)
    for part in ("24 h", "2 h", "3 d", "1 h 30 min", "15 h"):
        assert part in shown


def test_only_the_period_and_what_is_proven_count(client: Client, regression: Regression) -> None:
    later = (timezone.now() - timedelta(days=5)).date()
    empty = client.get(f"{WHERE}?since={later}")
    assert not empty.context["groups"]
    culprit = Commit.objects.get(pk=regression.first_bad_id).committed_at.date()
    # The one that is left is a click away.
    assert f'href="?since={culprit}">what regressed since {culprit}</a>' in empty.content.decode()
    assert len(client.get(f"{WHERE}?proven=yes").context["groups"]) == 1
    Regression.objects.update(state="suspected")
    assert not client.get(f"{WHERE}?proven=yes").context["groups"]
    Regression.objects.update(state="refuted")
    assert "No regression of a commit since" in shown_text(client.get(WHERE))


def test_regressions_of_a_culprit_stand_together_with_their_cases(
    client: Client, regression: Regression
) -> None:
    line = list(Commit.objects.order_by("position"))
    other = builders.create_case(regression.project, "walker")
    for commit in line:
        builders.create_measured_run(commit, other, 0.002)
    series = builders.headline_series(other)
    second = builders.create_regression(series, line[2], line[3], culprit=line[2])
    change = builders.create_change(series, line[1], line[2], 1.4)
    Change.objects.filter(pk=change.pk).update(regression=regression)
    (group,) = client.get(WHERE).context["groups"]
    assert {row.regression.pk for row in group.rows} == {regression.pk, second.pk}
    assert "and 1 more case" in shown_text(client.get(WHERE))


def test_what_was_not_said_is_not_known(client: Client, regression: Regression) -> None:
    Regression.objects.update(recovered_by=None)
    shown = shown_text(client.get(WHERE))
    assert "nobody said how much is trained" in shown
    assert "not yet" in shown


def test_it_is_three_clicks_from_the_overview(client: Client, regression: Regression) -> None:
    assert 'href="/projects/snake/"' in client.get("/").content.decode()
    assert f'href="{WHERE}"' in client.get("/projects/snake/").content.decode()
    assert f'href="/regressions/{regression.pk}/"' in client.get(WHERE).content.decode()


def test_hours_of_a_pool_with_a_gpu_are_said_to_be_of_one(client: Client, regression: Regression) -> None:
    assert "of a GPU" not in shown_text(client.get(WHERE))
    pool = regression.series.configuration.pool
    builders.create_machine("gpu-1", pool=pool, fingerprint={"gpus": [{"name": "H100"}]})
    assert "1 h 30 min of a GPU" in shown_text(client.get(WHERE))
