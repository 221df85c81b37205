"""A trainer with a service beside it, measured for real."""

import os
from pathlib import Path
from typing import Any

import pytest
from paceline.watching import process_usage

from tests.harness.conftest import Project

TRAINER = """
import subprocess, sys, time
import paceline
service = subprocess.Popen([sys.executable, "service.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
service.stdout.readline()
for number in paceline.steps(range(10**6)):
    time.sleep(0.002)
service.stdin.close()
"""
SERVICE = """
import sys
table = bytearray(b"x" * 60_000_000)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("watched")
    (folder / "service.py").write_text(SERVICE)
    project = Project(folder)
    project.write(TRAINER, steps=600, repetitions=1)
    return project.measure("--quick")


def test_a_service_is_told_from_its_trainer(watched: dict[str, Any]) -> None:
    rows = {row["name"]: row for row in watched["processes"]}
    assert set(rows) == {"main", "service.py"}
    assert rows["service.py"]["peak_memory"] > 60e6 > rows["main"]["peak_memory"]
    assert rows["service.py"]["count"] == 1
    assert rows["service.py"]["cpu_utilization"] < 20


def test_the_tree_has_the_memory_of_both(watched: dict[str, Any]) -> None:
    values = {row["name"]: row["value"] for row in watched["metrics"] if row["phase"] is None}
    assert values["peak_memory"] >= max(row["peak_memory"] for row in watched["processes"])
    known = process_usage.proportional_memory(os.getpid()) is not None
    assert ("peak_memory_pss" in values) == known
    assert not known or 60e6 < values["peak_memory_pss"] <= values["peak_memory"] * 1.05
