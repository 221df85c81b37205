"""Benchmarks are scripts whose own folder comes first on their path; here they are imported the same way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests import prepared_python

ROOT = Path(__file__).resolve().parent.parent.parent
# What the benchmarks share lies there; a script puts it on its path itself.
sys.path.append(str(ROOT / "trainers"))
SNAKE = ROOT / "trainers" / "snake_dqn"


def run_script(script: Path | str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a benchmark's script in a process that has PyTorch imported, as Python would."""
    return prepared_python.run_prepared([sys.executable, script, *arguments], capture_output=True, **options)


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


def parse_arguments(script: ModuleType, arguments: Sequence[str]) -> Any:
    """A script's arguments as it reads them on this machine."""
    return script.read_arguments(arguments).args


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two GPUs, as torch tells of it; nothing can compute on them."""
    told = {
        "is_available": True,
        "get_device_name": "GPU",
        "get_device_capability": (9, 0),
        "device_count": 2,
    }
    for name, value in told.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    monkeypatch.setattr("benchmark_support.machine.has_triton", lambda: True)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def train() -> ModuleType:
    return import_script(SNAKE, "train")


@pytest.fixture(scope="session")
def environment() -> ModuleType:
    return import_script(SNAKE, "environment")
