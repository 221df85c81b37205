"""A project of a few lines in a folder of its own, measured by the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import prepared_python

# As `python -m paceline`. Other tests run beside these: a repetition that waited for a processor isn't
# measured again, however long it waited. When it is, tests/harness/test_repetitions.py says. And what the
# machine is worth beside each repetition is asked in a tenth of the time: it took most of the harness's own.
MEASURING_ONCE = """
import sys
from paceline import __main__
from paceline.protocol import case_runner
from paceline.watching import calibration
case_runner.CONTENTION_SHARE = 1.0
calibration.ROUNDS //= 10
sys.exit(__main__.main())
"""
LOOP = """
import paceline
values = []
def push(n):
    values.append(n)
for number in paceline.steps(range(10**6)):
    with paceline.phase("act"):
        push(number)
    with paceline.phase("learn"):
        with paceline.phase("sum"):
            sum(range(20000))
"""


@dataclass
class Project:
    """A folder with a manifest of one benchmark, `tiny`, and its script."""

    folder: Path
    # Whether its processes have PyTorch imported when they begin, not the harness alone.
    prepared: bool = False
    # Whether they are new ones, for what depends on that.
    new: bool = False
    # What its command line runs.
    code: str = MEASURING_ONCE

    def write(self, script: str, **settings: object) -> None:
        chosen = {"version": 1, "script": "tiny.py", "warmup_steps": 10, "steps": 100, "repetitions": 2}
        lines = [f"{name} = {_format_toml(value)}" for name, value in {**chosen, **settings}.items()]
        (self.folder / "paceline.toml").write_text("\n".join(["[benchmarks.tiny]", *lines]))
        (self.folder / "tiny.py").write_text(script)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-c", self.code, *arguments]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        start = partial(prepared_python.run_prepared, with_torch=self.prepared)
        if self.new:
            start = partial(subprocess.run, text=True)
        return start(
            self.command(*arguments),
            cwd=self.folder,
            env=environment,
            capture_output=True,
            timeout=120,
        )

    def measure(self, *arguments: str) -> dict[str, Any]:
        ended = self.call("run", "tiny", "--document", "out.json", *arguments)
        assert ended.returncode == 0, ended.stderr
        raw: dict[str, Any] = json.loads((self.folder / "out.json").read_text())
        return raw


def _format_toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_format_toml(member)}" for name, member in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose script loops over cheap steps with three phases."""
    tiny = Project(tmp_path)
    tiny.write(LOOP)
    return tiny


@pytest.fixture
def prepared_project(tmp_path: Path) -> Project:
    """A project whose processes have PyTorch imported when they begin."""
    return Project(tmp_path, prepared=True)


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of that project, measured once."""
    tiny = Project(tmp_path_factory.mktemp("measured"), new=True)
    # Long enough for a few samples on the telemetry's grid.
    tiny.write(f"import time\ntime.sleep(0.4)\n{LOOP}", repetitions=3)
    return tiny.measure()


Value = Callable[..., Any]


@pytest.fixture
def value() -> Value:
    """Look a metric up in a raw document: `value(raw, "phase_time", "learn")`."""

    def find(raw: dict[str, Any], name: str, phase: str | None = None) -> Any:
        return next(row for row in raw["metrics"] if (row["name"], row["phase"]) == (name, phase))

    return find
