"""Pairs of a quality: over seeds, by differences, with what isn't reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pytest

from dashboard import experiments
from dashboard.experiments.learning import evaluate_learning
from dashboard.experiments.reuse import SuspectedStep, pairs_of_metric
from dashboard.experiments.verdicts import evaluate_experiment
from dashboard.host_protocol import (
    MessageFields,
    OtherMetric,
    PairMeasured,
    pair_message,
    read_message,
    read_pair,
)
from dashboard.models import Experiment, ExperimentPair, Metric
from tests.dashboard.experiments.conftest import MakeExperiment, claim_held

SCORE = Metric(name="quality.score", unit="1", better="higher", kind="quality")


def verdict_on(before: float, after: float, values: Iterator[tuple[float, float]]) -> tuple[str, int]:
    """Of a suspected loss, and after how many pairs."""
    asked = Experiment(question="test", metric=SCORE, before=before, after=after)
    pairs: list[ExperimentPair] = []
    for base, head in values:
        pairs.append(ExperimentPair(index=len(pairs), base=base, head=head))
        if verdict := evaluate_experiment(asked, pairs, 0.0).verdict:
            break
    return verdict, len(pairs)


def draw_pairs(level: float, lost: float, spread: float, seed: int) -> Iterator[tuple[float, float]]:
    rng = np.random.default_rng(seed)
    while True:
        yield rng.normal(level, spread), rng.normal(lost, spread)


@pytest.mark.parametrize(("before", "after"), [(9.3, 2.1), (0.5, -0.5), (0.0, -1.0), (-1.0, -9.0)])
def test_a_loss_is_confirmed_at_any_level(before: float, after: float) -> None:
    spread = 0.1 * abs(before - after)
    assert verdict_on(before, after, draw_pairs(before, after, spread, 1))[0] == "confirmed"
    assert verdict_on(before, after, draw_pairs(before, before, spread, 2))[0] == "refuted"


def test_the_same_values_refute_after_four_pairs() -> None:
    assert verdict_on(9.3, 2.1, iter([(9.0, 9.0)] * 9)) == ("refuted", 4)
    assert verdict_on(0.0, -1.0, iter([(0.0, 0.0)] * 9)) == ("refuted", 4)


def test_luck_is_hardly_ever_confirmed() -> None:
    """The share of false alarms, where each commit draws its random numbers anew."""
    found = [verdict_on(9.3, 5.0, draw_pairs(9.3, 9.3, 2.0, seed))[0] for seed in range(300)]
    assert found.count("confirmed") <= 3


def test_what_a_side_does_not_report_counts_as_lost(make_experiment: MakeExperiment) -> None:
    made = make_experiment("quality.score", before=9.3, after=0.0)
    held = claim_held()
    assert held.seeded
    for index in range(4):
        pair = PairMeasured(index, True, 9.3 + index / 10, None, False, 6.0, seed=2000 + index)
        verdict = experiments.add_pair(held.lease, read_pair(read_message_of(pair)))
    made.refresh_from_db()
    assert (verdict, made.learning["unreported"]) == ("confirmed", 4)
    assert set(made.pairs.values_list("head", "unreported", "seed")) == {
        (0.0, "head", 2000 + index) for index in range(4)
    }


def test_what_is_not_reported_counts_as_the_step_that_pairs_are_reused_for(
    make_experiment: MakeExperiment,
) -> None:
    made = make_experiment("quality.score", before=9.3, after=9.0)
    for index in range(16):
        lost, base = index % 4 == 0, 9.3 + 0.01 * (index % 3)
        head = made.after if lost else base
        ends = {"base": base, "head": head, "unreported": "head" if lost else ""}
        made.pairs.create(index=index, base_first=index % 8 < 4, seconds=6.0, seed=2000 + index, **ends)
    result, pairs = experiments.evaluate_suspected_step(made, SuspectedStep(made.metric, 9.3, 0.0, 0.01))
    assert {pair.head for pair in pairs if pair.unreported} == {0.0}
    assert result.verdict != "refuted", "one seed in four shows it"


def read_message_of(pair: PairMeasured) -> MessageFields:
    return read_message(json.dumps(pair_message(pair)).encode())


def test_an_estimate_of_what_is_not_reported_can_not_be_told(make_experiment: MakeExperiment) -> None:
    make_experiment("quality.score", question="estimate")
    held = claim_held()
    pair = PairMeasured(0, True, 9.3, None, False, 6.0, seed=2000)
    assert experiments.add_pair(held.lease, pair) == "untestable"


def test_the_time_of_the_same_pairs(make_experiment: MakeExperiment) -> None:
    times = [(0.010, 0.006), (0.0101, 0.0061), (0.0099, 0.0059), (0.010, 0.006)]
    pairs = [
        ExperimentPair(
            index=index,
            base=9.0,
            head=2.0,
            seed=2000 + index,
            others={"step_time": asdict(OtherMetric("s", "lower", "time", base, head))},
        )
        for index, (base, head) in enumerate(times)
    ]
    learned = evaluate_learning(Experiment(metric=SCORE, error=0.01), pairs)
    time = learned["step_time"]
    assert learned["seeds"] == 4
    assert time["low"] < time["ratio"] < time["high"] < 0.7
    assert evaluate_learning(Experiment(metric=Metric(name="step_time")), pairs) == {}


@pytest.mark.parametrize(
    ("values", "seeds"),
    [
        ([(0.21979743242263794, 1.3769015073776245)] * 4, 1),
        ([(0.21979743242263794, 1.3769015073776245)] * 3 + [(0.22, 1.38)], 4),
        # All of it, and none: there are few values that a share of tries can have.
        ([(1.0, 0.0)] * 4, 4),
        ([(0.21979743242263794, 1.3769015073776245)], 1),
    ],
)
def test_a_script_that_takes_no_seed_tells_of_one(values: list[tuple[float, float]], seeds: int) -> None:
    pairs = [
        ExperimentPair(index=index, base=base, head=head, seed=2000 + index)
        for index, (base, head) in enumerate(values)
    ]
    learned = evaluate_learning(Experiment(metric=SCORE, error=0.01), pairs)
    assert (learned["seeds"], learned.get("seed_ignored", False)) == (seeds, seeds < len(values))


def test_of_pairs_that_report_nothing_no_seed_is_told_ignored() -> None:
    pair = ExperimentPair(base=0.21979743242263794, head=1.3769015073776245, seed=2000)
    lost = ExperimentPair(base=0.21979743242263794, head=1.3769015073776245, seed=2001, unreported="head")
    assert evaluate_learning(Experiment(metric=SCORE, error=0.01), [pair, lost])["seeds"] == 2


def test_pairs_of_one_seed_are_no_proof_of_a_loss(make_experiment: MakeExperiment) -> None:
    made = make_experiment()
    others = {"quality.score": {"unit": "1", "better": "higher", "kind": "quality", "base": 9.0, "head": 2.0}}
    for index, seed in enumerate((None, 2000)):
        made.pairs.create(
            index=index, base_first=True, base=1.0, head=0.6, seconds=1.0, seed=seed, others=others
        )
    (pair,) = pairs_of_metric(made, SCORE)
    assert (pair.base, pair.head, pair.seed) == (9.0, 2.0, 2000)
    assert pair.others["step_time"]["head"] == 0.6
