"""A small step is weighed by single steps where both sides took turns, beside the mean of the pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dashboard import experiments
from dashboard.detection.pairs import place_verdict
from dashboard.experiments.reuse import SuspectedStep
from dashboard.experiments.single_steps import (
    can_evaluate_steps,
    compare_newest,
    compare_phase,
    evaluate_steps,
)
from dashboard.experiments.verdicts import (
    ExperimentResult,
    bound_experiment,
    error_of_look,
    evaluate_experiment,
    place_step,
    scale_of,
)
from dashboard.host_protocol import PairMeasured
from dashboard.models import Experiment, ExperimentPair, Metric
from tests.dashboard.experiments.conftest import MakeExperiment, claim_held, get_metric
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
    pairs: list[ExperimentPair] = []
    for index in range(count):
        pair = ExperimentPair(
            index=index,
            base_first=first[index],
            base=means[0][index],
            head=means[1][index],
            steps={"base": base[:, index].tolist(), "head": head[:, index].tolist()},
        )
        compare_newest(pair, pairs)
        pairs.append(pair)
    return pairs


def evaluate_all(experiment: Experiment, pairs: list[ExperimentPair]) -> tuple[ExperimentResult, int]:
    """The verdict, and after how many pairs."""
    for count in range(1, len(pairs) + 1):
        result = evaluate_experiment(experiment, pairs[:count], 5.0 * count)
        if result.verdict:
            break
    return result, count


@pytest.mark.parametrize("metric", ["step_time", "throughput"])
@pytest.mark.parametrize(
    ("moved", "disturbed", "seed", "verdict"), [(0.01, 0.2, 1, "confirmed"), (0.0, 0.05, 2, "refuted")]
)
def test_single_steps_tell_what_means_leave_open(
    metric: str, moved: float, disturbed: float, seed: int, verdict: str
) -> None:
    """They refute where the means leave no room for the step either, so beside less other work."""
    pairs = draw_pairs(120, moved, disturbed=disturbed, seed=seed, rate=metric == "throughput")
    result, count = evaluate_all(make_test(metric=metric), pairs)
    assert (result.verdict, count < 50) == (verdict, True)
    assert result.ratio is not None
    size = 1 / (1 + moved) if metric == "throughput" else 1 + moved
    assert result.ratio.value == pytest.approx(size, abs=0.004)
    for pair in pairs:
        pair.step_ratio = None
    assert evaluate_all(make_test(metric=metric), pairs)[0].verdict in ("", "undecided")


@pytest.mark.parametrize(("shown", "place"), [(0.015, "whole"), (0.03, "part")])
def test_single_steps_tell_how_much_of_a_step_pairs_show(shown: float, place: str) -> None:
    """`shown`: the step that the points show, of which the pairs have 1.5 %."""
    pairs = draw_pairs(60, 0.015, disturbed=0.05)
    assert place_step(make_test(), pairs, 1.0, 1.0 + shown) == place
    for pair in pairs:
        pair.step_ratio = None
    assert place_step(make_test(), pairs, 1.0, 1.0 + shown) == ""


def test_what_holds_up_few_steps_is_no_part_of_a_step() -> None:
    """Points and means show all of it; most steps have less than half."""
    pairs, drawn = draw_pairs(60, 0.015, disturbed=0.05), np.random.default_rng(1)
    for index, pair in enumerate(pairs):
        head = np.array(pair.steps["head"])
        head += (drawn.random(len(head)) < 1 / 50) * head.mean()
        pair.head, pair.steps["head"] = float(head.mean()), head.tolist()
        compare_newest(pair, pairs[:index])
    assert place_step(make_test(), pairs, 1.0, 1.035) != "part"
    # By these steps alone it would be one.
    assert steps_alone(pairs, 1.035) == "part"


def steps_alone(pairs: list[ExperimentPair], after: float) -> str:
    asked = make_test(question="place", before=1.0, after=after)
    scale = scale_of(asked, [(pair.base, pair.head) for pair in pairs])
    told = evaluate_steps(asked, pairs, scale, asked.error)
    assert told is not None
    return place_verdict(told)


@pytest.mark.parametrize(
    ("fields", "weighed"),
    [
        ({}, True),
        ({"in_turns": False}, False),
        ({"question": "place"}, True),
        ({"question": "estimate", "after": None}, True),
        ({"question": "bound", "after": None}, True),
        ({"question": "estimate", "in_turns": False}, False),
        ({"phase": "learn"}, False),
        ({"phase": "learn", "metric": "phase_time"}, True),
        ({"phase": "learn", "metric": "phase_time", "after": 1.2}, False),
        ({"after": 1.2}, False),
        ({"after": None}, False),
    ],
)
def test_steps_that_took_turns_tell_of_a_small_one(fields: dict[str, Any], weighed: bool) -> None:
    assert can_evaluate_steps(make_test(**fields)) is weighed


@pytest.mark.parametrize(("metric", "moved"), [("phase_time", 1.25), ("phase_self_time", 1.0)])
def test_a_phase_is_told_by_what_it_takes_in_typical_steps(metric: str, moved: float) -> None:
    """`learn/push` takes twice as long; the means of the pairs are as noisy as those of a busy machine."""
    asked = make_bound(question="estimate", metric=metric, phase="learn", precision=0.02, floor=None)
    drawn, pairs = np.random.default_rng(3), list[ExperimentPair]()
    for index in range(16):
        own = 0.006 * drawn.normal(1, 0.004)
        typical = {"act": (0.003, 0.003), "learn": (0.006, own), "learn/push": (0.002, 0.004)}
        means = [sum(typical[name][side] for name in ("learn", "learn/push")) for side in (0, 1)]
        if metric == "phase_self_time":
            means = [0.006, own]
        base, head = (mean * drawn.normal(1, 0.03) for mean in means)
        pair = ExperimentPair(index=index, base_first=index % 2 == 0, base=base, head=head)
        pair.typical_phases = typical
        compare_phase(asked, pair)
        pairs.append(pair)
    result = evaluate_experiment(asked, pairs, 80.0)
    assert result.by_steps
    assert result.ratio is not None
    assert result.ratio.value == pytest.approx(moved, abs=0.005)
    pairs[0].typical_phases = {}
    pairs[0].step_ratio = None
    compare_phase(asked, pairs[0])
    assert not evaluate_experiment(asked, pairs, 80.0).by_steps


def test_memory_has_no_steps() -> None:
    assert not can_evaluate_steps(make_test(metric="peak_memory"))


def make_bound(**fields: Any) -> Experiment:
    values: dict[str, Any] = {"question": "bound", "purpose": "check", "floor": 0.03, "error": 0.002}
    return make_test(**values | {"phases_with_step": [], "before": None, "after": None} | fields)


@pytest.mark.parametrize(("moved", "verdict"), [(0.0, "not worse"), (0.045, "worse")])
def test_a_check_is_told_by_single_steps(moved: float, verdict: str) -> None:
    pairs = draw_pairs(60, moved, disturbed=0.3)
    check = make_bound()
    result, count = evaluate_all(check, pairs)
    assert (result.verdict, result.by_steps, count < 30) == (verdict, True, True)
    bounded, _ = bound_experiment(check, pairs[:count])
    assert bounded is not None
    assert bounded.low is not None
    assert bounded.by_steps
    told = [result.columns[name] for name in ("ratio", "low")]
    assert told == pytest.approx([math.exp(bounded.middle), math.exp(bounded.low)], rel=1e-12)
    for pair in pairs:
        pair.step_ratio = None
    assert evaluate_all(check, pairs)[1] > 2 * count


@pytest.mark.parametrize(("metric", "moved"), [("step_time", 1.02), ("throughput", 1 / 1.02)])
def test_an_estimate_is_told_by_single_steps(metric: str, moved: float) -> None:
    asked = make_bound(metric=metric, question="estimate", floor=None, precision=0.02, error=0.01)
    pairs = draw_pairs(230, 0.02, disturbed=0.3, rate=metric == "throughput")
    result, count = evaluate_all(asked, pairs)
    assert (result.verdict, result.reason, result.by_steps) == ("estimated", {}, True)
    assert result.ratio is not None
    assert result.ratio.low is not None
    assert result.ratio.high is not None
    assert result.ratio.low < moved < result.ratio.high
    assert result.ratio.high / result.ratio.low <= 1.02**2
    for pair in pairs:
        pair.step_ratio = None
    looks = [int(share * count) for share in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)]
    assert [evaluate_experiment(asked, pairs[:look], 5.0 * look).verdict for look in looks] == [""] * 6


def test_what_only_the_mean_has_is_told_by_it() -> None:
    """A pause in steps that are others each time: none of them is typical."""
    pairs = draw_pairs(40, disturbed=0.02)
    for pair in pairs:
        pair.head *= 1.06
    bounded, _ = bound_experiment(make_bound(), pairs)
    assert bounded is not None
    assert (bounded.verdict, bounded.by_steps) == ("worse", False)


def test_a_step_that_only_the_mean_has_is_told_by_it() -> None:
    """Confirmed by the means: single steps surely miss it, more narrowly than these tell it."""
    pairs = draw_pairs(40, disturbed=0.02)
    for pair in pairs:
        pair.head *= 1.06
    result, _ = evaluate_all(make_test(0.06, phases_with_step=[]), pairs)
    assert (result.verdict, result.by_steps) == ("confirmed", False)
    assert result.ratio is not None
    assert result.ratio.low is not None
    assert result.ratio.low > 1
    assert result.ratio.value == pytest.approx(1.06, abs=0.01)


@pytest.mark.parametrize(("by_means_alone", "place"), [(True, "whole"), (False, "none")])
def test_a_step_that_the_mean_proved_is_placed_by_it(by_means_alone: bool, place: str) -> None:
    """Single steps surely miss it at every commit, and would say so of the one that made it too."""
    pairs = draw_pairs(60, disturbed=0.02)
    for pair in pairs:
        pair.head *= 1.06
    asked = make_test(0.06, question="place", phases_with_step=[], by_means_alone=by_means_alone)
    assert evaluate_all(asked, pairs)[0].verdict == place


def test_a_large_difference_is_told_by_the_mean() -> None:
    bounded, _ = bound_experiment(make_bound(), draw_pairs(20, 0.3))
    assert bounded is not None
    assert (bounded.verdict, bounded.by_steps) == ("worse", False)


def test_both_looks_share_the_error() -> None:
    pairs = draw_pairs(8)
    assert error_of_look(make_bound(), pairs) == 0.001
    assert error_of_look(make_test(), pairs) == pytest.approx(0.01 / 3)
    # Of pairs of before steps were compared nobody looks at them.
    pairs[0].step_ratio = None
    assert error_of_look(make_bound(), pairs) == 0.002
    assert error_of_look(make_test(), pairs) == pytest.approx(0.01 / 3)
    pairs[0].disturbed = True
    bounded, _ = bound_experiment(make_bound(), pairs)
    assert bounded is not None
    assert not bounded.by_steps


def test_unlike_steps_leave_it_to_the_means() -> None:
    """The error stays shared: what was looked at was looked at."""
    pairs = draw_pairs(12, disturbed=0.3)
    odd = ExperimentPair(index=12, base_first=True, base=1.0, head=1.0, steps={"base": [1.0], "head": [1.0]})
    compare_newest(odd, pairs)
    assert odd.step_ratio is None
    bounded, _ = bound_experiment(make_bound(), [*pairs, odd])
    assert bounded is not None
    assert not bounded.by_steps
    assert error_of_look(make_bound(), [*pairs, odd]) == 0.001


@pytest.fixture
def check(make_experiment: MakeExperiment) -> Experiment:
    """Whose steps take turns: that is known by what was counted before its pairs."""
    asked = {"question": "bound", "purpose": "check", "floor": 0.03, "before": None, "after": None}
    return make_experiment(**asked, in_turns=True, profiles={"base": {}, "head": {}})


def measure_check(moved: float) -> str:
    """Add pairs to what is held until a verdict."""
    held, verdict = claim_held(), ""
    for pair in draw_pairs(60, moved, disturbed=0.3):
        measured = PairMeasured(
            pair.index, pair.base_first, pair.base, pair.head, pair.index == 2, 6.0, steps=pair.steps
        )
        verdict = verdict or experiments.add_pair(held.lease, measured)
    return verdict


def test_the_verdict_and_the_page_have_the_same_numbers(check: Experiment) -> None:
    assert measure_check(0.0) == "not worse"
    check.refresh_from_db()
    pairs = list(check.pairs.all())
    assert not any(pair.steps for pair in pairs)
    result = evaluate_experiment(check, pairs, check.seconds)
    kept = {name: getattr(check, name) for name in result.columns}
    assert (result.columns, result.by_steps, result.verdict) == (kept, check.by_steps, check.verdict)
    assert check.by_steps
    bounded, _ = bound_experiment(check, pairs)
    assert bounded is not None
    assert bounded.high is not None
    assert math.exp(bounded.high) == pytest.approx(check.high, rel=1e-12)


def test_pairs_of_a_check_tell_of_a_step_that_is_suspected_later(check: Experiment) -> None:
    measure_check(0.045)
    check.refresh_from_db()
    result, copies = experiments.evaluate_suspected_step(check, SuspectedStep(check.metric, 1.0, 1.045, 0.01))
    assert (result.verdict, result.by_steps) == ("confirmed", True)
    assert [copy.step_ratio for copy in copies] == [pair.step_ratio for pair in check.pairs.all()]
    memory = SuspectedStep(get_metric("peak_memory"), 1.0, 1.045, 0.01)
    assert experiments.evaluate_suspected_step(check, memory)[1] == []
