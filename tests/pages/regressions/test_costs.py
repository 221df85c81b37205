"""What a regression costs, what proving costs, and how often alarms were right, as pages say it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import Commit, Experiment, ExperimentPair, Project, Regression, Run, Series
from dashboard.querysets import alarm_tallies as tallies
from dashboard.querysets import regressions as read
from dashboard.querysets.costs import weekly_cost
from dashboard.sentences.regressions.costs import cost_sentence
from tests.dashboard import factories
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def trained_project(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What each test's `line` is read from."""
    with share_rows(django_db_blocker, create_trained_project):
        yield


def create_trained_project() -> None:
    builders.create_history(count=6, step_at=2)
    Project.objects.update(training_hours_per_week=200)


@pytest.fixture
def line(trained_project: None, db: None) -> list[Commit]:
    return list(Commit.objects.order_by("position"))


@pytest.fixture
def regression(line: list[Commit]) -> Regression:
    return create_confirmed_regression(line, 2)


def create_confirmed_regression(
    line: list[Commit], at: int, metric: str = "step_time", ratio: float = 1.38
) -> Regression:
    series = builders.headline_series(line[0].runs.get().case, metric)
    regression = builders.create_regression(series, line[at - 1], line[at], ratio, state="confirmed")
    return read.regressions_with_related().get(pk=regression.pk)


def create_proof(
    regression: Regression, verdict: str, pairs: int = 2, purpose: str = "proof", **fields: Any
) -> Experiment:
    base, head = regression.last_good, regression.first_bad
    values = {"ratio": 1.315, "low": 1.28, "high": 1.35, "machine": builders.create_machine()} | fields
    experiment = factories.create_ended_experiment(regression, verdict, base, head, purpose, **values)
    for index in range(pairs):
        ExperimentPair.objects.create(
            experiment=experiment, index=index, base_first=True, base=1, head=1.3, seconds=30
        )
    return experiment


def test_it_costs_what_its_size_says(client: Client, regression: Regression) -> None:
    create_proof(regression, "confirmed", ratio=1.5, low=1.4, high=1.6)
    regression.ratio, regression.low, regression.high = 1.315, 1.28, 1.35
    regression.save()
    sentence = "At 200 machine-hours a week of training this costs 63 machine-hours a week [56,\xa070]."
    assert cost_sentence(weekly_cost(regression)) == sentence
    assert sentence in client.get(f"/regressions/{regression.pk}/").content.decode()


def test_a_lower_rate_costs_as_much_as_a_longer_step(line: list[Commit]) -> None:
    regression = create_confirmed_regression(line, 2, "throughput", 0.8)
    assert "this costs 50 machine-hours a week" in cost_sentence(weekly_cost(regression))


def test_hours_of_a_machine_with_a_gpu_are_gpu_hours(regression: Regression) -> None:
    Run.objects.update(fingerprint={"gpus": [{"name": "H200"}]})
    assert "200 GPU-hours a week of training this costs 76 GPU-hours a week" in cost_sentence(
        weekly_cost(regression)
    )


@pytest.mark.parametrize(
    ("metric", "ratio", "fields", "hours"),
    [
        ("step_time", 1.4, {"state": "suspected"}, 200),
        ("step_time", 1.4, {}, None),
        ("peak_memory", 1.4, {}, 200),
        ("step_time", 0.9, {}, 200),
    ],
)
def test_what_costs_no_time_has_no_cost(
    line: list[Commit], metric: str, ratio: float, fields: dict[str, str], hours: float | None
) -> None:
    regression = create_confirmed_regression(line, 2, metric, ratio)
    Regression.objects.update(**fields)
    Project.objects.update(training_hours_per_week=hours)
    assert cost_sentence(weekly_cost(read.regressions_with_related().get(pk=regression.pk))) == ""


def test_suspicions_are_counted_by_their_newest_verdict(client: Client, line: list[Commit]) -> None:
    twice = create_confirmed_regression(line, 2)
    create_proof(twice, "refuted")
    create_proof(twice, "confirmed")
    create_proof(twice, "none", purpose="bisection")
    create_proof(create_confirmed_regression(line, 3), "refuted")
    create_proof(create_confirmed_regression(line, 4), "untestable", pairs=0)
    sentence = (
        "In the last 30 days 3 suspicions were measured again: 1 confirmed, 1 refuted, 1 undecided. "
        "That took 8 pairs of runs and 4 min of machine time with bisections."
    )
    assert sentence in client.get("/regressions/").content.decode()
    assert sentence in client.get("/regressions/?project=snake").content.decode()


def test_what_is_older_or_another_projects_is_not_counted(regression: Regression) -> None:
    create_proof(regression, "refuted", finished_at=timezone.now() - timedelta(days=31))
    ExperimentPair.objects.update(measured_at=timezone.now() - timedelta(days=31))
    assert tallies.tally_proofs(Project.objects.all()) == tallies.ProofTally(30, 0, 0, 0, 0, 0.0)
    create_proof(regression, "refuted")
    assert [
        tallies.tally_proofs(Project.objects.filter(slug=slug)).refuted for slug in ("snake", "other")
    ] == [
        1,
        0,
    ]
    # It came with an archive: who measured it counts it.
    Project.objects.update(imported_at=timezone.now() + timedelta(minutes=1))
    assert tallies.tally_proofs(Project.objects.all()) == tallies.ProofTally(30, 0, 0, 0, 0, 0.0)


def test_the_series_says_how_often_its_alarms_were_right(client: Client, line: list[Commit]) -> None:
    for at, triaged in ((2, "not real"), (3, "won't fix"), (4, ""), (5, "intended")):
        regression = create_confirmed_regression(line, at)
        Regression.objects.filter(pk=regression.pk).update(triaged=triaged)
    where = f"/series/{regression.series_id}/"
    sentence = (
        "Precision: of 4 alarms here 3 are triaged; people called 1 not real, "
        "so 67 % of the triaged ones were right."
    )
    assert sentence in client.get(where).content.decode()


def test_what_was_neither_told_nor_confirmed_is_no_alarm(regression: Regression) -> None:
    Regression.objects.update(state="refuted", triaged="not real")
    rows = tallies.with_alarm_counts(Series.objects.filter(pk=regression.series_id))
    assert tallies.alarm_precision(rows.get()) == tallies.AlarmPrecision(0, 0, 0)
    builders.create_delivery(regression)
    assert tallies.alarm_precision(rows.get()) == tallies.AlarmPrecision(1, 1, 0)


def test_the_inbox_counts_what_each_filter_lists(client: Client, line: list[Commit]) -> None:
    create_confirmed_regression(line, 2)
    Regression.objects.filter(pk=create_confirmed_regression(line, 3).pk).update(triaged="won't fix")
    shown = client.get("/regressions/?state=open").content.decode()
    assert 'Open <span class="count">1</span>' in shown
    assert "Won&#x27;t fix" in shown
    assert "Recovered" not in shown
