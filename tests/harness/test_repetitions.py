"""Which repetitions count: the processor's waiting times are given, nothing is measured."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from paceline import manifest
from paceline.measurement import MeasurementRequest, TimedRepetition
from paceline.protocol import case_runner
from paceline.watching import nvml

MANIFEST = '[benchmarks.tiny]\nversion = 1\nscript = "t.py"\nsteps = 10\nwarmup_steps = 1\nrepetitions = 3\n'


def waits_after_repeating(
    monkeypatch: pytest.MonkeyPatch, waits: Sequence[float], seconds: float = 60
) -> tuple[list[float], list[float]]:
    """Return how long each repetition that counts waited, and each that was set aside."""
    benchmark = manifest.parse_manifest(MANIFEST, "paceline.toml").benchmarks["tiny"]
    request = MeasurementRequest(benchmark, benchmark.cases[0], Path(), quick=False)
    devices = nvml.Devices()
    runner = case_runner._CaseRunner(request, Path(), devices, perf_counter() + seconds, lambda *_: None)

    def timed(_runner: object, index: int) -> TimedRepetition:
        seen: dict[str, Any] = {"result": {"waited": waits[index]}, "environment": {}, "sampler": None}
        seen |= {"calibration_before": 0.01, "calibration_after": 0.01}
        return TimedRepetition(index=index, started=0, took=1, **seen)

    monkeypatch.setattr(case_runner._CaseRunner, "measure_repetition", timed)
    counting, aside = runner.measure_repetitions()
    assert [repetition.index for repetition in counting] == [0, 1, 2]
    return [repetition.waited for repetition in counting], [repetition.waited for repetition in aside]


def test_calm_repetitions_are_taken_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits_after_repeating(monkeypatch, [0.09, 0.0, 0.05]) == ([0.09, 0.0, 0.05], [])


def test_a_disturbed_one_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits_after_repeating(monkeypatch, [0.0, 0.4, 0.05, 0.02]) == ([0.0, 0.05, 0.02], [0.4])


def test_where_all_are_disturbed_the_calmest_count(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [0.9, 0.2, 0.5, 0.4, 0.8, 0.3]
    assert waits_after_repeating(monkeypatch, waits) == ([0.2, 0.4, 0.3], [0.9, 0.5, 0.8])


def test_no_time_is_taken_that_the_counting_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits_after_repeating(monkeypatch, [0.9, 0.2, 0.5], seconds=2.5) == ([0.9, 0.2, 0.5], [])
