"""What pairs say: estimates, their precision, their end, and that the interval is valid at every look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from paceline.metrics import describe_metric
from scipy import special

from dashboard.detection import pairs
from dashboard.experiments.verdicts import ExperimentResult, Interval, evaluate_experiment
from dashboard.models import Experiment, ExperimentPair, Metric

Values = Sequence[tuple[float, float]]
PAIR_SECONDS = 10.0


def estimate_of(metric: str = "step_time", **fields: float) -> Experiment:
    """An estimate, with no row in the database."""
    known = describe_metric(metric)
    assert known is not None
    row = Metric(name=metric, unit=known.unit, better=known.better, kind=known.kind)
    values = {"precision": 0.01, "most_pairs": 24, "most_seconds": 1200.0} | fields
    return Experiment(question="estimate", purpose="person", metric=row, **values)


def pair_rows(values: Values, disturbed: Sequence[int] = ()) -> list[ExperimentPair]:
    return [
        ExperimentPair(index=index, base=base, head=head, disturbed=index in disturbed)
        for index, (base, head) in enumerate(values)
    ]


def evaluate_each(experiment: Experiment, values: Values) -> Iterator[ExperimentResult]:
    """After every pair until the verdict."""
    for count in range(1, len(values) + 1):
        result = evaluate_experiment(experiment, pair_rows(values[:count]), PAIR_SECONDS * count)
        yield result
        if result.verdict:
            return


def draw_pairs(count: int, ratio: float, noise: float, seed: int) -> list[tuple[float, float]]:
    """Pairs of values whose logarithms differ by that of the ratio, with this noise of a pair."""
    random = np.random.default_rng(seed)
    shared = random.normal(0, 0.05, count)  # What slows the machine slows both sides.
    moved = math.log(ratio) + random.normal(0, noise, count)
    return [(math.exp(level), math.exp(level + shift)) for level, shift in zip(shared, moved, strict=True)]


def ends_of(interval: Interval | None) -> tuple[float, float, float]:
    """The value, and the ends that it has."""
    assert interval is not None
    assert interval.value is not None
    assert interval.low is not None
    assert interval.high is not None
    return interval.value, interval.low, interval.high


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.38])
def test_an_estimate_stops_at_its_precision(ratio: float) -> None:
    *before, last = evaluate_each(estimate_of(), draw_pairs(24, ratio, 0.01, seed=3))
    assert (last.verdict, last.reason) == ("estimated", {})
    assert all(not result.verdict for result in before)
    for result in [*before, last]:
        if result.ratio and result.ratio.low and result.ratio.high:
            half = math.log(result.ratio.high / result.ratio.low) / 2
            assert (half <= math.log1p(0.01)) == bool(result.verdict)
    _, low, high = ends_of(last.ratio)
    assert low < ratio < high


def test_a_coarser_estimate_ends_sooner() -> None:
    values = draw_pairs(24, 1.2, 0.03, seed=5)
    took = [len(list(evaluate_each(estimate_of(precision=wanted), values))) for wanted in (0.02, 0.05, 0.2)]
    assert took == sorted(set(took), reverse=True)


def test_at_the_end_of_its_budget_an_estimate_is_what_is_known() -> None:
    *_, last = evaluate_each(estimate_of(), draw_pairs(30, 1.2, 0.2, seed=1))
    _, low, high = ends_of(last.ratio)
    assert last.verdict == "estimated"
    assert last.reason["code"] == "precision not reached"
    assert last.reason["pairs"] == 24
    assert math.log1p(last.reason["reached"]) == pytest.approx(math.log(high / low) / 2)
    assert last.reason["reached"] > last.reason["wanted"] == 0.01


@pytest.mark.parametrize("fields", [{"most_pairs": 3}, {"most_seconds": 3 * PAIR_SECONDS}])
def test_too_few_pairs_leave_it_undecided(fields: dict[str, Any]) -> None:
    *_, last = evaluate_each(estimate_of(**fields), draw_pairs(9, 1.2, 0.01, seed=1))
    assert (last.verdict, last.ratio) == ("undecided", None)
    assert last.reason == {"code": "too few pairs", "calm": 3, "pairs": 3, "seconds": 3 * PAIR_SECONDS}


def test_disturbed_pairs_are_not_weighed_and_cost_budget() -> None:
    calm = draw_pairs(6, 1.2, 0.01, seed=2)
    spoilt = [(1.0, 9.0), *calm[:3], (9.0, 1.0), *calm[3:]]
    result = evaluate_experiment(estimate_of(precision=0.0005), pair_rows(spoilt, disturbed=(0, 4)), 80.0)
    assert result == evaluate_experiment(estimate_of(precision=0.0005), pair_rows(calm), 60.0)
    spent = evaluate_experiment(estimate_of(most_pairs=8), pair_rows(spoilt, disturbed=range(8)), 80.0)
    assert (spent.verdict, spent.reason["calm"], spent.reason["pairs"]) == ("undecided", 0, 8)


@pytest.mark.parametrize(
    ("values", "ratio", "difference"),
    [
        ([(100.0, 112.0)] * 2, 1.12, None),
        ([(100.0, 100.0)] * 2, 1.0, None),
        ([(0.0, 3.0)] * 2, None, 3.0),
        ([(0.0, 0.0)] * 2, None, 0.0),
    ],
)
def test_exact_counters_end_at_once(values: Values, ratio: float | None, difference: float | None) -> None:
    """Two countings of each side that agree: nothing is left to wait for, and the interval has no width."""
    first, last = evaluate_each(estimate_of("function_calls"), values)
    assert (first.verdict, last.verdict) == ("", "estimated")
    told = last.ratio or last.difference
    assert told is not None
    assert (told.value, told.low, told.high) == (ratio if ratio is not None else difference,) * 3
    assert (last.difference is None) == (ratio is not None)


@pytest.mark.parametrize("metric", ["count.drops", "step_time"])
def test_what_may_depend_on_speed_is_not_called_exact(metric: str) -> None:
    result = evaluate_experiment(estimate_of(metric), pair_rows([(2.0, 3.0)] * 4), 40.0)
    value, low, high = ends_of(result.ratio)
    assert result.verdict == ""
    assert low < value < high


def test_counters_that_do_not_repeat_are_estimated() -> None:
    *_, last = evaluate_each(
        estimate_of("function_calls"), [(100.0, 112.0), (100.0, 113.0), *[(101.0, 112.0)] * 14]
    )
    assert last.verdict == "estimated"
    value, low, high = ends_of(last.ratio)
    assert low < value < high


# A growth of memory that goes either way, in bytes per thousand steps.
SIGNED = [(-3000.0, 9000.0), (1000.0, 12_500.0), (-500.0, 10_000.0), (2000.0, 11_000.0), (-100.0, 11_400.0)]


def test_values_of_both_signs_have_a_difference_in_their_unit() -> None:
    *_, last = evaluate_each(estimate_of("memory_growth", most_pairs=5), SIGNED)
    assert (last.verdict, last.ratio) == ("estimated", None)
    value, low, high = ends_of(last.difference)
    assert value == pytest.approx(np.mean([head - base for base, head in SIGNED]))
    assert 0 < low < value < high
    assert (last.columns["ratio"], last.columns["difference_low"]) == (None, low)


def test_a_difference_is_precise_by_the_size_of_its_values() -> None:
    random = np.random.default_rng(4)
    values = [(0.0, 500 + noise) for noise in random.normal(0, 2, 24)]
    *_, last = evaluate_each(estimate_of("memory_growth", precision=0.05), values)
    _, low, high = ends_of(last.difference)
    assert last.reason == {}
    # Half of the values are 0 and half 500: their middle is 250, five hundredths of which are 12.5.
    assert (high - low) / 2 <= 12.5


@pytest.mark.parametrize(
    ("metric", "before"), [("peak_memory", 3e6), ("memory_growth", 0.0)], ids=["level", "no level"]
)
@pytest.mark.parametrize(("grown", "verdict"), [(0.5, "refuted"), (4.0, "confirmed")])
def test_less_than_a_mebibyte_is_not_relevant(metric: str, before: float, grown: float, verdict: str) -> None:
    """A step of 4 MiB is suspected, and the pairs show so many MiB."""
    suspected = estimate_of(metric, before=before, after=before + 4 * 2**20, precision=None)
    suspected.question = "test"
    noise = np.random.default_rng(5).normal(0, 2**12, (24, 2))
    values = [(before + a, before + grown * 2**20 + b) for a, b in noise.tolist()]
    *_, last = evaluate_each(suspected, values)
    assert last.verdict == verdict


def test_a_rate_and_a_time_say_the_same_of_one_run() -> None:
    times = draw_pairs(6, 1.3, 0.01, seed=8)
    rates = [(1 / base, 1 / head) for base, head in times]
    of_time = evaluate_experiment(estimate_of("step_time"), pair_rows(times), 60.0)
    of_rate = evaluate_experiment(estimate_of("throughput"), pair_rows(rates), 60.0)
    _, low, high = ends_of(of_rate.ratio)
    assert (1 / high, 1 / low) == pytest.approx(ends_of(of_time.ratio)[1:])


def test_exponents_are_weighed_by_their_difference() -> None:
    values = [(1.0 + wobble, 1.5 - wobble) for wobble in (0.01, -0.01, 0.005, 0.0)]
    result = evaluate_experiment(estimate_of("scaling_exponent"), pair_rows(values), 40.0)
    assert math.log(ends_of(result.ratio)[0]) == pytest.approx(0.4975, abs=0.01)


LOOKS = 24
Draw = Callable[[np.random.Generator], float]
NOISES: dict[str, Draw] = {
    "normal": lambda random: random.normal(0, 0.03),
    "heavy tails": lambda random: 0.02 * random.standard_t(4),
    "lopsided": lambda random: 0.03 * random.exponential(),
}


# Of the larger error a third of the experiments tells as much.
@pytest.mark.parametrize(
    ("noise", "error", "seeds"), [("normal", 0.05, 100), ("heavy tails", 0.01, 300), ("lopsided", 0.05, 100)]
)
def test_the_interval_holds_the_truth_at_every_look(noise: str, error: float, seeds: int) -> None:
    """Of many experiments hardly more than the promised part ever leaves out the truth."""
    truth, draw = 1.1, NOISES[noise]
    experiment = estimate_of(precision=0.0005, error=error)
    missed = sum(misses_truth(experiment, truth, draw, np.random.default_rng(seed)) for seed in range(seeds))
    # More than so many would be seen once in ten thousand times where the promise holds.
    assert missed <= math.ceil(special.bdtrik(1 - 1e-4, seeds, error))


def misses_truth(experiment: Experiment, truth: float, draw: Draw, random: np.random.Generator) -> bool:
    """True where the interval leaves out the true ratio after any of the pairs."""
    values = [(math.exp(draw(random)), truth * math.exp(draw(random))) for _ in range(LOOKS)]
    rows = pair_rows(values)
    for count in range(4, LOOKS + 1):
        _, low, high = ends_of(evaluate_experiment(experiment, rows[:count], 0.0).ratio)
        if not low <= truth <= high:
            return True
    return False


def test_an_interval_for_one_look_is_seen_to_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Student's interval is right after any one number of pairs, and not after all of them."""

    def half_width(count: int, deviation: float, error: float) -> float:
        return float(special.stdtrit(count - 1, 1 - error / 2)) * deviation / math.sqrt(count)

    monkeypatch.setattr(pairs, "interval_half_width", half_width)
    error, seeds, draw = 0.05, 100, NOISES["normal"]
    experiment = estimate_of(precision=0.0005, error=error)
    missed = sum(misses_truth(experiment, 1.1, draw, np.random.default_rng(seed)) for seed in range(seeds))
    assert missed > math.ceil(special.bdtrik(1 - 1e-4, seeds, error))
