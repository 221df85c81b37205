from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.repositories import Mirror, locate_mirror
from tests.dashboard.conftest import Repository


@pytest.fixture
def mirror(repository: Repository, tmp_path: Path) -> Mirror:
    """A mirror of the repository, fetched once."""
    made = locate_mirror(tmp_path / "home", "snakes", str(repository.folder), "main")
    made.fetch()
    return made
