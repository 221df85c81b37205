"""An experiment on a step that only phases show: its phases decide where the whole doesn't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from paceline.metrics import describe_metric

from dashboard.experiments.verdicts import ExperimentResult, evaluate_experiment
from dashboard.models import Experiment, ExperimentPair, Metric
from dashboard.sentences.comparisons.experiments import answer_sentence, reason_sentence

PHASES = {"learn": 0.0030, "env": 0.0025, "act": 0.0015, "sample": 0.0012, "log": 0.0010, "push": 0.0008}


def make_test(phases: Sequence[str] = ("log",), **fields: Any) -> Experiment:
    """A test of +1 % of a step of 10 ms, with no row in the database."""
    known = describe_metric("step_time")
    assert known is not None
    metric = Metric(name="step_time", unit=known.unit, better=known.better, kind=known.kind)
    values: dict[str, Any] = {"question": "test", "purpose": "proof", "before": 0.010, "after": 0.0101}
    values |= {"most_pairs": 24, "most_seconds": 1200.0, **fields}
    return Experiment(metric=metric, phases_with_step=list(phases), **values)


def draw_pairs(moved: dict[str, float], count: int = 24, seed: int = 1) -> list[ExperimentPair]:
    """On a machine whose speed wanders by 3 % between both repetitions of a pair."""
    drawn, pairs = np.random.default_rng(seed), []
    for index in range(count):
        pace = np.exp(drawn.normal(0, 0.03, 2))
        phases = {}
        for name, level in PHASES.items():
            sides = np.array([level, level + moved.get(name, 0.0)])
            phases[name] = (sides * pace * np.exp(drawn.normal(0, 0.004, 2))).tolist()
        base, head = (sum(both[side] for both in phases.values()) for side in (0, 1))
        pairs.append(ExperimentPair(index=index, base=base, head=head, phases=phases))
    return pairs


def last_result(experiment: Experiment, pairs: Sequence[ExperimentPair]) -> tuple[ExperimentResult, int]:
    """The verdict, and after how many pairs."""
    for count in range(1, len(pairs) + 1):
        result = evaluate_experiment(experiment, pairs[:count], 6.0 * count)
        if result.verdict:
            break
    return result, count


def test_a_phase_proves_what_the_whole_leaves_undecided() -> None:
    pairs = draw_pairs({"log": 0.0001})
    assert last_result(make_test(phases=()), pairs)[0].verdict in ("undecided", "refuted")
    result, count = last_result(make_test(), pairs)
    assert (result.verdict, result.reason["code"], result.reason["phases"]) == (
        "confirmed",
        "in phases",
        ["log"],
    )
    assert count < 16
    assert result.reason["phase"][0] == pytest.approx(1.10, abs=0.02)
    ratio, low, high = result.reason["step"]
    assert ratio == pytest.approx(1.01, abs=0.003)
    assert 1.0 < low < ratio < high
    # What the whole did by itself is told as well: it doesn't stand out.
    assert result.ratio is not None
    assert result.ratio.low is not None
    assert result.ratio.low < 1.0


def test_work_that_moved_is_refuted_as_moved() -> None:
    result, _ = last_result(make_test(), draw_pairs({"log": 0.0001, "env": -0.0001}))
    assert (result.verdict, result.reason["code"]) == ("refuted", "work moved")
    assert reason_sentence(result.reason).endswith(
        "which other phases took back: work moved, nothing was lost"
    )


def test_nothing_is_refuted_by_the_phase() -> None:
    result, count = last_result(make_test(), draw_pairs({}))
    assert (result.verdict, result.reason["code"]) == ("refuted", "in phases")
    assert count < 16


def test_a_commit_has_the_step_where_its_phase_has_it() -> None:
    for moved, verdict in ((0.0001, "whole"), (0.0, "none")):
        result, _ = last_result(make_test(question="place"), draw_pairs({"log": moved}))
        assert result.verdict == verdict


def test_pairs_without_phases_are_weighed_by_the_whole() -> None:
    pairs = draw_pairs({"log": 0.0001})
    pairs[3].phases = {}
    result, _ = last_result(make_test(), pairs)
    assert (result.verdict, result.reason["code"]) == ("undecided", "too noisy")


def test_the_answer_says_what_the_phase_did_and_what_the_whole() -> None:
    result, _ = last_result(make_test(), draw_pairs({"log": 0.0001}))
    said = make_test(state="done", verdict=result.verdict, reason=result.reason, **result.columns)
    text = answer_sentence(said)
    assert text.startswith("Confirmed: log +")
    assert ", which makes the step +" in text
    assert "; step time " in text
