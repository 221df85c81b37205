from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Q
from paceline.manifest import Benchmark
from pytest_django import DjangoAssertNumQueries

from dashboard import dispatch, ingest, runs
from dashboard.host_protocol import RunAssignment
from dashboard.ingest import BadDocument
from dashboard.leases import LeaseLost
from dashboard.models import Case, Commit, Document, Metric, Point, Run, Series, SeriesLatest, Telemetry
from dashboard.runs import WrongState
from tests.dashboard.documents import document_body, encoded_document, metric_row, telemetry_row
from tests.dashboard.ingest.conftest import Storing

pytestmark = pytest.mark.django_db
BENCHMARK, PROTOCOL = document_body()["benchmark"], document_body()["protocol"]
MANY = [
    metric_row("throughput", 1.0),
    metric_row("step_time", 1.0),
    *(metric_row("phase_time", 0.001, f"phase/{number}", headline=number < 4) for number in range(298)),
]


def test_a_document_becomes_rows(run: Run, assignment: RunAssignment) -> None:
    ingest.store_document(assignment.lease, encoded_document())
    run.refresh_from_db()
    assert (run.state, run.progress, run.tainted) == ("done", 1, False)
    assert run.document.body == document_body()
    assert (run.warning_codes, run.calibration) == ([], 0.01)
    point = Point.objects.get(series__metric__name="throughput")
    assert (point.value, point.low, point.high, point.position) == (100, 99, 101, run.commit.position)
    assert point.samples == [100, 100, 100]


def test_phases_have_series_of_their_own(assignment: RunAssignment) -> None:
    ingest.store_document(assignment.lease, encoded_document())
    phases = Series.objects.filter(metric__name="phase_time").values_list("phase", flat=True)
    assert set(phases) == {"learn/push", "rollout"}
    calls = Series.objects.get(metric__name="function_calls")
    assert (calls.phase, calls.exact, calls.headline) == ("learn/push", True, False)
    assert Series.objects.filter(headline=True).count() == 2


def test_a_missing_reading_stays_missing(run: Run, assignment: RunAssignment) -> None:
    ingest.store_document(assignment.lease, encoded_document())
    channel = Telemetry.objects.get(run=run)
    assert (channel.channel, channel.values) == ("cpu_utilization", [99, None, 100])


def test_a_tainting_warning_taints_the_run_and_its_points(run: Run, assignment: RunAssignment) -> None:
    doubt = {"code": "throttled", "message": "It throttled.", "advice": "Cool it.", "taints": True}
    ingest.store_document(assignment.lease, encoded_document(warnings=[doubt]))
    run.refresh_from_db()
    assert run.tainted
    assert run.document.body["warnings"] == [doubt]
    assert run.warning_codes == ["throttled"]
    counted = Q(series__metric__kind="counter")
    assert not Point.objects.exclude(counted).filter(tainted=False).exists()
    assert not Point.objects.filter(counted, tainted=True).exists()


def test_code_that_learns_too_little_spoils_its_counters_too(assignment: RunAssignment) -> None:
    doubt = {"code": "quality_below_guard", "message": "Score 1.", "advice": "Look.", "taints": True}
    ingest.store_document(assignment.lease, encoded_document(warnings=[doubt]))
    assert not Point.objects.filter(tainted=False).exists()


def test_the_compared_environment_is_stored_apart_and_once(measure: Callable[..., Run]) -> None:
    upgraded = document_body()["environment"] | {"python": "3.12.1"}
    stored = [measure(5), measure(6), measure(7, environment=upgraded)]
    first, second, third = (Run.objects.get(pk=run.pk).environment for run in stored)
    assert first == second != third
    assert third is not None
    assert (third.values["python"], third.values["os"]) == ("3.12.1", "Debian 12")
    assert "cpu_count" not in third.values


def test_the_same_document_again_changes_nothing(run: Run, assignment: RunAssignment) -> None:
    ingest.store_document(assignment.lease, encoded_document())
    ingest.store_document(assignment.lease, encoded_document())
    assert Document.objects.count() == 1
    assert Point.objects.count() == 5
    with pytest.raises(LeaseLost):
        ingest.store_document(assignment.lease, encoded_document(throughput=5.0))


def test_a_lost_lease_stores_nothing(run: Run, assignment: RunAssignment) -> None:
    with pytest.raises(LeaseLost):
        ingest.store_document(replace(assignment.lease, token=uuid4()), encoded_document())
    runs.cancel_run(run.pk, "ada")
    with pytest.raises(LeaseLost):
        ingest.store_document(assignment.lease, encoded_document())
    assert not Document.objects.exists()
    assert not Series.objects.exists()


def test_a_run_that_is_not_storing_stores_nothing(run: Run) -> None:
    assignment = runs.claim_run("default", "gpu-1")
    assert assignment is not None
    with pytest.raises(WrongState):
        ingest.store_document(assignment.lease, encoded_document())
    assert not Point.objects.exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"benchmark": {**BENCHMARK, "name": "other"}}, "benchmark.name: is 'other'"),
        ({"benchmark": {**BENCHMARK, "case": "size=2"}}, "benchmark.case: is 'size=2'"),
        ({"protocol": {**PROTOCOL, "quick": True}}, "protocol.quick: is True"),
        ({"metrics": MANY[:1] + MANY[2:]}, "metrics: step_time is missing"),
        ({"metrics": [*MANY, metric_row(f"count.{'x' * 120}", 1.0)]}, r"metrics\[300\].name: has 126 char"),
        ({"telemetry": [telemetry_row(0, "cpu", [])] * 2}, r"telemetry\[1\]: cpu of repetition 0"),
        (
            {"metrics": [metric_row("throughput", float("nan")), MANY[1]]},
            r"metrics\[0\].value: must be a fin",
        ),
        ({"metrics": [{**MANY[0], "value": 1e300}, *MANY[1:]]}, r"metrics\[0\].value: "),
        ({"metrics": [{**MANY[0], "name": "<script>\a"}, *MANY[1:]]}, r"metrics\[0\].name: "),
    ],
)
def test_a_bad_document_is_refused_whole(
    run: Run, assignment: RunAssignment, changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(BadDocument, match=sentence):
        ingest.store_document(assignment.lease, encoded_document(**changes))
    run.refresh_from_db()
    assert run.state == Run.State.STORING
    assert not Metric.objects.exists()


def test_garbage_is_refused(assignment: RunAssignment) -> None:
    for garbage in (b"", b"\xff\xfe", b"[]", b"{" * 100_000, b'{"a": "\\u0000"}'):
        with pytest.raises(BadDocument):
            ingest.store_document(assignment.lease, garbage)


def test_judgement_is_asked_for_once_it_is_stored(
    run: Run,
    assignment: RunAssignment,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    sent = []
    monkeypatch.setattr(dispatch, "_publish_messages", lambda *message: sent.append(message))
    with django_capture_on_commit_callbacks(execute=True):
        ingest.store_document(assignment.lease, encoded_document())
    assert sent == [(dispatch.JUDGE, (run.pk,), dispatch.SERVICE, 1)]


def test_queries_do_not_grow_with_the_metrics(
    assignment: RunAssignment, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(22):
        ingest.store_document(assignment.lease, encoded_document(metrics=MANY))
    assert Point.objects.count() == 300


def test_three_hundred_metrics_ask_as_little_as_a_few(
    measure: Callable[..., Run],
    run: Run,
    assignment: RunAssignment,
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    for position in range(10, 13):
        measure(position, metrics=MANY)
    document = encoded_document(metrics=MANY)
    with django_assert_max_num_queries(25):
        ingest.store_document(assignment.lease, document)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_was_measured_twice_has_one_document(run: Run, storing: Storing) -> None:
    lost = storing(run)
    Run.objects.update(lease_until="2020-01-01T00:00:00Z")
    runs.requeue_lost_runs()
    ingest.store_document(storing(run).lease, encoded_document(throughput=2.0))
    with pytest.raises(LeaseLost):
        ingest.store_document(lost.lease, encoded_document(throughput=1.0))
    assert Document.objects.count() == 1
    assert Point.objects.get(series__metric__name="throughput").value == 2


@pytest.mark.django_db(transaction=True)
def test_documents_at_once_do_not_disturb_each_other(
    make_commit: Callable[[int], Commit], case: Case, benchmark: Benchmark, storing: Storing
) -> None:
    held = [storing(runs.request_run(make_commit(position), case, benchmark)) for position in range(4)]

    def store(assignment: RunAssignment) -> None:
        try:
            ingest.store_document(assignment.lease, encoded_document(throughput=float(assignment.run_id)))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        # Each of them twice, as after an answer that got lost.
        list(threads.map(store, [*held, *held]))
    assert Document.objects.count() == 4
    assert Metric.objects.count() == 4
    latest = SeriesLatest.objects.get(series__metric__name="throughput")
    assert latest.recent == [float(assignment.run_id) for assignment in held]
