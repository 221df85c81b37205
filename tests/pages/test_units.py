"""How numbers read."""

from __future__ import annotations

import pytest
from paceline.metrics import describe_metric

from dashboard.models import Change, Metric, Series
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import format_change, format_change_size

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00123, "s", "1.23 ms"),
        (12.3456, "s", "12.3 s"),
        (4.2e-7, "s", "420 ns"),
        (0.0, "s", "0 s"),
        (48.1e6, "bytes", "48.1 MB"),
        (52_000.0, "bytes/1000 steps", "52 kB/1000 steps"),
        (-5e6, "bytes/1000 steps", f"{MINUS}5 MB/1000 steps"),
        (0.0, "bytes", "0 B"),
        (8412.3, "steps/s", "8,412 steps/s"),
        (256.0, "calls/step", "256 calls/step"),
        (2.5e6, "calls/step", "2.50 M calls/step"),
        (7.02, "1", "7.02"),
        (97.26, "%", "97.3 %"),
        (1.8e-5, "%", "<0.001 %"),
        (0.0, "%", "0 %"),
        (74.2, "s", "74.2 s"),
        (26_640.0, "s", "7.40 h"),
        (180.0, "s", "3 min"),
        (0.02, "count/step", "0.0200 per step"),
        (None, "s", "\N{EN DASH}"),
    ],
)
def test_a_quantity_has_the_size_and_digits_that_read_best(value: float | None, unit: str, text: str) -> None:
    assert numbers.format_quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "bound", "unit", "texts"),
    [
        (71.0, 80.0, "%", ("71 %", "80 %")),
        (0.0004, 80.0, "%", ("<0.001 %", "80 %")),
        (0.0, 5.0, "bytes", ("0 B", "5 B")),
        (1.0004e9, 1e9, "bytes", ("1.0004 GB", "1 GB")),
        (0.9996e9, 1e9, "bytes", ("999.6 MB", "1 GB")),
        # A limit has digits of its own.
        (8.592e9, 2.0**33, "bytes", ("8.592 GB", "8.590 GB")),
        (1.0735e9, 2.0**30, "bytes", ("1.073 GB", "1.074 GB")),
        (1_000_000.4, 1_000_000.0, "steps/s", ("1.0000004 M steps/s", "1 M steps/s")),
        (-0.10001, -0.1, "1", (f"{MINUS}0.10001", f"{MINUS}0.10000")),
        (1 + 2**-52, 1.0, "1", ("1.00000000000", "1")),
    ],
)
def test_what_crosses_a_bound_is_written_beyond_it(
    value: float, bound: float, unit: str, texts: tuple[str, str]
) -> None:
    digits = numbers.crossing_digits(value, bound, unit)
    assert tuple(numbers.format_quantity(number, unit, digits) for number in (value, bound)) == texts


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.38, "+38 %"),
        (0.97, f"{MINUS}3.0 %"),
        (1.0001, "0 %"),
        (3.5, "+250 %"),
        (3310.8, "+331,000 %"),
        (None, "from nothing"),
    ],
)
def test_a_ratio_reads_as_a_change_in_percent(ratio: float | None, text: str) -> None:
    assert numbers.format_percent_change(ratio) == text


def test_both_ends_of_an_interval_share_a_unit() -> None:
    assert numbers.format_interval(0.00098, 0.00126, "s") == "[0.980, 1.26] ms"
    assert numbers.format_interval(None, 1.0, "s") == ""
    assert numbers.format_interval(1.2, 3930.0, "s", beside=71.8) == "[1.20, 3,930] s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45.2, "45 s"), (125, "2 min 5 s"), (3600, "1 h"), (11400, "3 h 10 min"), (4e5, "4 d")],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert numbers.format_duration(seconds) == text


@pytest.mark.parametrize(
    ("name", "before", "after", "ratio", "text"),
    [
        ("memory_growth", -2000.0, -1000.0, 0.5, "+1 kB/1000 steps"),
        ("memory_growth", 1000.0, 1050.0, 1.05, "+50 B/1000 steps"),
        ("memory_growth", 0.0, 2000.0, None, "+2 kB/1000 steps"),
        ("peak_memory", 1e9, 2e9, 2.0, "+100 %"),
        ("quality.score", 9.3, 4.0, None, "9.30 → 4"),
    ],
)
def test_a_change_of_what_may_be_below_zero_is_a_difference(
    name: str, before: float, after: float, ratio: float | None, text: str
) -> None:
    known = describe_metric(name)
    assert known is not None
    series = Series(metric=Metric(name=name, unit=known.unit, better=known.better, kind=known.kind))
    change = Change(series=series, before=before, after=after, ratio=ratio)
    assert (format_change(change), format_change_size(change)) == (text, text)
