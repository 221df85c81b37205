import copy
import json
from pathlib import Path
from typing import Any

import pytest
from paceline import compare, document, show
from paceline.document import Document

GOLDEN = Path(__file__).parent.parent / "golden" / "paceline.document-1.json"
Raw = dict[str, Any]


def changed(**factors: float) -> Document:
    """Return the golden document with some metrics' values multiplied."""
    raw = json.loads(GOLDEN.read_text())
    for row in raw["metrics"]:
        factor = factors.get(row["name"], 1.0)
        row["samples"] = [factor * (1 + at / 1000) * row["value"] for at in range(-2, 3)]
        if row["exact"]:
            row["samples"] = [factor * row["value"]] * 2
        row["value"] = factor * row["value"]
    return document.read(json.dumps(raw))


def line(text: str, name: str) -> str:
    return next(found for found in text.splitlines() if found.split()[:1] == [name])


def test_no_difference_is_a_tilde() -> None:
    text = compare.table(changed(), changed())
    assert line(text, "throughput").endswith("~")
    assert line(text, "function_calls").endswith("~")


def test_a_ratio_has_an_interval_and_a_direction() -> None:
    text = compare.table(changed(), changed(step_time=1.38, throughput=1.1))
    assert "1.380 [1.37" in line(text, "step_time")
    assert "worse" in line(text, "step_time")
    assert "better" in line(text, "throughput")


def test_an_exact_counter_differs_by_any_amount() -> None:
    text = compare.table(changed(), changed(function_calls=1.001))
    assert "1.0010 worse (exact)" in line(text, "function_calls")


@pytest.mark.parametrize(("field", "value"), [("name", "other"), ("version", 2), ("case", "batch=1")])
def test_what_is_not_comparable_is_refused(field: str, value: object) -> None:
    other = copy.deepcopy(json.loads(GOLDEN.read_text()))
    other["benchmark"][field] = value
    with pytest.raises(compare.ComparisonError, match=f"benchmark's {field}"):
        compare.table(changed(), document.read(json.dumps(other)))


def test_another_environment_is_noted() -> None:
    raw = json.loads(GOLDEN.read_text())
    raw["environment"]["torch"] = "2.1.0"
    assert "note: torch differs" in compare.table(changed(), document.read(json.dumps(raw)))


def test_show_has_metrics_phases_functions_and_warnings() -> None:
    text = show.table(changed())
    assert "net version 1  batch=64" in text
    assert line(text, "tensor_operations").endswith("exact")
    assert "###" in line(text, "learn/optimizer")
    assert "torch._C._nn.linear  (built-in):0" in text
    assert "calibration_drift" in text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00152, "s", "1.52 ms"),
        (3e-7, "s", "300 ns"),
        (0.0, "s", "0 ns"),
        (2**20 * 312.44, "bytes", "312.4 MiB"),
        (620.12, "calls/step", "620.1 calls/step"),
        (7.5, "1", "7.5"),
    ],
)
def test_amounts_for_people(value: float, unit: str, text: str) -> None:
    assert show.amount(value, unit) == text
