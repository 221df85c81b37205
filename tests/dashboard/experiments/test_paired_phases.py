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
