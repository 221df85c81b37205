"""What a run cost, part by part; and repetitions that end once they have told enough."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from paceline import manifest
from paceline.document import read_document
from paceline.measurement import MeasurementRequest, TimedRepetition
from paceline.protocol import case_runner
from paceline.protocol.enough_repetitions import LOOKS, is_precise_enough
from paceline.reports.report_sections import costs_table
from paceline.watching import nvml

from tests.harness.conftest import Project

PRECISE = """
[benchmarks.tiny]
version = 1
script = "t.py"
steps = 10
repetitions = 5
precision = 0.02
"""
# Sleeps don't depend on how busy the machine is, save that they may last longer.
SLOW_PARTS = """
import time
import paceline
time.sleep(0.3)
for number in paceline.steps(range(10**6)):
    time.sleep(0.002)
time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    tiny = Project(tmp_path_factory.mktemp("costs"))
    tiny.write(SLOW_PARTS, warmup_steps=50, steps=100, repetitions=2, counting_steps=20)
    return tiny.measure()


def find_part(run: dict[str, Any], name: str) -> float:
    return sum(row["seconds"] for row in run["costs"]["parts"] if row["part"] == name)


def test_the_parts_are_the_whole(run: dict[str, Any]) -> None:
    costs = run["costs"]
    assert sum(row["seconds"] for row in costs["parts"]) == pytest.approx(costs["seconds"], rel=1e-6)
    windows = [row["window"]["end"] - row["window"]["start"] for row in run["repetitions"]]
    assert costs["measured"] == find_part(run, "window") == pytest.approx(sum(windows), abs=1e-6)
    # What lies between the steps, readings of memory for one, is no step's.
    assert all(row["seconds"] <= window for row, window in zip(run["repetitions"], windows, strict=True))


@pytest.mark.parametrize(
    ("part", "at_least"),
    [
        ("start", 2 * 0.3),
        ("warmup", 2 * 50 * 0.002),
        ("window", 2 * 100 * 0.002),
        ("after", 2 * 0.2),
        ("counting start", 0.3),
        ("counting warmup", 50 * 0.002),
        ("counting window", 20 * 0.002),
        ("counting after", 0.2),
    ],
)
def test_each_part_has_what_the_script_spent_there(run: dict[str, Any], part: str, at_least: float) -> None:
    assert find_part(run, part) >= at_least
    processes = {row["part"]: row["processes"] for row in run["costs"]["parts"]}
    assert processes[part] == 2


def test_what_did_not_happen_costs_nothing(run: dict[str, Any]) -> None:
    assert {row["part"] for row in run["costs"]["parts"]}.isdisjoint({"sweep", "learning"})


def test_the_report_shows_each_part_with_its_share(run: dict[str, Any]) -> None:
    table = costs_table(read_document(json.dumps(run)))
    assert table.splitlines()[0].startswith("what it cost")
    assert any(line.startswith("counting start") and "%" in line for line in table.splitlines())


def test_alike_repetitions_end_at_the_first_look() -> None:
    assert is_precise_enough([1.0, 1.001, 1.0005], 0.02, 5)
    assert not is_precise_enough([1.0, 1.05, 0.97], 0.02, 5)


@pytest.mark.parametrize(("count", "most"), [(2, 5), (5, 5), (5, 10), (3, 3)])
def test_only_a_fixed_look_ends_them(count: int, most: int) -> None:
    assert not is_precise_enough([1.0] * count, 0.02, most)


def test_without_a_precision_nothing_ends_them() -> None:
    assert not is_precise_enough([1.0, 1.0, 1.0], 0.0, 5)


@pytest.mark.parametrize("spread", [0.003, 0.01])
def test_looking_again_keeps_the_intervals_word(spread: float) -> None:
    """The mean of runs that ended early lies within the precision of the truth in 95 of 100."""
    source, precision, missed, ended = random.Random(5), 0.02, 0, 0  # noqa: S311 - a simulation
    for _ in range(4000):
        times: list[float] = []
        while len(times) < 10 and not is_precise_enough(times, precision, 10):
            times.append(source.lognormvariate(0, spread))
        if len(times) < 10:
            ended += 1
            missed += abs(statistics.fmean(times) - 1) > precision
    assert ended > 1000
    assert missed / ended < 0.05
    assert set(LOOKS) == {3, 4, 6, 10}


def measured_times(
    monkeypatch: pytest.MonkeyPatch, times: Sequence[float], waits: Sequence[float] = ()
) -> list[float]:
    """The step times that count, of repetitions that would take so long and wait so much."""
    benchmark = manifest.parse_manifest(PRECISE, "paceline.toml").benchmarks["tiny"]
    request = MeasurementRequest(benchmark, benchmark.cases[0], Path("/nowhere"), quick=False)
    runner = case_runner._CaseRunner(request, Path(), nvml.Devices(), perf_counter() + 60, lambda *_: None)

    def repeat(_runner: object, index: int) -> TimedRepetition:
        waited = waits[index] if index < len(waits) else 0.0
        seen: dict[str, Any] = {"result": {"waited": waited, "step_time": {"mean": times[index]}}}
        seen |= {"environment": {}, "sampler": None, "calibration_before": 0.01, "calibration_after": 0.01}
        return TimedRepetition(index=index, started=0, took=1, **seen)

    monkeypatch.setattr(case_runner._CaseRunner, "measure_repetition", repeat)
    counting, _ = runner.measure_repetitions()
    return [repetition.result["step_time"]["mean"] for repetition in counting]


def test_the_harness_ends_when_the_repetitions_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured_times(monkeypatch, [1.0, 1.001, 1.002, 9, 9]) == [1.0, 1.001, 1.002]
    assert measured_times(monkeypatch, [1.0, 1.1, 0.9, 1.2, 1.0]) == [1.0, 1.1, 0.9, 1.2, 1.0]


def test_a_disturbed_repetition_is_part_of_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [0.0, 0.5, 0.0, 0.0]
    assert measured_times(monkeypatch, [1.0, 1.4, 1.001, 1.002, 9], waits) == [1.0, 1.001, 1.002]
