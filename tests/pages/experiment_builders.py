"""Experiments as the pages' tests need them: asked for, and ended with pairs, phases and functions."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from paceline.metrics import describe_metric

from dashboard.models import Commit, Configuration, Experiment, Metric
from tests.pages import builders

MANIFEST = """
[benchmarks.walker]
version = 1
script = "walker.py"
steps = 10
cases = [{ fast = true }]
"""
FUNCTION = {"file": "replay.py", "line": 4, "phase": "learn", "cumulative": 0.1}


def get_configuration(case_of: Commit, quick: bool = False, **params: Any) -> Configuration:
    project = case_of.project
    key = ",".join(f"{name}={value}" for name, value in sorted(params.items()))
    case, _ = project.cases.get_or_create(benchmark="walker", key=key, defaults={"params": params})
    pool = builders.get_pool()
    return Configuration.objects.get_or_create(case=case, version=1, pool=pool, quick=quick)[0]


def create_experiment(line: list[Commit], metric: str = "step_time", **fields: Any) -> Experiment:
    """A person's, of the first and the last of these commits."""
    known = describe_metric(metric)
    assert known is not None
    row, _ = Metric.objects.get_or_create(
        name=metric, better=known.better, defaults={"unit": known.unit, "kind": known.kind}
    )
    configuration = get_configuration(line[0], fast="true")
    values: dict[str, Any] = {"purpose": "person", "question": "estimate", "precision": 0.01}
    values |= {"base_commit": line[0], "head_commit": line[-1], "phase": ""}
    values |= {"base_configuration": configuration, "head_configuration": configuration}
    return Experiment.objects.create(project=line[0].project, metric=row, **(values | fields))


def create_ended(line: list[Commit], ratio: float = 1.38, **fields: Any) -> Experiment:
    """One that is done, with six pairs of which the third was disturbed, phases and functions."""
    values: dict[str, Any] = {"state": "done", "verdict": "estimated", "finished_at": timezone.now()}
    values |= {"ratio": ratio, "low": ratio * 0.99, "high": ratio * 1.01, "seconds": 72, "most_pairs": 400}
    values |= {"machine": builders.create_machine("gpu-1"), "commands": ["git checkout abc && measure <it>"]}
    values |= {"profiles": {"base": build_profile(1, 0.001), "head": build_profile(256, 0.005)}}
    row = create_experiment(line, **(values | fields))
    for index in range(6):
        known = {"ratio": ratio, "low": ratio * (0.9 + index / 100), "high": ratio * 1.1}
        row.pairs.create(
            index=index,
            base_first=index % 2 == 0,
            base=0.010,
            head=0.010 * ratio,
            disturbed=index == 2,
            seconds=12,
            phases={"learn": [0.004, 0.0078], "act": [0.006, 0.006]},
            **(known if index > 3 else {}),
        )
    return row


def build_profile(calls: float, own: float) -> dict[str, Any]:
    functions = [
        {**FUNCTION, "function": "push", "calls": calls, "self": own},
        {**FUNCTION, "function": "same", "calls": 2, "self": 0.002},
    ]
    return {"steps": 20, "functions": functions}
