from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from paceline.manifest import Benchmark

from dashboard import ingest, runs
from dashboard.host_protocol import RunAssignment
from dashboard.models import Case, Commit, Run
from tests.dashboard import documents

Storing = Callable[[Run], RunAssignment]
Measure = Callable[..., Run]


@pytest.fixture
def storing() -> Storing:
    """Brings a requested run to where its document is stored."""

    def advance_to_storing(_: Run) -> RunAssignment:
        assignment = runs.claim_run("default", "gpu-1")
        assert assignment is not None
        for state in ("preparing", "measuring", "storing"):
            runs.advance_run(assignment.lease, state)
        return assignment

    return advance_to_storing


@pytest.fixture
def assignment(run: Run, storing: Storing) -> RunAssignment:
    return storing(run)


@pytest.fixture
def measure(
    make_commit: Callable[[int], Commit], case: Case, benchmark: Benchmark, storing: Storing
) -> Measure:
    """The whole life of a run at a position, with a document of its own."""

    def measure_commit(position: int, *, branch: str = "main", version: int = 1, **changes: object) -> Run:
        commit = make_commit(position)
        Commit.objects.filter(pk=commit.pk).update(branch=branch)
        run = runs.request_run(commit, case, replace(benchmark, version=version))
        described = {**documents.document_body()["benchmark"], "version": version}
        ingest.store_document(storing(run).lease, documents.encoded_document(benchmark=described, **changes))
        return run

    return measure_commit
