"""A small step is weighed by single steps where both sides took turns, beside the mean of the pairs."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.experiments.single_steps import can_weigh_steps
from dashboard.experiments.weighing import Weighed, weigh_experiment
from dashboard.models import Experiment, ExperimentPair, Metric
from tests.detection.test_paired_steps import draw_steps


def make_test(moved: float = 0.01, metric: str = "step_time", **fields: Any) -> Experiment:
    """A test of a step of this size that only a phase showed, with no row in the database."""
    rate = metric == "throughput"
    row = Metric(name=metric, unit="s", better="higher" if rate else "lower", kind="rate" if rate else "time")
    values: dict[str, Any] = {"question": "test", "purpose": "proof", "in_turns": True}
    values |= {"before": 1.0, "after": 1 / (1 + moved) if rate else 1 + moved, "phases_with_step": ["learn"]}
    return Experiment(metric=row, **values | fields)


def draw_pairs(count: int, moved: float = 0.0, *, rate: bool = False, **drawn: Any) -> list[ExperimentPair]:
    base, head, first = draw_steps(count, moved, **drawn)
    means = [1 / side.mean(axis=0) if rate else side.mean(axis=0) for side in (base, head)]
    return [
        ExperimentPair(
            index=index,
            base_first=first[index],
            base=means[0][index],
            head=means[1][index],
            steps={"base": base[:, index].tolist(), "head": head[:, index].tolist()},
        )
        for index in range(count)
    ]


def weigh_all(experiment: Experiment, pairs: list[ExperimentPair]) -> tuple[Weighed, int]:
    """The verdict, and after how many pairs."""
    for count in range(1, len(pairs) + 1):
        weighed = weigh_experiment(experiment, pairs[:count], 5.0 * count)
        if weighed.verdict:
            break
    return weighed, count


@pytest.mark.parametrize("metric", ["step_time", "throughput"])
@pytest.mark.parametrize(("moved", "verdict"), [(0.01, "confirmed"), (0.0, "refuted")])
def test_single_steps_tell_what_means_leave_open(metric: str, moved: float, verdict: str) -> None:
    pairs = draw_pairs(60, moved, disturbed=0.2, rate=metric == "throughput")
    weighed, count = weigh_all(make_test(metric=metric), pairs)
    assert (weighed.verdict, count < 50) == (verdict, True)
    assert weighed.ratio is not None
    size = 1 / (1 + moved) if metric == "throughput" else 1 + moved
    assert weighed.ratio.value == pytest.approx(size, abs=0.004)
    for pair in pairs:
        pair.steps = {}
    assert weigh_all(make_test(metric=metric), pairs)[0].verdict in ("", "undecided")


@pytest.mark.parametrize(
    ("fields", "weighed"),
    [
        ({}, True),
        ({"in_turns": False}, False),
        ({"question": "place"}, True),
        ({"question": "estimate"}, False),
        ({"phase": "learn"}, False),
        ({"after": 1.2}, False),
        ({"after": None}, False),
    ],
)
def test_steps_that_took_turns_tell_of_a_small_one(fields: dict[str, Any], weighed: bool) -> None:
    assert can_weigh_steps(make_test(**fields)) is weighed


def test_memory_has_no_steps() -> None:
    assert not can_weigh_steps(make_test(metric="peak_memory"))
