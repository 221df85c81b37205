from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.models import Project
from tests.dashboard.conftest import Repository, copy_repository

MANIFEST = """
[benchmarks.snake]
version = 1
script = "snake/train.py"
steps = 100
params = { fused = true, size = 8 }

[benchmarks.walker]
version = 1
script = "walker.py"
steps = 10
"""
CLAIMS = """
document = "A report"
[[claims]]
id = "fused"
toggle = "fused"
claim = "The fused optimizer is 1.5 times faster"
value = [1.5]
before = { fused = false }
after = { fused = true }
phase = "learn"
[[claims]]
id = "together"
claim = "Acting and learning are faster together"
metric = "phase_time:act+learn"
before = { fused = false }
after = { fused = true }
[[claims]]
id = "share"
claim = "Learning takes most of a step"
metric = "phase_share:learn"
at_least = 0.5
case = {}
[[claims]]
id = "window"
claim = "It is faster over a long window"
steps = 100000
before = { fused = false }
after = { fused = true }
"""


@pytest.fixture(scope="module")
def claiming_commit(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """What each test's `repository` begins as."""
    made = Repository(tmp_path_factory.mktemp("claiming") / "repository")
    write_claims(made, CLAIMS)
    return made


@pytest.fixture
def repository(tmp_path: Path, project: Project, claiming_commit: Repository) -> Repository:
    """Of the project: two benchmarks, one of them with claims."""
    made = copy_repository(claiming_commit, tmp_path / "repository")
    Project.objects.filter(pk=project.pk).update(repository=made.folder)
    project.refresh_from_db()
    return made


def write_claims(repository: Repository, text: str) -> str:
    (repository.folder / "snake").mkdir(exist_ok=True)
    (repository.folder / "snake" / "claims.toml").write_text(text)
    return repository.commit("Claim it", paceline_toml=MANIFEST)
