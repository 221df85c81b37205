import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from paceline import document, metrics, units
from paceline.document import Document
from paceline.document_rows import MetricValue
from paceline.reports import comparison, report

GOLDEN = Path(__file__).parents[2] / "golden" / "paceline.document-1.json"
SPREAD, WIDER = [1.0, 1.01, 1.02, 1.03, 1.04], [1.15, 1.16, 1.17, 1.18, 1.19]


def changed_document(**factors: float) -> Document:
    """Return the golden document with some metrics' values multiplied."""
    raw = json.loads(GOLDEN.read_text())
    for row in raw["metrics"]:
        factor = factors.get(row["name"], 1.0)
        row["samples"] = [factor * (1 + offset / 1000) * row["value"] for offset in range(-2, 3)]
        if row["exact"]:
            row["samples"] = [factor * row["value"]] * 2
        row["value"] = factor * row["value"]
    return document.read_document(json.dumps(raw))


def row_of(text: str, name: str) -> str:
    return next(row for row in text.splitlines() if row.split()[:1] == [name])


def test_no_difference_is_a_tilde() -> None:
    text = comparison.compare_documents(changed_document(), changed_document())
    assert row_of(text, "throughput").endswith("~")
    assert row_of(text, "function_calls").endswith("~")


def test_a_ratio_has_an_interval_and_a_direction() -> None:
    text = comparison.compare_documents(changed_document(), changed_document(step_time=1.38, throughput=1.1))
    assert "1.380 [1.37" in row_of(text, "step_time")
    assert "worse" in row_of(text, "step_time")
    assert "better" in row_of(text, "throughput")


def test_an_exact_counter_differs_by_any_amount() -> None:
    text = comparison.compare_documents(changed_document(), changed_document(function_calls=1.001))
    assert "1.0010 worse (exact)" in row_of(text, "function_calls")


@pytest.mark.parametrize(("field", "value"), [("name", "other"), ("version", 2), ("case", "batch=1")])
def test_what_is_not_comparable_is_refused(field: str, value: object) -> None:
    other = copy.deepcopy(json.loads(GOLDEN.read_text()))
    other["benchmark"][field] = value
    with pytest.raises(comparison.ComparisonError, match=f"benchmark's {field}"):
        comparison.compare_documents(changed_document(), document.read_document(json.dumps(other)))


def test_another_environment_is_noted() -> None:
    raw = json.loads(GOLDEN.read_text())
    raw["environment"]["torch"] = "2.1.0"
    after = document.read_document(json.dumps(raw))
    assert "note: torch differs" in comparison.compare_documents(changed_document(), after)


def make_value(name: str, *values: float, low: float | None = None, high: float | None = None) -> MetricValue:
    """Return a metric with these samples."""
    metric = metrics.METRICS[name]
    middle = sorted(values)[len(values) // 2]
    return MetricValue(
        name, metric.unit, metric.better, metric.kind, None, False, False, middle, low, high, list(values)
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [([1.0], [1.0]), ([1.0], [2.0]), ([1.0, 1.1], [2.0, 2.1]), ([1.0, 1.1, 1.2], [2.0, 2.1, 2.2])],
)
def test_too_few_samples_are_a_question_mark(before: list[float], after: list[float]) -> None:
    assert comparison.compare_values(make_value("step_time", *before), make_value("step_time", *after)) == "?"


def test_few_repetitions_are_noted() -> None:
    before, after = changed_document(), changed_document()
    assert len(before.repetitions) == 3
    few = "note: 3 repetitions before and 3 after are too few to tell (?), each side needs 4"
    assert few in comparison.compare_documents(before, after).splitlines()
    enough = [replace(each, repetitions=[*each.repetitions, each.repetitions[0]]) for each in (before, after)]
    assert "too few" not in comparison.compare_documents(*enough)


def test_a_counter_that_was_counted_once_may_still_be_the_same() -> None:
    assert comparison.compare_values(make_value("function_calls", 7), make_value("function_calls", 7)) == "~"
    assert comparison.compare_values(make_value("function_calls", 7), make_value("function_calls", 8)) == "?"


def test_what_may_be_negative_has_differences() -> None:
    before = make_value("memory_growth", -1e3, 0, 0, 1e3)
    assert comparison.compare_values(before, before) == "~"
    leak = make_value("memory_growth", 1e6, 1.001e6, 0.999e6, 1e6)
    worse = "+1 MB/1000 steps [+998 kB/1000 steps, +1 MB/1000 steps] worse (97%)"
    assert comparison.compare_values(before, leak) == worse
    # Nor has it ratios where it happened to grow on both sides.
    grown = make_value("memory_growth", 2e6, 2.001e6, 1.999e6, 2e6)
    assert comparison.compare_values(leak, grown).startswith("+1 MB/1000 steps [")


def test_exponents_differ_where_their_intervals_do() -> None:
    before = make_value("scaling_exponent", 1.0, low=0.9, high=1.1)
    assert comparison.compare_values(before, make_value("scaling_exponent", 1.1, low=1.05, high=1.2)) == "~"
    after = make_value("scaling_exponent", 1.9, low=1.8, high=2.0)
    assert comparison.compare_values(before, after) == "+0.90 worse"


def test_the_spread_of_ranks_is_a_ratio() -> None:
    few = [
        make_value("rank_spread", *values, low=values[0], high=values[-1])
        for values in (SPREAD[:3], WIDER[:3])
    ]
    assert comparison.compare_values(*few) == "?"
    enough = [make_value("rank_spread", *values) for values in (SPREAD, WIDER)]
    assert comparison.compare_values(*enough).startswith("1.1")


def test_what_only_one_side_has_is_told() -> None:
    before = changed_document()
    raw = json.loads(GOLDEN.read_text())
    for row in raw["metrics"]:
        if row["name"] == "memory_growth":
            row.update(name="device_memory", unit="bytes", kind="memory")
    text = comparison.compare_documents(before, document.read_document(json.dumps(raw)))
    assert row_of(text, "memory_growth").split()[-3:] == ["-", "only", "before"]
    assert row_of(text, "device_memory").split()[1:2] == ["-"]
    assert row_of(text, "device_memory").endswith("only after")


def test_show_has_metrics_phases_functions_and_warnings() -> None:
    text = report.format_document(changed_document())
    assert "net version 1  batch=64" in text
    assert row_of(text, "tensor_operations").endswith("exact")
    assert "###" in row_of(text, "learn/optimizer")
    assert "torch._C._nn.linear  (built-in):0" in text
    assert "calibration_drift" in text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00152, "s", "1.52 ms"),
        (3e-7, "s", "300 ns"),
        (0.0, "s", "0 s"),
        (327_610_000.0, "bytes", "328 MB"),
        (1_234_567.0, "bytes/1000 steps", "1.23 MB/1000 steps"),
        (620.12, "calls/step", "620 calls/step"),
        (7.5, "1", "7.5"),
        (8412.0, "steps/s", "8,412 steps/s"),
        (-0.0021, "s", "-2.1 ms"),
    ],
)
def test_amounts_for_people(value: float, unit: str, text: str) -> None:
    assert units.format_amount(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(26_640, "7.4 h"), (300_000, "3.47 d"), (90, "1.5 min"), (45, "45 s"), (0.2, "200 ms")],
)
def test_long_times_for_people(seconds: float, text: str) -> None:
    assert units.format_duration(seconds) == text


def test_one_is_no_plural() -> None:
    assert units.format_count(1, "repetition") == "1 repetition"
    assert units.format_count(2, "repetition") == "2 repetitions"


def test_show_has_all_that_a_document_may_have() -> None:
    complete = GOLDEN.parent / "paceline.document-1-complete.json"
    text = report.format_document(document.read_document(complete.read_bytes()))
    assert "50,000 " in text
    assert row_of(text, "projected_time")
    assert row_of(text, "scaling_exponent")
    assert "crossed" in text
    assert "not measured" in text
    assert row_of(text, "main")
    assert "3 repetitions of" in text
