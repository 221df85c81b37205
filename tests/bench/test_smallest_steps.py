"""A small copy of the published trials of the smallest step that is told."""

from __future__ import annotations

import pytest

from bench.detection.smallest_steps import COLUMNS, PART, find_smallest_step, format_cell
from tests.test_docs import ROOT


@pytest.mark.parametrize(("count", "sampled"), [(5, True), (10, False)])
@pytest.mark.parametrize("model", ["white", "autocorrelation .6"])
def test_what_is_told_is_found_and_half_of_it_is_not(model: str, count: int, sampled: bool) -> None:
    found = [find_smallest_step(model, seed, count, sampled=sampled) for seed in range(40)]
    whole, half = (sum(row[i] for row in found) / len(found) for i in (1, 2))
    assert whole >= 0.65
    assert half <= 0.35


def test_a_cell_is_of_those_that_are_told() -> None:
    assert format_cell([(0.1, True, False), (0.2, True, True), (0.3, False, False)]) == "20.0%: 67, 33"
    assert format_cell([(float("inf"), False, False)] * 2 + [(0.1, True, False)]) == "none"


def test_the_page_has_the_columns_that_are_printed() -> None:
    page = PART.search((ROOT / "docs/method/detection.md").read_text())
    assert page is not None
    assert "| null model | " + " | ".join(COLUMNS) + " |" in page[0]
