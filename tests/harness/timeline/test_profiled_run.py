"""The profiled repetition of a real run, on the processor: one measurement that many assertions share."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paceline import document
from paceline.command_line.script_command import is_profile_wanted
from paceline.measured.profiling import busy_share
from paceline.protocol import profiled_repetition
from paceline.reports import comparison, report

from tests.harness.conftest import LOOP, Project

SCRIPT = """
import time
import torch
import paceline
torch.set_num_threads(1)
weights = torch.randn(64, 64, requires_grad=True)
loader = torch.utils.data.DataLoader(torch.randn(4000, 64), batch_size=8)
for batch in paceline.steps(loader):
    with paceline.phase("learn"):
        with paceline.phase("forward"):
            loss = (batch @ weights).square().mean()
        with paceline.phase("backward"):
            loss.backward()
    with paceline.phase("act"):
        sum(range(20000))
    with paceline.phase("nap"):
        time.sleep(0.004)
"""

Raw = dict[str, Any]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that was measured once, with its trace beside its document."""
    project = Project(tmp_path_factory.mktemp("profiled"), prepared=True)
    project.write(SCRIPT, repetitions=1, steps=40, counting_steps=20)
    project.measure("--trace", "trace.json.gz")
    return project


def read_document(project: Project) -> Raw:
    raw: Raw = json.loads((project.folder / "out.json").read_text())
    return raw


def test_operations_and_what_lies_between_add_up_to_the_step(profiled: Project) -> None:
    profile = read_document(profiled)["device_profile"]
    whole = profile["busy_seconds"] + sum(row["seconds"] for row in profile["idle"])
    assert whole == pytest.approx(profile["step_seconds"])
    assert (profile["device"], profile["launches"]) == ("cpu", None)
    operations = {(row["name"], row["phase"]): row["count"] for row in profile["rows"]}
    assert operations["aten::mm", "learn/forward"] == 1
    # The weights' gradient alone: the batch needs none.
    assert operations["aten::mm", "learn/backward"] == 1


def test_python_and_data_are_seen_where_they_are(profiled: Project) -> None:
    idle = {
        (row["cause"], row["phase"]): row["seconds"]
        for row in read_document(profiled)["device_profile"]["idle"]
    }
    python = {phase: seconds for (cause, phase), seconds in idle.items() if cause == "host"}
    assert python["act"] > 0
    # The loader has no workers: nobody waits for it.
    causes = {cause for (cause, _), seconds in idle.items() if seconds > 0}
    assert "dataset" in causes
    assert "data" not in causes


def test_what_was_slept_is_unexplained(profiled: Project) -> None:
    profile = read_document(profiled)["device_profile"]
    slept = sum(row["seconds"] for row in profile["idle"] if row["cause"] == "unexplained")
    assert slept > 0.002
    assert profile["explained"] == pytest.approx(1 - slept / profile["step_seconds"])


def test_the_trace_has_our_phases_and_steps(profiled: Project) -> None:
    trace = json.loads(gzip.decompress((profiled.folder / "trace.json.gz").read_bytes()))
    names = [event["name"] for event in trace["traceEvents"] if event.get("cat") == "user_annotation"]
    steps = read_document(profiled)["device_profile"]["steps"]
    assert names.count("phase: learn/forward") == steps
    assert len([name for name in names if name.startswith("step: ")]) == steps


def test_flops_are_counted_exactly(profiled: Project) -> None:
    rows = {(row["name"], row["phase"]): row for row in read_document(profiled)["metrics"]}
    flops = rows["model_flops", None]
    assert (flops["value"], flops["exact"]) == (2 * 2 * 8 * 64 * 64, True)
    assert rows["model_flops", "learn/forward"]["value"] == 2 * 8 * 64 * 64


def test_the_report_and_the_comparison_show_it(profiled: Project) -> None:
    measured = document.read_document((profiled.folder / "out.json").read_text())
    text = report.format_document(measured)
    assert "operation (profiled)" in text
    assert "Python of the dataset" in text
    assert "profiled step" in text
    assert "unexplained: asleep or waiting" in text
    assert "aten::mm" in text
    raw = read_document(profiled)
    for row in raw["device_profile"]["rows"]:
        if row["name"] == "aten::mm":
            row["count"], row["seconds"] = 3 * row["count"], 3 * row["seconds"] + 1e-3
    slower = document.read_document(json.dumps(raw))
    assert "aten::mm" in comparison.compare_documents(measured, slower).partition("profiled")[2]


def test_a_run_without_torch_has_no_profile(project: Project) -> None:
    project.write(LOOP, repetitions=1, steps=20)
    raw = project.measure()
    assert "device_profile" not in raw
    assert not [row for row in raw["warnings"] if row["code"].startswith("device_profile")]


def test_a_script_that_profiles_itself_costs_only_the_profile(prepared_project: Project) -> None:
    script = SCRIPT.replace("for batch", "own = torch.profiler.profile()\nown.start()\nfor batch")
    prepared_project.write(script, repetitions=1, steps=10, counting_steps=5)
    raw = prepared_project.measure("--no-counting", "--profile-device")
    assert "device_profile" not in raw
    (warning,) = [row for row in raw["warnings"] if row["code"] == "device_profile_missing"]
    assert "profiler didn't start" in warning["message"]


def test_a_trace_that_cannot_be_written_costs_only_itself(prepared_project: Project) -> None:
    (prepared_project.folder / "traces").mkdir()
    script = f"import shutil\nshutil.rmtree('traces', ignore_errors=True)\n{SCRIPT}"
    prepared_project.write(script, repetitions=1, steps=10, counting_steps=5)
    raw = prepared_project.measure("--no-counting", "--trace", "traces/trace.json")
    assert raw["device_profile"]["rows"]
    (warning,) = [row for row in raw["warnings"] if row["code"] == "trace_not_written"]
    assert "No such file or directory" in warning["message"]


@pytest.mark.parametrize("events", [5, {"ph": "X", "ts": 0, "dur": 1, "args": "none"}])
def test_an_odd_trace_costs_only_the_profile(tmp_path: Path, events: object) -> None:
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [events]}))
    left = {"result": {"trace": str(tmp_path / "trace.json"), "busy_share": None, "path": "cpu"}}
    found = profiled_repetition.read_profile(SimpleNamespace(), left, None)  # type: ignore[arg-type]
    assert found.profile is None
    assert found.problem.startswith("the profiler's trace can't be read: AttributeError")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, True),
        ({"quick": True}, False),
        ({"quick": True, "profile_device": True}, True),
        ({"timed_only": True}, False),
        ({"no_counting": True}, False),
        ({"no_sweep": True}, False),
        ({"turns": Path("first")}, False),
        ({"quick": True, "trace": Path("trace.json")}, True),
    ],
)
def test_whole_runs_are_profiled(options: Raw, wanted: bool) -> None:
    arguments = SimpleNamespace(**{"profile_device": False, "trace": None, **options})
    assert is_profile_wanted(arguments) is wanted  # type: ignore[arg-type]


@pytest.mark.parametrize(("operations", "steps"), [(None, 20), (10.0, 200), (1000.0, 9), (2e4, 1), (2e6, 0)])
def test_a_trace_stays_small(operations: float | None, steps: int) -> None:
    benchmark: Any = SimpleNamespace(counting_steps=200)
    counted: Any = [{"operations": operations and {"act": {"kinds": {"aten::mm": operations}}}}]
    assert profiled_repetition.choose_steps(benchmark, counted) == steps


@pytest.mark.parametrize(
    ("took", "awake", "stolen", "share"),
    [(2.0, 1.5, 0.0, 0.75), (2.0, 1.5, None, 0.75), (2.0, 1.5, 0.2, 0.95), (2.0, 1.5, 0.4, 1.0)],
)
def test_what_was_stolen_was_no_sleep(took: float, awake: float, stolen: float | None, share: float) -> None:
    assert busy_share(took, awake, stolen) == pytest.approx(share)
