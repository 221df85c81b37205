"""A small copy of the published trials of steps that only some processes show."""

from __future__ import annotations

from bench.detection.slowed_processes import (
    DISTURBANCES,
    LENGTHS,
    PART,
    judge_by_best,
    result_lines,
    tally_trials,
)
from dashboard.detection import judge_series
from tests.test_docs import ROOT


def test_a_site_finds_what_the_best_repetition_does_not_show() -> None:
    calm = DISTURBANCES[0]
    best, false_by_best = tally_trials(judge_by_best, 60, calm, 20)
    both, false = tally_trials(judge_series, 60, calm, 20)
    assert best <= 0.1
    assert both >= 0.4
    assert false <= false_by_best + 1


def test_the_page_has_the_rows_that_are_printed() -> None:
    page = PART.search((ROOT / "docs/method/detection.md").read_text())
    assert page is not None
    assert next(result_lines(1)) in page[0]
    rows = [f"| {n} | {disturbance.name} |" for n in LENGTHS for disturbance in DISTURBANCES]
    assert all(row in page[0] for row in rows)
