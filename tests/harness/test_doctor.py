"""`python -m paceline doctor`: what a host without a device can run, and how a device is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from paceline import document
from paceline.doctor import command, device_parts, findings, harness_parts
from paceline.doctor.findings import Finding, LeftOutError, State
from paceline.doctor.workbench import Workbench
from paceline.document import Document

from .conftest import LOOP, Project

GOLDEN = Path(__file__).parent.parent / "golden" / "paceline.document-1.json"


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


def test_when_the_time_is_over_the_rest_is_left_out(tmp_path: Path) -> None:
    result = command.run_part("late", lambda _: [], Workbench(0.0, tmp_path))
    assert (result.state, result.sentence) == (State.LEFT_OUT, "the time is over")


def test_a_host_is_tried_and_its_report_written(project: Project) -> None:
    project.write(LOOP, steps=50, repetitions=1)
    ended = project.call("doctor", "--part", "counters", "--part", "two streams", "--part", "tiny")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "counters: passed" in ended.stdout
    assert "no CUDA device" in ended.stdout
    raw: dict[str, Any] = json.loads((project.folder / "doctor.json").read_text())
    assert [part["state"] for part in raw["parts"]] == ["passed", "left out", "passed"]
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
