"""A small copy of the published trials of steps in phases."""

from __future__ import annotations

import pytest

from bench.detection.planted_parts import (
    AT,
    JUDGES,
    NOISES,
    PART,
    PLANTED,
    SHARES,
    STEPS,
    delay_of_step,
    simulate_history,
)
from tests.test_docs import ROOT


def test_the_phases_add_up_to_the_whole() -> None:
    assert sum(SHARES.values()) == pytest.approx(1)
    assert {share: SHARES[name] for share, name in PLANTED.items()} == {share: share for share in PLANTED}


def test_a_planted_step_is_as_large_as_it_says() -> None:
    steady, stepped = (
        simulate_history(1, NOISES["calm machine"], AT + 1, steps) for steps in ({}, {"log": 0.02})
    )
    before, after = (history.parts["log"].points[AT].value for history in (steady, stepped))
    assert after / before == pytest.approx(1 + 0.02 / SHARES["log"])
    assert steady.whole.points[:AT] == stepped.whole.points[:AT]


def test_a_phase_shows_what_the_whole_hides() -> None:
    noise = NOISES["calm machine"]
    delays = [
        delay_of_step(1, noise, JUDGES[name], {"log": 0.02}) for name in ("the whole alone", "with phases")
    ]
    assert delays[1] <= 9 < delays[0]


def test_the_page_has_a_row_for_each_step_and_phase() -> None:
    page = PART.search((ROOT / "docs/method/detection.md").read_text())
    assert page is not None
    rows = [
        line for line in page[0].splitlines() if line.startswith(tuple(f"| {step:.0%} |" for step in STEPS))
    ]
    assert len(rows) == len(NOISES) * (len(STEPS) * len(PLANTED) + len(STEPS))
