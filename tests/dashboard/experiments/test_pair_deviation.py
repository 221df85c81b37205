"""How far pairs lie apart, and how many like them would prove a difference of one per cent."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dashboard.detection.provable_effect import provable_by_either
from dashboard.experiments.pair_deviation import MOST_PAIRS, measure_pair_deviation
from dashboard.experiments.verdicts import evaluate_experiment
from dashboard.models import Experiment, ExperimentPair, Metric
from dashboard.sentences.comparisons.experiments import pair_deviation_sentence
from tests.dashboard.experiments.test_single_steps import draw_pairs, make_test

TIME = Metric(name="step_time", unit="s", better="lower", kind="time")
ESTIMATE = Experiment(question="estimate", metric=TIME)


def make_pairs(count: int, deviation: float, moved: float = 0.0, seed: int = 1) -> list[ExperimentPair]:
    drawn = np.random.default_rng(seed).normal(moved, deviation, count)
    return [
        ExperimentPair(index=index, base_first=index % 2 == 0, base=1.0, head=math.exp(value), seconds=4.0)
        for index, value in enumerate(drawn)
    ]


@pytest.mark.parametrize("deviation", [0.005, 0.02, 0.05])
def test_it_is_that_of_the_ratios(deviation: float) -> None:
    found = measure_pair_deviation(ESTIMATE, make_pairs(400, deviation))
    assert found
    assert found.by_means == pytest.approx(deviation, rel=0.1)
    assert (found.by_steps, found.seconds) == (None, 4.0)


def test_what_is_learned_has_none_since_it_is_weighed_by_differences() -> None:
    loss = Metric(name="quality.loss", unit="1", better="lower", kind="quality")
    asked = Experiment(question="test", metric=loss, before=0.001, after=1.5)
    assert measure_pair_deviation(asked, make_pairs(12, 0.5, 7.0)) is None


def test_so_many_pairs_prove_it_and_one_less_does_not() -> None:
    found = measure_pair_deviation(ESTIMATE, make_pairs(40, 0.02))
    assert found
    assert found.pairs
    proved = [provable_by_either(found.by_means, None, found.pairs - less) <= 0.01 for less in (0, 1)]
    assert proved == [True, False]


def test_so_many_pairs_confirm_it_in_four_of_five_experiments() -> None:
    told = measure_pair_deviation(ESTIMATE, make_pairs(2000, 0.015))
    assert told
    assert told.pairs
    asked = Experiment(question="test", metric=TIME, before=1.0, after=1.01, phases_with_step=["learn"])
    asked.error = 0.02  # The look at phases has its half.
    verdicts = [
        evaluate_experiment(asked, make_pairs(told.pairs, 0.015, 0.01, seed), 1.0).verdict
        for seed in range(100, 300)
    ]
    assert 0.7 < verdicts.count("confirmed") / len(verdicts) < 0.9


def test_single_steps_tell_it_with_fewer_pairs() -> None:
    drawn = draw_pairs(30, disturbed=0.4)
    for pair in drawn:
        pair.seconds = 3.0
    found = measure_pair_deviation(make_test(), drawn)
    means = measure_pair_deviation(ESTIMATE, make_pairs(30, found.by_means if found else 0.0))
    assert found
    assert found.by_steps
    assert means
    assert found.by_steps < found.by_means
    assert (found.pairs or 0) < (means.pairs or MOST_PAIRS)
    assert "by its single steps" in pair_deviation_sentence(found)


def test_pairs_far_too_noisy_say_so() -> None:
    found = measure_pair_deviation(ESTIMATE, make_pairs(40, 0.5))
    assert found
    assert found.pairs is None
    assert pair_deviation_sentence(found).endswith(
        "to prove a difference of 1 % takes more than 10,000 such pairs."
    )


@pytest.mark.parametrize(
    "measured",
    [
        make_pairs(3, 0.02),
        make_pairs(8, 0.0),
        [ExperimentPair(index=index, base=0.0, head=1.0, seconds=1.0) for index in range(8)],
        [ExperimentPair(index=index, base=1.0, head=1.0 + index, disturbed=True) for index in range(8)],
    ],
    ids=["too few", "exact", "without a ratio", "disturbed"],
)
def test_what_has_no_deviation_says_nothing(measured: list[ExperimentPair]) -> None:
    assert measure_pair_deviation(ESTIMATE, measured) is None


@pytest.mark.parametrize("name", ["quality.return", "memory_growth", "scaling_exponent.step_time"])
def test_what_is_told_by_differences_has_no_deviation_of_ratios(name: str) -> None:
    """It may be 0 or less, though none of these pairs was: its ratios say nothing."""
    metric = Metric(name=name, unit="1", better="higher", kind="quality")
    assert measure_pair_deviation(Experiment(question="estimate", metric=metric), make_pairs(8, 0.02)) is None
