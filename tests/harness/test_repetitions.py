"""Which repetitions count: the processor's waiting times are given, nothing is measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest
from paceline import manifest
from paceline.measurement import MeasurementRequest, TimedRepetition
from paceline.protocol import case_runner
from paceline.protocol.fitting_processes import count_fitting
from paceline.watching import nvml

from tests.harness.fake_nvml import Device, FakeNvml

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


GIGABYTE = 10**9


def took_memory(
    resident: int, reserved: int | None = None, read: int | None = None, path: str = "cuda"
) -> TimedRepetition:
    """A repetition on a host of 100 GB with a device of 80 GB; `read` is NVML's reading."""
    rows = [{"channel": "gpu_memory", "device": 0, "peak": read}]
    sampler: Any = SimpleNamespace(
        peak=lambda _end: resident,
        channels=lambda _window: rows,
        find_device=lambda *_: 0,
        co_tenants=nvml.CoTenants(),
    )
    held = None if reserved is None else {"reserved": reserved}
    result = {"device_memory": held, "devices": [0], "window": {"start": 0.0, "end": 1.0}}
    environment = {
        "path": path,
        "memory_bytes": 100 * GIGABYTE,
        "gpus": [{"name": "H100", "memory_bytes": 80 * GIGABYTE}],
    }
    calibrations = {"calibration_before": 0.01, "calibration_after": 0.01}
    return TimedRepetition(0, result, environment, 0.0, 1.0, sampler=sampler, **calibrations)


@pytest.mark.parametrize(
    ("repetition", "at_once"),
    [
        (took_memory(GIGABYTE, 20 * GIGABYTE, 22 * GIGABYTE), 3),
        (took_memory(GIGABYTE, 50 * GIGABYTE), 1),
        (took_memory(GIGABYTE, 20 * GIGABYTE, 60 * GIGABYTE), 1),
        # An allocator of the code's own tells nothing.
        (took_memory(GIGABYTE), 1),
        (took_memory(GIGABYTE, path="cpu"), 5),
        (took_memory(40 * GIGABYTE, path="cpu"), 2),
        (took_memory(99 * GIGABYTE, path="cpu"), 1),
    ],
)
def test_so_many_processes_run_at_once_as_fit_into_the_memory(
    repetition: TimedRepetition, at_once: int
) -> None:
    assert count_fitting([repetition], 5) == at_once


@pytest.mark.parametrize(("mode", "groups"), [(0, [2, 1]), (3, [1, 1, 1])])
def test_what_doesnt_fit_runs_afterwards(
    monkeypatch: pytest.MonkeyPatch, mode: int, groups: list[int]
) -> None:
    benchmark = manifest.parse_manifest(MANIFEST, "paceline.toml").benchmarks["tiny"]
    request = MeasurementRequest(benchmark, benchmark.cases[0], Path(), quick=False)
    api: Any = FakeNvml([Device(compute_mode=mode)])
    devices = nvml._probe_with(api, {})
    runner = case_runner._CaseRunner(request, Path(), devices, perf_counter() + 60, lambda *_: None)
    ran: list[int] = []

    def run(_runner: object, plans: Sequence[object], *_: object) -> list[object]:
        ran.append(len(plans))
        return list(plans)

    monkeypatch.setattr(case_runner._CaseRunner, "_run_at_once", run)
    plans: Any = ["a", "b", "c"]
    timed = [took_memory(GIGABYTE, 30 * GIGABYTE)]
    assert runner._run_side_by_side(plans, "counting", 0.0, timed) == plans
    assert ran == groups

    # Groups of ranks never run beside each other: their code may name a port.
    ran.clear()
    timed = [replace(timed[0], ranks=[timed[0].result] * 2)]
    assert runner._run_side_by_side(plans, "counting", 0.0, timed) == plans
    assert ran == [1, 1, 1]
