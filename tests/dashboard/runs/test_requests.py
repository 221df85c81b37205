from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from django.db import connection
from paceline.manifest import Benchmark

from dashboard import dispatch, runs
from dashboard.models import Case, Commit, Run

pytestmark = pytest.mark.django_db


def test_a_request_says_what_the_manifest_said(run: Run) -> None:
    assert (run.state, run.version, run.repetitions, run.time_limit) == ("requested", 1, 3, 60)
    assert run.pool.name == "default"


def test_the_same_again_is_the_same_run(run: Run, benchmark: Benchmark) -> None:
    assert runs.request_run(run.commit, run.case, benchmark) == run
    runs.claim_run("default", "gpu-1")
    assert runs.request_run(run.commit, run.case, benchmark) == run


@pytest.mark.parametrize("end", Run.TERMINAL)
def test_a_run_that_ended_can_be_measured_again(run: Run, benchmark: Benchmark, end: str) -> None:
    Run.objects.filter(pk=run.pk).update(state=end)
    assert runs.request_run(run.commit, run.case, benchmark) != run


def test_another_version_pool_or_a_quick_run_is_another(run: Run, benchmark: Benchmark) -> None:
    others = [
        runs.request_run(run.commit, run.case, replace(benchmark, version=2)),
        runs.request_run(run.commit, run.case, benchmark, pool="h200"),
        runs.request_run(run.commit, run.case, benchmark, quick=True),
    ]
    assert len({run.pk, *(other.pk for other in others)}) == 4
    assert others[2].repetitions == 2


def test_a_request_wakes_workers_once_it_is_committed(
    run: Run,
    benchmark: Benchmark,
    make_commit: Callable[[int], Commit],
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    woken = []
    monkeypatch.setattr(dispatch, "_publish_messages", lambda *message: woken.append(message))
    wanted = [(make_commit(position), run.case, benchmark) for position in (5, 6)]
    with django_capture_on_commit_callbacks(execute=True):
        runs.request_runs(wanted, pool="h200")
        assert woken == []
    assert woken == [(dispatch.MEASURE, ("h200",), "pool.h200", 2)]


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_make_one_run(
    make_commit: Callable[[int], Commit], case: Case, benchmark: Benchmark
) -> None:
    commit, together = make_commit(1), Barrier(6)

    def ask(_: int) -> int:
        try:
            together.wait()
            return runs.request_run(commit, case, benchmark).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(ask, range(6)))) == 1
    assert Run.objects.count() == 1
