"""Benchmarks are scripts whose own folder comes first on their path; here they are imported the same way."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent.parent
SNAKE = ROOT / "trainers" / "snake_dqn"


def import_script(folder: Path, name: str) -> ModuleType:
    """Import a file of a benchmark's folder, and leave no name of it behind."""
    names = [file.stem for file in folder.glob("*.py")]
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))
        for other in names:
            sys.modules.pop(other, None)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def train() -> ModuleType:
    return import_script(SNAKE, "train")


@pytest.fixture(scope="session")
def environment() -> ModuleType:
    return import_script(SNAKE, "environment")
