"""A project with one tiny benchmark, and runs of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from paceline import manifest

from dashboard import runs
from dashboard.models import Project, Run
from tests.workers import repositories

MANIFEST = """
[benchmarks.tiny]
version = 1
script = "train.py"
params = { size = 10 }
warmup_steps = 2
steps = 20
counting_steps = 5
repetitions = 1
time_limit = 60
"""
TRAIN = """
import paceline

for _ in paceline.steps(range(10**9)):
    with paceline.phase("learn"):
        sum(range(1000))
"""

Requested = Callable[..., Run]


@pytest.fixture
def home(settings: Any, tmp_path: Path) -> Path:
    """A worker's home that nobody else uses."""
    settings.PACELINE_HOME = tmp_path / "home"
    settings.PACELINE_MACHINE = "gpu-1"
    return tmp_path / "home"


@pytest.fixture
def requested(transactional_db: None, tmp_path: Path) -> Requested:
    """A requested run of the benchmark at a commit with these files, beside a script and a manifest."""

    def request(files: dict[str, str] | None = None, **project: Any) -> Run:
        written = {"paceline.toml": MANIFEST, "train.py": TRAIN, **(files or {})}
        source = repositories.create_repository(tmp_path / "source", written)
        return request_run_at(source, repositories.head_commit(source), written["paceline.toml"], **project)

    return request


def request_run_at(source: Path, commit: str, described: str, **more: Any) -> Run:
    project = Project.objects.create(slug="demo", repository=str(source), **more)
    benchmark = manifest.parse_manifest(described, "test").benchmarks["tiny"]
    case = benchmark.cases[0]
    return runs.request_run(
        project.commits.create(hash=commit, branch="main", position=1, committed_at=timezone.now()),
        project.cases.create(benchmark="tiny", key=case.key, params=dict(case.params)),
        benchmark,
    )
