"""How far alarms can be trusted: what became of each, in how many commits, and how long it took."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.detection.event_rate import estimate_rate
from dashboard.models import Commit, Experiment, Regression, Run
from tests.dashboard import factories
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

WHERE = "/projects/snake/trust/"


def test_a_rate_has_its_exact_interval() -> None:
    rate = estimate_rate(3, 2.0)
    assert rate
    # Garwood's interval of three events, over two hundreds.
    assert (rate.rate, rate.low, rate.high) == pytest.approx((1.5, 0.3093, 4.3836), abs=1e-4)
    none = estimate_rate(0, 1.0)
    assert none
    assert (none.low, none.high) == pytest.approx((0.0, 3.6889), abs=1e-4)
    assert estimate_rate(1, 0) is None


@pytest.fixture
def proven(db: None) -> Regression:
    """Found a day after its commit, proved two hours later, and acknowledged."""
    made = builders.create_stepped_regression(state="confirmed", ratio=1.5)
    now = timezone.now()
    Run.objects.update(finished_at=now)
    Commit.objects.filter(pk=made.first_bad_id).update(committed_at=now - timedelta(days=3))
    Regression.objects.update(opened_at=now - timedelta(days=2), triaged="acknowledged")
    proof = factories.create_ended_experiment(made, "confirmed", made.last_good, made.first_bad)
    proved_at = now - timedelta(days=2) + timedelta(hours=2)
    Experiment.objects.filter(pk=proof.pk).update(finished_at=proved_at)
    return made


def add_regression(made: Regression, **fields: object) -> Regression:
    line = list(made.project.commits.order_by("position"))
    return builders.create_regression(made.series, line[0], line[1], **fields)


def test_verdicts_of_people_and_pairs_are_counted(client: Client, proven: Regression) -> None:
    add_regression(proven, state="refuted")
    commits = Run.objects.filter(state="done").values("commit").distinct().count()
    told, all_of_them = client.get(WHERE).context["records"]
    assert (told.alarms, told.false, told.real, told.open) == (1, 0, 1, 0)
    assert (all_of_them.alarms, all_of_them.false, all_of_them.real, all_of_them.open) == (2, 1, 1, 0)
    assert all_of_them.rate.rate == pytest.approx(100 / commits)
    Regression.objects.filter(pk=proven.pk).update(triaged="not real")
    answer = client.get(WHERE)
    assert (answer.context["records"][0].false, answer.context["records"][0].real) == (1, 0)
    said = shown_text(answer)
    assert "Interleaved runs have refuted 1 suspicion" in said
    assert "called it not real" in said or "called not real" in said


def test_times_are_those_of_real_alarms(client: Client, proven: Regression) -> None:
    times = client.get(WHERE).context["times"]
    assert [row.median for row in times] == pytest.approx([24, 2, 26])
    Regression.objects.update(triaged="not real")
    assert client.get(WHERE).context["times"] == []


def test_only_the_period_counts(client: Client, proven: Regression) -> None:
    Regression.objects.update(opened_at=timezone.now() - timedelta(days=60))
    assert client.get(f"{WHERE}?days=30").context["records"][0].alarms == 0
    assert client.get(f"{WHERE}?days=90").context["records"][0].alarms == 1
    refused = client.get(f"{WHERE}?days=7")
    assert refused.status_code == 400
    assert "days must be one of 30, 90, 365, all, not" in shown_text(refused)


def test_where_nothing_was_measured_nothing_is_said(client: Client) -> None:
    builders.create_project("snake")
    assert "No commit was measured in this period" in shown_text(client.get(WHERE))
