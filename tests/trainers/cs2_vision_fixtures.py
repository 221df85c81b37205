"""What the tests of cs2_vision share: its script, a detector that was trained for a moment, a screen."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import prepared_python
from tests.trainers.conftest import ROOT, import_script

FOLDER = ROOT / "trainers" / "cs2_vision"
HARNESS = str(ROOT / "trainers/harness/src")


@pytest.fixture(scope="module")
def vision() -> ModuleType:
    return import_script(FOLDER, "train")


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights of a detector that was trained for a moment, by one of the processes that test at once."""
    own = tmp_path_factory.getbasetemp()
    path = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "detector.pt"
    with prepared_python.prepared_starts():
        import_script(FOLDER, "weights").make(path, steps=48, seed=0)
    return path


@pytest.fixture
def screen(vision: ModuleType) -> Any:
    game = vision.Game(1)
    for _ in range(30):
        game.step(1)
    return game.screen()
