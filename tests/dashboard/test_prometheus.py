from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from paceline.manifest import Benchmark
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries

from dashboard import dispatch, failed_jobs, runs
from dashboard.models import Case, Commit, Run

pytestmark = pytest.mark.django_db
Labels = frozenset[tuple[str, str]]


def read_metrics(client: Client) -> dict[tuple[str, Labels], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def make_labels(**labels: str) -> Labels:
    return frozenset(labels.items())


def test_an_empty_site_has_metrics(client: Client) -> None:
    assert read_metrics(client)["paceline_waiting_jobs", make_labels(kind="triggers")] == 0


def test_the_queue_runs_and_machines_are_told(
    client: Client, make_commit: Callable[[int], Commit], case: Case, benchmark: Benchmark
) -> None:
    first = runs.request_run(make_commit(1), case, benchmark)
    second = runs.request_run(make_commit(2), case, benchmark)
    now = timezone.now()
    Run.objects.filter(pk=second.pk).update(requested_at=now - timedelta(seconds=90))
    Run.objects.filter(pk=first.pk).update(
        state="done",
        requested_at=now - timedelta(seconds=40),
        claimed_at=now - timedelta(seconds=30),
        finished_at=now - timedelta(seconds=10),
    )
    runs.record_machine("gpu-1", "default", {})
    failed_jobs.note_failure(dispatch.JUDGE, (first.pk,), KeyError("x"))
    found = read_metrics(client)
    assert found["paceline_runs", make_labels(pool="default", state="requested")] == 1
    assert 90 <= found["paceline_oldest_requested_run_seconds", make_labels(pool="default")] < 100
    assert found["paceline_runs_ended_last_hour", make_labels(state="done", failure="")] == 1
    assert found["paceline_run_wait_seconds", make_labels(quantile="0.5")] == pytest.approx(10)
    assert found["paceline_run_seconds", make_labels(quantile="0.95")] == pytest.approx(20)
    assert found["paceline_machine_silent_seconds", make_labels(machine="gpu-1", pool="default")] < 10
    assert found["paceline_waiting_jobs", make_labels(kind="judgements")] == 1
    assert found["paceline_waiting_jobs", make_labels(kind="failed_jobs")] == 1


def test_they_cost_the_same_few_questions(
    client: Client,
    make_commit: Callable[[int], Commit],
    case: Case,
    benchmark: Benchmark,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for position in range(1, 20):
        runs.request_run(make_commit(position), case, benchmark)
    with django_assert_max_num_queries(14):
        client.get("/metrics")
