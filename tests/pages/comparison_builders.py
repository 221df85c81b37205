"""Histories with a planted difference, and all that a comparison's page can show."""

from __future__ import annotations

import copy
import random
from typing import Any

from dashboard.models import Case, Commit, Run
from tests.pages import builders
from tests.pages.documents import complete_document, create_document, profile_member
from tests.pages.experiment_builders import create_ended

# By the frames below the script's: the phase, and what it takes per step in microseconds.
STACKS = {
    ("act train.py:12", "forward network.py:30"): ("rollout/act", 130),
    ("step environment.py:72",): ("rollout/env_step", 90),
    ("learn train.py:20", "sample replay.py:44"): ("learn/sample", 110),
    ("learn train.py:20", "forward network.py:30"): ("learn/forward", 160),
    ("learn train.py:20", "backward torch/_tensor.py:500"): ("learn/backward", 240),
    ("learn train.py:20", "step torch/optim/adam.py:220"): ("learn/optimizer", 100),
}
PUSH = ("learn train.py:20", "push replay.py:31")


def planted_document(case: Case, step_time: float, seed: int, *, pushes: float = 1.0) -> dict[str, Any]:
    """Of a step that calls `push` so many times, with stacks; the slower one has another torch."""
    body = create_document(case, step_time, random.Random(seed))  # noqa: S311
    profile = body["profile"] = profile_member(0.001)
    push = next(row for row in profile["functions"] if row["function"] == "push")
    push |= {"calls": pushes, "self": 2e-6 * pushes}
    taken = {**STACKS, PUSH: ("learn/push", 2 * pushes)}
    if pushes > 1:
        taken[*PUSH, "copy_all replay.py:60"] = ("learn/push", 100)
    profile["stacks"] = [
        {
            "stack": ["<module> train.py:1", *frames],
            "phase": phase,
            "calls": pushes if PUSH[1] in frames else 1.0,
            "self": 1e-6 * microseconds,
        }
        for frames, (phase, microseconds) in taken.items()
    ]
    calls = next(row for row in body["metrics"] if row["name"] == "function_calls" and not row["phase"])
    calls |= {"value": 411.0 + pushes, "samples": [411.0 + pushes] * 2}
    if pushes > 1:
        profile["functions"].append({**push, "function": "copy_all", "calls": 3.0, "self": 1e-4})
        profile["operations"][0] = {"name": "aten::mm", "count": 30.0}
        body["environment"] = {**body["environment"], "torch": "9.9.9"}
    return body


def plant_difference(slug: str = "snake") -> list[Commit]:
    """Four commits, of which the last is 38 % slower, by 256 calls in the place of one."""
    line = builders.create_commits(builders.create_project(slug), 4)
    case = builders.create_case(line[0].project, variant="optimized")
    for commit in line:
        is_slow = commit is line[-1]
        body = planted_document(
            case, 0.00138 if is_slow else 0.001, commit.position, pushes=256.0 if is_slow else 1.0
        )
        builders.create_measured_run(commit, case, 0.0, body=body)
    line[1].tags = ["v1.0"]
    line[1].save()
    return line


def measure_many(line: list[Commit]) -> tuple[Run, Run]:
    """More of the last commit: a tainted run, two cases, a kernel; and two runs, of two pools."""
    project, slow = line[-1].project, line[-1]
    case = project.cases.get()
    builders.create_measured_run(slow, case, 0.0014, seed=9, tainted=True, warning_codes=["co_tenant"])
    on_gpu, other = (builders.create_case(project, name) for name in ("on_gpu", "other"))
    timeline = complete_document()["device_profile"]
    slower = copy.deepcopy(timeline)
    slower["rows"][0]["count"] = 12.0
    for commit, found in ((line[0], timeline), (line[1], timeline), (slow, slower)):
        body = create_document(on_gpu, 0.001, random.Random(commit.position))  # noqa: S311
        builders.create_measured_run(commit, on_gpu, 0.0, body={**body, "device_profile": found})
    builders.create_measured_run(slow, other, 0.001)
    Commit.objects.create(
        project=project, hash="f" * 40, branch="main", position=9, committed_at=slow.committed_at
    )
    quick = builders.create_measured_run(line[0], on_gpu, 0.001, pool=builders.get_pool("fast"))
    return builders.create_measured_run(slow, on_gpu, 0.0012), quick


def comparison_pages() -> list[str]:
    """Addresses of comparisons that have everything between them that the page can show."""
    line = plant_difference("compared")
    here, there = measure_many(line)
    create_ended([line[0], line[-1]])
    create_ended([line[0], line[-1]], state="measuring", verdict="")
    unprofiled = line[2].runs.get().document
    unprofiled.body["profile"] = None
    unprofiled.save()
    page = "/projects/compared/compare/"
    pair = f"{page}?base={line[0].hash}&head={line[-1].hash}"
    return [
        page,
        f"{page}?base=v1.0&head=main",
        f"{pair}&case=snake_dqn[variant=optimized]&frame=3",
        f"{pair}&case=on_gpu",
        f"{pair}&case=on_gpu&head_case=other",
        f"{page}?base=run:{here.pk}&head=run:{there.pk}",
        f"{page}?base=main&head={'f' * 40}",
        f"{page}?base={line[0].hash}&head={line[2].hash}",
    ]
