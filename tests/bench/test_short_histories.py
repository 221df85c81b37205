"""Small copies of the published simulations of short histories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.detection.short_histories import short_history_table, tally_histories
from bench.detection.simulation import GAP, NEUTRAL_FIRST, simulate_history
from dashboard.detection.relevance import EFFECT_FLOORS

HISTORIES = 40


def test_plants_are_apart():
    time, memory = simulate_history(np.random.default_rng(1), 0.01, "none")
    at = sorted(time.planted + memory.planted)
    assert at[0] >= NEUTRAL_FIRST
    assert min(np.diff(at)) >= GAP


def test_calm_machines_find_every_plant_and_nothing_else():
    total = tally_histories(0.01, "none", HISTORIES)
    assert (total.exact, total.ever_false) == (HISTORIES, 0)


@pytest.mark.parametrize(("disturbance", "least"), [("none", 0.9), ("bursts", 0.7), ("contention", 0.6)])
def test_noisy_machines_find_most(disturbance, least):
    total = tally_histories(0.03, disturbance, HISTORIES)
    assert total.exact >= least * HISTORIES
    assert total.ever_false <= 0.1 * HISTORIES
    assert total.memory == HISTORIES


def test_the_table_has_a_row_for_each_kind_of_machine():
    lines = list(short_history_table(1))
    assert len(lines) == 2 + 9
    assert len({line.count("|") for line in lines}) == 1


def test_floors_fall_with_the_length_of_the_history():
    for floor in EFFECT_FLOORS.values():
        at = [floor.at(n) for n in (5, 19, 20, 40, 1000)]
        assert at == sorted(at, reverse=True)
        assert (at[0], at[-1]) == (floor.short, floor.long)


def effect_floor_table():
    """The lines of the table of effect floors."""
    yield "| kind | below 20 points | long history | and at least |"
    yield "|---|---|---|---|"
    for kind, floor in EFFECT_FLOORS.items():
        least = f"{floor.least / 2**20:g} MiB" if floor.least else ""
        yield f"| {kind} | {floor.short:.0%} | {floor.long:.0%} | {least} |"


def test_the_documentation_states_the_floors_and_the_columns():
    text = (Path(__file__).parents[2] / "docs/method/detection.md").read_text()
    assert "\n".join(effect_floor_table()) in text
    assert next(short_history_table(0)) in text
