"""Checks as the pages' tests need them: in each state, answered by pairs in each way."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from paceline.metrics import describe_metric

from dashboard.experiments.counted_sides import LEAST_COUNTINGS
from dashboard.models import Check, CheckedCase, Commit, Experiment, PullRequest
from tests.pages import builders
from tests.pages.experiment_builders import build_profile, create_experiment


def create_pull_request(line: list[Commit], number: int = 7, **fields: Any) -> PullRequest:
    values = {"title": "Sample <faster>", "author": "grace", "url": "https://forge.example/7"}
    values |= {"head_hash": line[-1].hash, "head_ref": "faster", "base_ref": "main"}
    return PullRequest.objects.create(project=line[0].project, number=number, **(values | fields))


def create_check(line: list[Commit], pull_request: PullRequest | None = None, **fields: Any) -> Check:
    """Of the last of these commits onto the branch of the first."""
    values = {"head_hash": line[-1].hash, "onto": "main", "minutes": 20, "floor": 0.03}
    values |= {"base_commit": line[0], "head_commit": line[-1]}
    return Check.objects.create(
        project=line[0].project, pull_request=pull_request, **{**values, "state": "done", **fields}
    )


def measure_case(check: Check, line: list[Commit], ratio: float, **fields: Any) -> CheckedCase:
    """With twelve pairs in which the head takes `ratio` times as long, in the phase `learn`."""
    ended = {"state": "done", "verdict": "not worse", "finished_at": timezone.now(), "seconds": 72.0}
    profiles = {"base": build_profile(1, 0.001), "head": build_profile(256, 0.005)}
    for row in (row for profile in profiles.values() for row in profile["functions"]):
        row["cumulative"] = row["self"]
    experiment = create_experiment(
        line,
        **{"question": "bound", "purpose": "check", "floor": 0.03, "precision": None, "ratio": ratio},
        **{"machine": builders.create_machine("gpu-1"), "commands": ["git checkout <it>"]},
        **{"profiles": profiles, **ended, **fields},
    )
    add_pairs(experiment, ratio)
    return CheckedCase.objects.create(
        of=check, configuration=experiment.head_configuration, experiment=experiment, is_control=ratio == 1
    )


def add_pairs(experiment: Experiment, ratio: float) -> None:
    for index in range(12):
        noise = 1 + 0.002 * (index % 3)
        memory = {"unit": "B", "better": "lower", "kind": "memory", "base": 1e8, "head": 1e8}
        experiment.pairs.create(
            index=index, base_first=index % 2 == 0, base=0.01 * noise, head=0.01 * ratio, seconds=6,
            phases={"learn": [0.008, 0.008 + 0.01 * (ratio - 1)], "act": [0.002, 0.002]},
            others={"peak_memory": memory},
        )  # fmt: skip


def grow_memory(row: CheckedCase, ratio: float, noise: float = 0.0) -> None:
    """Let the head need this much memory in each pair, more and less by `noise` from pair to pair."""
    for pair in row.experiment.pairs.all():
        wave = (-1, 0, 1)[pair.index % 3]
        pair.others["peak_memory"]["head"] = 1e8 * ratio * (1 + noise * wave)
        pair.save()


def count_sides(row: CheckedCase, often: int = LEAST_COUNTINGS, **counts: tuple[float, float]) -> None:
    """Let both sides have counted this of each counter; by itself as often as it is believed."""
    for index, side in enumerate(("base", "head")):
        row.experiment.profiles[side]["counters"] = {
            name: {
                "unit": describe_metric(name).unit,
                "better": "lower",
                "headline": False,
                "samples": [both[index]] * often,
            }
            for name, both in counts.items()
        }
    row.experiment.save()
