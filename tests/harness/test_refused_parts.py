from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paceline import document
from paceline.command_line import command_output
from paceline.document import DocumentError
from paceline.document_building.refused_parts import without_refused_parts

GOLDEN = Path(__file__).parent.parent / "golden"
Raw = dict[str, Any]


@pytest.fixture
def complete() -> Raw:
    raw: Raw = json.loads((GOLDEN / "paceline.document-1-complete.json").read_text())
    return raw


def put_value(*path: str | int) -> Callable[[Raw, object], None]:
    def change(raw: Raw, value: object) -> None:
        place: Any = raw
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "value", "member", "left"),
    [
        (put_value("scaling", "points", 0, "seconds"), 1e200, "scaling", None),
        (put_value("job"), "soon", "job", None),
        (put_value("profile", "steps"), -1, "profile", None),
        (put_value("telemetry", 0, "name"), "\ud800", "telemetry", []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_part_that_is_refused_is_left_out_with_its_reason(
    complete: Raw, change: Callable[[Raw, object], None], value: object, member: str, left: object
) -> None:
    before = json.loads(json.dumps(complete))
    change(complete, value)
    kept = without_refused_parts(complete)
    document.read_document(json.dumps(kept))
    *others, warning = kept.pop("warnings")
    assert (warning["code"], warning["taints"]) == ("part_left_out", False)
    assert member in warning["message"]
    assert others == before.pop("warnings")
    assert kept.pop(member, None) == left
    assert kept == {name: part for name, part in before.items() if name != member}


def test_of_the_metrics_one_row_is_left_out(complete: Raw) -> None:
    rows = list(complete["metrics"])
    at = next(i for i, row in enumerate(rows) if row["name"] == "peak_memory")
    complete["metrics"][at]["value"] = float("inf")
    complete["job"] = {}
    kept = without_refused_parts(complete)
    assert [row["code"] for row in kept["warnings"][-2:]] == ["part_left_out"] * 2
    assert kept["metrics"] == [*rows[:at], *rows[at + 1 :]]


@pytest.mark.parametrize(
    "change",
    [
        put_value("created"),
        put_value("repetitions", 0, "index"),
        put_value("limits", 0, "value"),
        put_value("guards", 0, "metric"),
    ],
)
def test_what_every_document_needs_is_refused_as_before(
    complete: Raw, change: Callable[[Raw, object], None]
) -> None:
    change(complete, [])
    with pytest.raises(DocumentError):
        without_refused_parts(complete)


def test_the_step_time_is_never_left_out(complete: Raw) -> None:
    at = next(i for i, row in enumerate(complete["metrics"]) if row["name"] == "step_time")
    complete["metrics"][at]["value"] = 1e300
    with pytest.raises(DocumentError, match=rf"metrics\[{at}\]"):
        without_refused_parts(complete)


def test_a_metric_that_has_a_limit_is_never_left_out(complete: Raw) -> None:
    limited = {row["metric"] for row in complete["limits"]} - {"step_time"}
    at = next(i for i, row in enumerate(complete["metrics"]) if row["name"] in limited)
    complete["metrics"][at]["value"] = 1e300
    with pytest.raises(DocumentError, match=rf"metrics\[{at}\]"):
        without_refused_parts(complete)


def test_a_run_is_written_without_its_refused_part(
    complete: Raw, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    complete["costs"] = {"seconds": -1}
    path = tmp_path / "run.json"
    assert command_output.write_and_show(complete, path, lambda *_: None) == 0
    written = document.read_document(path.read_bytes())
    assert written.costs is None
    assert "part_left_out" in [warning.code for warning in written.warnings]
    assert "written without costs" in capsys.readouterr().out


def test_a_document_that_is_too_large_is_written_without_its_readings(complete: Raw) -> None:
    complete["telemetry"] = [
        {**complete["telemetry"][0], "values": [0.1] * 6000, "times": [0.1] * 6000} for _ in range(400)
    ]
    kept = without_refused_parts(complete)
    assert kept["telemetry"] == []
    assert kept["profile"] == complete["profile"]
    assert "at most" in kept["warnings"][-1]["message"]


def test_a_warning_that_taints_makes_room_for_none(complete: Raw) -> None:
    quiet = {"code": "too_few_samples", "message": "few", "advice": "more", "taints": False}
    tainting = {**quiet, "code": "throttling", "taints": True}
    complete["warnings"] = [quiet] * 99 + [tainting]
    complete["job"] = {}
    kept = without_refused_parts(complete)["warnings"]
    assert [row["code"] for row in kept[-2:]] == ["throttling", "part_left_out"]
    assert len(kept) == 100
