"""The simulation of slow ranks: its table is the code's, and what it promises is kept."""

from __future__ import annotations

from bench.stragglers import PART, README, SCENARIOS, count_named


def read_table() -> list[list[str]]:
    found = PART.search(README.read_text())
    assert found
    lines = found.group(0).splitlines()[3:-1]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def test_the_table_has_every_scenario_and_its_targets_are_reached() -> None:
    rows = read_table()
    assert [row[0] for row in rows] == [scenario.name for scenario in SCENARIOS]
    assert {row[-1] for row in rows} <= {"reached", "often not known"}
    assert all(float(row[2]) <= 1 and float(row[3]) <= 1 for row in rows)


def test_a_slow_rank_is_named_among_hiccups() -> None:
    hiccups = next(scenario for scenario in SCENARIOS if scenario.name == "hiccups")
    assert count_named(hiccups, 0.05, runs=10, seed=5) == (10, 0)
    assert count_named(hiccups, 0.0, runs=10, seed=6) == (0, 0)
