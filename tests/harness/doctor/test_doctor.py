"""`python -m paceline doctor`: what a host without a device can run, and how a device is judged."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from paceline import document
from paceline.claims import load_claims
from paceline.claims.bench import ClaimBench
from paceline.claims.claim import ClaimResult
from paceline.claims.judging import judge_claim
from paceline.doctor import (
    benchmark_parts,
    command,
    device_parts,
    findings,
    framework_parts,
    harness_parts,
    timeline_parts,
)
from paceline.doctor.findings import Finding, LeftOutError, State
from paceline.doctor.workbench import Workbench, make_workload
from paceline.document import Document
from paceline.document_rows import DeviceProfile, IdleRow, TimelineRow
from paceline.manifest import load_manifest
from paceline.manifest.benchmarks import Benchmark, Case
from paceline.watching import nvml
from paceline.watching.measurement_errors import TimeLimitError

from tests.harness.conftest import LOOP, Project
from tests.harness.fake_nvml import Device, FakeNvml, Instance

GOLDEN = Path(__file__).parents[2] / "golden" / "paceline.document-1.json"


def document_with(**values: float) -> Document:
    """A document whose metrics have these values, `name__phase` for one of a phase."""
    raw = json.loads(GOLDEN.read_text())
    for spelling, value in values.items():
        name, _, phase = spelling.replace("quality_", "quality.").partition("__")
        rows = [row for row in raw["metrics"] if (row["name"], row["phase"]) == (name, phase or None)]
        raw["metrics"] = [row for row in raw["metrics"] if row not in rows]
        described = document.metrics.describe_metric(name)
        assert described is not None
        raw["metrics"].append(
            {
                **{"name": name, "unit": described.unit, "better": described.better, "kind": described.kind},
                **{"phase": phase or None, "exact": described.kind == "counter", "headline": False},
                **{"value": value, "low": None, "high": None, "samples": [value]},
            }
        )
    return document.read_document(json.dumps(raw))


def wrong_ones(rows: list[Finding]) -> list[str]:
    return [row.what for row in rows if row.right is False]


@pytest.mark.parametrize(("found", "wrong"), [(0.0101, []), (0.0103, ["device time of short"])])
def test_device_time_is_that_of_the_kernels(found: float, wrong: list[str]) -> None:
    measured = document_with(
        phase_device_time__short=found,
        phase_device_time__long=0.04,
        quality_kineto_short=0.01,
        quality_kineto_long=0.04,
    )
    assert wrong_ones(device_parts.time_findings(measured)) == wrong


def test_a_count_too_many_is_wrong() -> None:
    counts = {"host_device_copies": 4.0, "copied_bytes": 3 * 2**20 + 2**14, "synchronisations": 6.0}
    right = document_with(**counts, scalar_reads=2.0)
    assert "copied_bytes a step" not in wrong_ones(harness_parts.counter_findings(right, on_cuda=True))
    assert wrong_ones(harness_parts.counter_findings(right, on_cuda=False))[:3] == [
        "host_device_copies a step",
        "copied_bytes a step",
        "synchronisations a step",
    ]


def test_whatever_happens_in_a_part_the_next_one_follows(tmp_path: Path) -> None:
    def fail(_: Workbench) -> list[Finding]:
        raise ZeroDivisionError("no step")

    def leave_out(_: Workbench) -> list[Finding]:
        raise LeftOutError("there is no CUDA device")

    bench = Workbench(1e12, tmp_path)
    results = [command.run_part("one", fail, bench), command.run_part("two", leave_out, bench)]
    results.append(command.run_part("three", lambda _: [findings.compare_with("copies", 5, 4, 0)], bench))
    assert [result.state for result in results] == [State.FAILED, State.LEFT_OUT, State.FAILED]
    said = command.format_conclusion(results, tmp_path / "doctor.json")
    assert "2 failed, 1 left out" in said
    assert "Left out, since there is no CUDA device: two." in said
    assert "- one: ZeroDivisionError: no step" in said
    assert "- three: copies is 5, wanted 4" in said


def test_a_noisy_host_is_something_to_look_at(tmp_path: Path) -> None:
    rows = [findings.Finding("load", "9", matters=True), findings.Finding("swap", "none", matters=False)]
    results = [command.run_part("host", lambda _: rows, Workbench(1e12, tmp_path))]
    said = command.format_conclusion(results, tmp_path / "doctor.json")
    assert "What makes this host noisy: load." in said
    assert "Nothing to look at." not in said
    assert "Nothing to look at." in command.format_conclusion([], tmp_path / "doctor.json")


def test_when_the_time_is_over_the_rest_is_left_out(tmp_path: Path) -> None:
    result = command.run_part("late", lambda _: [], Workbench(0.0, tmp_path))
    assert (result.state, result.sentence) == (State.LEFT_OUT, "the time is over")


@pytest.mark.parametrize(("seconds", "state"), [(-1.0, State.LEFT_OUT), (100.0, State.FAILED)])
def test_what_the_end_of_the_time_cuts_short_hasnt_failed(
    tmp_path: Path, seconds: float, state: State
) -> None:
    bench = Workbench(perf_counter() + 100, tmp_path)

    def take_too_long(_: Workbench) -> list[Finding]:
        bench.deadline = perf_counter() + seconds
        raise TimeLimitError("it took longer than its time_limit")

    assert command.run_part("slow", take_too_long, bench).state == state


@pytest.mark.parametrize(
    ("begun_with", "seconds", "wrong"), [(1000.0, 0.0, []), (100.0, 100.0, []), (1000.0, 800.0, ["one"])]
)
def test_a_case_that_the_end_of_the_time_cuts_short_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun_with: float, seconds: float, wrong: list[str]
) -> None:
    bench = Workbench(perf_counter() + begun_with, tmp_path)

    def take_too_long(*_: object) -> Document:
        bench.deadline = perf_counter() + seconds
        raise TimeLimitError("it took longer than its time_limit")

    monkeypatch.setattr(benchmark_parts, "measure_short", take_too_long)
    benchmark = make_workload("known_work", 1, 0, 0)
    named = replace(benchmark, cases=(replace(benchmark.cases[0], key="one"),))
    assert wrong_ones(benchmark_parts.check_benchmark(bench, named, tmp_path)) == wrong


def test_the_last_case_is_measured_whatever_others_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def measure(_bench: Workbench, _name: Benchmark, case: Case, _folder: Path, _limit: int) -> Document:
        asked.append(case.key)
        return document_with(throughput=2.0 if case.key == "two" else 1.0)

    monkeypatch.setattr(benchmark_parts, "measure_short", measure)
    benchmark = make_workload("known_work", 1, 0, 0)
    named = replace(benchmark, cases=tuple(replace(benchmark.cases[0], key=key) for key in ("one", "two")))
    bench = Workbench(perf_counter() + 100, tmp_path)
    rows = benchmark_parts.check_benchmark(bench, named, tmp_path)
    assert asked == ["two", "one"]
    assert [row.what for row in rows] == ["one", "two"]
    assert rows[1].value.endswith(", 2.00 times the first case")
    bench.begin_until = 0.0
    rows = benchmark_parts.check_benchmark(bench, named, tmp_path)
    assert (asked[2:], rows[0].value) == (["two"], "left out, its share of the time is over")
    assert "times the first" not in rows[1].value


def test_benchmarks_share_the_time_with_their_claims_where_there_is_a_device(tmp_path: Path) -> None:
    bench = Workbench(perf_counter() + 100, tmp_path)
    names = ["counters", "a", "b", "a claims", "b claims"]
    assert command.share_of_time(bench, names) == math.inf
    assert command.share_of_time(bench, names[1:]) - perf_counter() == pytest.approx(50, abs=1)
    bench.has_cuda = True
    shares = [command.share_of_time(bench, names[first:]) - perf_counter() for first in (1, 4)]
    assert shares == pytest.approx([25, 100], abs=1)


def test_a_host_is_tried_and_its_report_written(prepared_project: Project) -> None:
    prepared_project.write(LOOP, steps=50, repetitions=1)
    parts = ("counters", "two streams", "tiny", "timeline", "ranks", "energy")
    ended = prepared_project.call("doctor", *(word for part in parts for word in ("--part", part)))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "counters: passed" in ended.stdout
    assert "no CUDA device" in ended.stdout
    raw: dict[str, Any] = json.loads((prepared_project.folder / "doctor.json").read_text())
    states = {part["name"]: part["state"] for part in raw["parts"]}
    assert states == dict.fromkeys(parts, "passed") | {"two streams": "left out", "energy": "left out"}
    assert raw["parts"][0]["findings"][3] == {
        "what": "scalar_reads a step",
        "value": "2",
        "wanted": "2",
        "right": True,
    }
    assert raw["parts"][2]["documents"][0]["benchmark"]["name"] == "tiny"


def test_the_host_itself_is_described(tmp_path: Path) -> None:
    rows = harness_parts.look_at_host(Workbench(1e12, tmp_path))
    assert {"Python", "processor features", "calibration", "torch"} <= {row.what for row in rows}


def test_a_process_that_no_signal_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck:
        killed = 0

        def wait(self, timeout: float) -> int:
            raise subprocess.TimeoutExpired("python", timeout)

        def kill(self) -> None:
            self.killed += 1

    stuck = Stuck()
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: stuck)
    assert (command.can_use_cuda(), stuck.killed) == (False, 1)


@pytest.mark.parametrize(
    ("device", "right"),
    [(Device(instances=[Instance("MIG-1")]), True), (Device(unsupported={"power"}), False)],
)
def test_a_divided_device_need_not_tell_its_utilization(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: Device, right: bool
) -> None:
    api: Any = FakeNvml([device])
    monkeypatch.setattr(harness_parts, "visible_devices", lambda: nvml._probe_with(api, {}))
    rows = harness_parts.look_at_host(Workbench(1e12, tmp_path))
    assert [row.right for row in rows if row.what == "device 0"] == [right]


@pytest.mark.parametrize(
    ("ids", "wrong"), [([7], ["the run warns of", "kept out of judgement"]), ([40_007], [])]
)
def test_a_neighbour_is_missed_only_where_nvml_knows_it(
    monkeypatch: pytest.MonkeyPatch, ids: list[int], wrong: list[str]
) -> None:
    api: Any = FakeNvml([Device(processes=ids)])
    monkeypatch.setattr(device_parts, "visible_devices", lambda: nvml._probe_with(api, {}))
    known = device_parts.knows_process(7)
    alone, beside = document_with(step_time=1.0), document_with(step_time=2.0)
    assert wrong_ones(device_parts.neighbour_findings(alone, beside, is_known=known)) == wrong


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--part", "gpu"), "paceline: --part is 'gpu', must be one of host, counters"),
        (("--minutes", "0"), "paceline: --minutes is 0, must be above 0 and at most 60"),
        (("--report", "none/doctor.json"), "paceline: none/doctor.json: there is no folder none"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(
    project: Project, arguments: tuple[str, ...], sentence: str
) -> None:
    ended = project.call("doctor", *arguments)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith(sentence)


def make_profile(**changes: Any) -> DeviceProfile:
    """What `planted_time` looks like on a device, in a step of ten milliseconds."""
    idle = {
        ("data", "data_loading"): 0.0031,
        ("synchronisation", "think"): 0.00205,
        ("host", "small"): 0.0005,
        ("host", "read"): 0.0001,
        **changes.pop("idle", {}),
    }
    rows = [
        TimelineRow("kernel", "ampere_sgemm", "aten::mm", "products", changes.pop("products", 4.0), 0.004),
        TimelineRow("kernel", "elementwise", "aten::add_", "small", 100.0, 0.00025),
    ]
    busy = sum(row.seconds for row in rows)
    values = {
        **{"device": "cuda", "steps": 10, "step_seconds": busy + sum(idle.values()), "busy_seconds": busy},
        **{"explained": 1.0, "launches": 104.0, "rest": {"rows": 0, "count": 0.0, "seconds": 0.0}},
        **{"rows": tuple(rows), "phases": []},
        "idle": tuple(IdleRow(cause, phase, 1.0, seconds) for (cause, phase), seconds in idle.items()),
        **changes,
    }
    return DeviceProfile(**values)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, []),
        ({"products": 3.0}, ["products a step"]),
        ({"idle": {("data", "data_loading"): 0.001}}, ["waiting for data"]),
        ({"idle": {("synchronisation", "think"): 0.0, ("host", "think"): 0.002}}, ["Python behind a read"]),
        ({"idle": {("host", "small"): 0.0}}, ["small kernels wait for the host"]),
        ({"busy_seconds": 0.002}, ["the rows' sum"]),
        ({"explained": 0.7}, ["explained"]),
    ],
)
def test_a_timeline_that_isnt_what_was_planted_is_wrong(changes: Any, wrong: list[str]) -> None:
    assert wrong_ones(timeline_parts.timeline_findings(make_profile(**changes))) == wrong


@pytest.mark.parametrize(("wrong_looks", "looks", "wrong"), [(0, 1, []), (2, 3, []), (3, 3, ["explained"])])
def test_what_other_work_can_have_lengthened_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong_looks: int, looks: int, wrong: list[str]
) -> None:
    taken: list[Workbench] = []

    def look(bench: Workbench) -> list[findings.Finding]:
        taken.append(bench)
        return [findings.Finding("explained", "", right=len(taken) > wrong_looks)]

    monkeypatch.setattr(timeline_parts, "look_at_planted_time", look)
    assert wrong_ones(timeline_parts.check_timeline(Workbench(1e12, tmp_path))) == wrong
    assert len(taken) == looks


def with_device_use(measured: Document, **use: Any) -> Document:
    whole = {
        "energy": {"step": 2.0, "sampled": 2.1},
        "flops": {"status": "known", "device": "NVIDIA H100 80GB HBM3", "uncounted": []},
        "counters": {"tensor_cores": None, "memory_bandwidth": None, "status": "not_supported"},
    }
    return replace(measured, device_use={**whole, **use})


@pytest.mark.parametrize(
    ("energy", "wrong"),
    [({"step": 2.0, "sampled": 2.1}, []), ({"step": 2.0, "sampled": 3.0}, ["beside sampled power"])],
)
def test_energy_is_that_of_the_power(energy: Any, wrong: list[str]) -> None:
    measured = with_device_use(document_with(step_time=0.01), energy=energy)
    assert wrong_ones(timeline_parts.energy_findings(measured)) == wrong


def test_energy_that_cant_be_read_is_left_out() -> None:
    with pytest.raises(LeftOutError, match="counts no energy"):
        timeline_parts.energy_findings(document_with())


@pytest.mark.parametrize(("share", "wrong"), [(61.0, []), (0.4, ["model FLOPs utilization"])])
def test_a_products_utilization_is_plausible(share: float, wrong: list[str]) -> None:
    measured = with_device_use(document_with(model_flops_utilization=share))
    assert wrong_ones(timeline_parts.utilization_findings(measured)) == wrong


def test_an_impossible_count_is_wrong_and_an_unknown_device_isnt() -> None:
    for status, wrong in (("impossible", ["model FLOPs utilization"]), ("unknown_device", [])):
        flops = {"status": status, "device": "NVIDIA Z1", "uncounted": []}
        measured = with_device_use(document_with(), flops=flops)
        assert wrong_ones(timeline_parts.utilization_findings(measured)) == wrong


@pytest.mark.parametrize(("split", "wrong"), [(52e6, []), (1e6, ["fragments"]), (500e6, ["fragments"])])
def test_fragments_are_those_that_were_left(split: float, wrong: list[str]) -> None:
    measured = document_with(device_memory_split=split, device_memory_unused=60e6)
    assert wrong_ones(timeline_parts.fragment_findings(measured)) == wrong


def test_a_package_that_isnt_there_is_left_out() -> None:
    with pytest.raises(LeftOutError, match="no_such_framework isn't installed"):
        framework_parts.need_package("no_such_framework")


def test_a_framework_whose_backward_pass_isnt_seen_is_wrong(tmp_path: Path) -> None:
    measured = replace(document_with(), phases=())
    rows = framework_parts.framework_findings(measured, Workbench(1e12, tmp_path, has_cuda=True))
    assert wrong_ones(rows) == ["phases", "computed on"]


def test_a_claim_that_takes_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(perf_counter() + 100, tmp_path, has_cuda=True)
    limits = []

    def judge(claim: Any, claim_bench: Any) -> ClaimResult:
        limits.append(claim_bench.benchmark.time_limit)
        assert claim_bench.cases_to_count
        return ClaimResult(claim, "not testable here: it took longer", too_slow=True)

    folder = Path(__file__).parents[3]
    benchmark = load_manifest(folder / "paceline.toml").benchmarks["snake_dqn"]
    monkeypatch.setattr(benchmark_parts, "judge_claim", judge)
    claim = next(row for row in benchmark_parts.device_claims(benchmark, folder) if row.needs_counting)
    monkeypatch.setattr(benchmark_parts, "device_claims", lambda *_: iter([claim]))
    (row,) = benchmark_parts.check_claims(bench, benchmark, folder)
    # Two sides within what is left.
    assert limits == [49]
    assert row.value == "left out, a side of it would take longer than 49 s"


def test_a_claim_says_that_a_side_took_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def take_too_long(*_: object) -> Any:
        raise TimeLimitError("snake_dqn took longer than its time_limit of 49 s")

    folder = Path(__file__).parents[3]
    benchmark = load_manifest(folder / "paceline.toml").benchmarks["snake_dqn"]
    claim = next(row for row in load_claims(folder / "trainers/snake_dqn/claims.toml").claims if row.before)
    for name in ("measure_in_turn", "count_case", "has_cuda"):
        monkeypatch.setattr(ClaimBench, name, take_too_long)
    result = judge_claim(replace(claim, needs_cuda=False), ClaimBench(benchmark, folder, True, 1, print))
    assert (result.too_slow, result.measured) == (True, None)
    assert result.verdict == "not testable here: snake_dqn took longer than its time_limit of 49 s"
