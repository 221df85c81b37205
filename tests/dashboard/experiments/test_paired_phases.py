"""The phases that interleaved runs say a difference is made of."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.experiments.paired_phases import paired_phases
from dashboard.models import Experiment
from tests.dashboard.experiments.conftest import MakeExperiment


def add_phases(row: Experiment, *pairs: Any) -> Experiment:
    """Pairs are phases, or None for one that was disturbed."""
    for index, phases in enumerate(pairs):
        values = {"base": 0.010, "head": 0.014, "disturbed": phases is None, "seconds": 5.0}
        told = {"act": (0.9, 0.1)} if phases is None else phases
        row.pairs.create(index=index, base_first=True, phases=told, **values)
    return row


def test_they_are_medians_of_the_undisturbed_pairs(row: Experiment) -> None:
    """The machine is twice as slow in the second pair, and the third one was met by a spike."""
    add_phases(
        row,
        {"act": (0.004, 0.004), "learn": (0.005, 0.009)},
        {"act": (0.008, 0.008), "learn": (0.010, 0.018)},
        {"act": (0.004, 0.044), "learn": (0.005, 0.009), "new": (0.0, 0.001)},
        None,
    )
    found = paired_phases(row)
    assert found
    assert found.pairs == 3
    assert found.before == {"act": 0.004, "learn": 0.005, "new": 0.0}
    assert found.deltas == pytest.approx({"act": 0.0, "learn": 0.004, "new": 0.0})


@pytest.mark.parametrize(
    "pairs",
    [(), (None,), ({"learn": (0.005, 0.009)}, {})],  # the last one: measured before phases were kept
)
def test_pairs_without_phases_say_nothing(row: Experiment, pairs: tuple[Any, ...]) -> None:
    assert paired_phases(add_phases(row, *pairs)) is None


def test_what_is_no_time_has_no_phases(make_experiment: MakeExperiment) -> None:
    row = make_experiment("peak_memory")
    assert paired_phases(add_phases(row, {"learn": (0.005, 0.009)})) is None


def add_noisy(row: Experiment, pauses: float = 0.0, waited: float = 0.0) -> Experiment:
    """Twelve pairs: `learn` takes 1 % of a step more, the means of a busy machine are far off, each alone.

    `pauses`: what the head is held up by in `act`, in few steps; `waited`: seconds that `act` waits for a
    processor in most steps of both, which the means are without.
    """
    off = (0.31, -0.22, 0.14, -0.35, 0.08, 0.19, -0.12, 0.27, -0.3, 0.05, -0.17, 0.12)
    for index, noise in enumerate(off):
        base, head = {"act": 0.004, "learn": 0.006}, {"act": 0.004 + pauses, "learn": 0.0061}
        phases = {
            "act": (base["act"], head["act"] * (1 + 0.2 * noise * (pauses == 0))),
            "learn": (base["learn"], head["learn"] * (1 - 0.3 * noise * (pauses == 0))),
        }
        typical = {"act": (0.004 + waited, 0.004 + waited), "learn": (0.006, 0.0061 + 1e-6 * noise)}
        values = {"base": 0.010, "head": 0.0101, "seconds": 5.0}
        row.pairs.create(
            index=index, base_first=index % 2 == 0, phases=phases, typical_phases=typical, **values
        )
    return row


def test_typical_steps_tell_where_the_mean_bears_them_out(row: Experiment) -> None:
    found = paired_phases(add_noisy(row))
    assert found
    assert found.by_steps
    assert found.deltas == pytest.approx({"act": 0.0, "learn": 1e-4}, abs=1e-6)


def test_what_few_steps_have_the_means_tell(row: Experiment) -> None:
    found = paired_phases(add_noisy(row, pauses=5e-4))
    assert found
    assert not found.by_steps
    assert found.deltas == pytest.approx({"act": 5e-4, "learn": 1e-4}, abs=1e-6)


def test_steps_that_were_nearly_all_interrupted_tell_nothing(row: Experiment) -> None:
    found = paired_phases(add_noisy(row, waited=0.002))
    assert found
    assert not found.by_steps
    assert found.before["act"] == pytest.approx(0.004)
