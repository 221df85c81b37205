"""Experiments in the database, held by a machine, and pairs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from paceline.metrics import describe_metric

from dashboard import experiments
from dashboard.host_protocol import ExperimentAssignment, PairMeasured
from dashboard.models import Experiment, Machine, Metric, Pool, Project
from tests.dashboard import factories

MakeExperiment = Callable[..., Experiment]


def get_metric(name: str = "step_time") -> Metric:
    known = describe_metric(name)
    assert known is not None
    fields = {"unit": known.unit, "kind": known.kind}
    return Metric.objects.get_or_create(name=name, better=known.better, defaults=fields)[0]


def measured_pair(index: int, base: float, head: float, disturbed: bool = False) -> PairMeasured:
    return PairMeasured(index, index % 2 == 0, base, head, disturbed, 6.0)


def claim_held() -> ExperimentAssignment:
    held = experiments.claim_experiment("default", "bench-1")
    assert held is not None
    return held


@pytest.fixture
def machine(db: None) -> Machine:
    pool, _ = Pool.objects.get_or_create(name="default")
    return Machine.objects.get_or_create(name="bench-1", defaults={"pool": pool})[0]


@pytest.fixture
def make_experiment(project: Project, machine: Machine) -> MakeExperiment:
    """Of a new project's fifth and sixth commit; a test of +40 % of step time unless told otherwise."""
    line = factories.create_commits(project, 8)
    configuration = factories.get_configuration(factories.create_case(project))

    def make(metric: str = "step_time", **fields: Any) -> Experiment:
        values: dict[str, Any] = {
            "purpose": "proof",
            "question": "test",
            "base_commit": line[4],
            "head_commit": line[5],
            "base_configuration": configuration,
            "head_configuration": configuration,
        }
        if fields.get("question") == "estimate":
            values |= {"purpose": "person", "precision": 0.01}
        else:
            values |= {"before": 1.0, "after": 1.4}
        return Experiment.objects.create(project=project, metric=get_metric(metric), **(values | fields))

    return make


@pytest.fixture
def row(make_experiment: MakeExperiment) -> Experiment:
    return make_experiment()


@pytest.fixture
def held(row: Experiment) -> ExperimentAssignment:
    return claim_held()
