"""A small copy of the simulation of a busy host's proofs."""

from __future__ import annotations

from functools import partial

import pytest

from bench.proof_turns import DAY, DAYS, SimulatedProof, claim_orders, order_cells, simulate_host


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    """By order: minutes to a proven alert, hours that old proofs wait, and how many of 100 never begin."""
    return {
        name: order_cells([partial(simulate_host, choose, 1.2)(seed) for seed in range(3)])
        for name, choose in claim_orders().items()
    }


def test_no_old_proof_is_left_where_turns_are_taken(told: dict[str, list[str]]) -> None:
    assert float(told["newest commit"][4]) > 2 * float(told["with turns"][4])
    assert float(told["with turns"][2]) < DAYS * 24 - 12 == float(told["newest commit"][2])


def test_a_new_commit_is_proved_nearly_as_soon(told: dict[str, list[str]]) -> None:
    newest, turns, asked = (float(told[name][0]) for name in ("newest commit", "with turns", "as asked for"))
    assert turns < 1.5 * newest
    assert asked > 5 * turns


def test_what_never_begins_waits_until_the_end() -> None:
    old = SimulatedProof(0, -60.0, DAY / 2, 5.0, 0, is_old=True)
    new = SimulatedProof(1, DAY, DAY, 5.0, 0, is_old=False, began=DAY, ended=DAY + 5)
    assert order_cells([[old, new]]) == ["5", "5", "180", "180", "100.0"]
