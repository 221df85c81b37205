"""Short histories: levels of two or three points must suffice, and one outlier must not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dashboard.detection import Point, Series, judge_series
from dashboard.detection.doubts import ENOUGH_POINTS, FEW_POINTS_AFTER, TAINTED_BEFORE
from dashboard.detection.judgement import judge_readings
from dashboard.detection.readings import prepare_readings
from dashboard.detection.types import Doubt
from tests.detection.builders import noise_factors, plain_series, step_levels


def change_indices(values, **kwargs):
    return [change.index for change in judge_series(plain_series(values, **kwargs))]


def test_a_step_is_found_with_its_second_point():
    values = step_levels(4, 2, 1.3) * noise_factors(6, 0.01)
    assert change_indices(values[:5]) == []
    assert change_indices(values) == [4]


def test_one_point_is_no_level():
    assert change_indices([1.0, 1.5, 1.5, 1.5]) == []


def test_a_burst_far_from_both_levels_belongs_to_the_nearer():
    values = np.repeat([100.0, 60.0, 153.0], [31, 3, 35]) * noise_factors(69, 0.005)
    assert change_indices(values) == [34]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_too_few_points_tell_nothing(n):
    assert change_indices([1.0, 9.0, 9.0][:n]) == []


def test_one_outlier_is_no_change():
    values = [1.0, 1.01, 0.99, 1.0, 5.0, 1.0, 1.01, 0.99]
    assert all(change_indices(values[:n]) == [] for n in range(len(values) + 1))


def test_an_outlier_before_a_step_does_not_move_it():
    values = [1.0, 1.0, 1.01, 0.99, 1.06, 1.0, 1.5, 1.51, 1.5]
    assert change_indices(values) == [6]


def test_four_changes_in_sixteen_commits():
    levels = np.repeat([1.0, 1.3, 2.4, 1.7, 2.2], [4, 3, 3, 3, 3])
    assert change_indices(levels * noise_factors(16, 0.02)) == [4, 7, 10, 13]


def test_a_step_below_the_floor_is_not_relevant():
    assert change_indices(step_levels(8, 8, 1.08)) == []
    assert change_indices(step_levels(8, 8, 1.12)) == [8]


def test_memory_has_a_lower_floor_than_time():
    assert change_indices(3e8 * step_levels(5, 5, 1.06), kind="memory") == [5]


def test_two_small_steps_that_add_up_are_one_change():
    values = np.concatenate([np.ones(5), np.full(3, 1.03), np.full(5, 1.065)])
    assert len(change_indices(3e8 * values, kind="memory")) == 1


def test_drift_below_the_floor_is_no_change():
    assert change_indices(np.linspace(1.0, 1.08, 16)) == []


def test_direction_follows_what_is_better():
    (slower,) = judge_series(plain_series(step_levels(5, 5, 1.3), kind="time", better="lower"))
    (faster,) = judge_series(plain_series(step_levels(5, 5, 1.3), kind="rate", better="higher"))
    assert (slower.direction, faster.direction) == ("regression", "improvement")


def test_levels_ratio_and_interval_agree():
    (change,) = judge_series(plain_series(step_levels(8, 8, 1.3) * noise_factors(16, 0.02)))
    assert change.after / change.before == pytest.approx(change.ratio, rel=1e-3)
    assert change.low < 1.3 < change.high
    assert change.confidence > 0.99


def test_two_points_tell_less_than_eight():
    short, long = (
        judge_series(plain_series(step_levels(8, n, 1.3) * noise_factors(8 + n, 0.02)))[0] for n in (2, 8)
    )
    assert short.high - short.low > long.high - long.low
    assert Doubt(FEW_POINTS_AFTER, {"count": ENOUGH_POINTS - 1}) in short.doubts


def test_tainted_points_are_left_out_and_indices_count_them():
    points = [Point(v) for v in step_levels(4, 4, 1.4)]
    points.insert(4, Point(9.0, tainted=True))
    (change,) = judge_series(Series(points, "lower", "time"))
    assert change.index == 5
    assert Doubt(TAINTED_BEFORE, {"count": 1}) in change.doubts


def test_a_point_with_wide_repetitions_weighs_less():
    quiet, wild = (0.99, 1.0, 1.01), (0.8, 1.25, 2.0)
    points = [Point(1.0, quiet)] * 6 + [Point(1.25, wild)] * 2
    assert judge_series(Series(points, "lower", "time")) == []


def test_exact_counters_are_known_at_the_first_point():
    (change,) = judge_series(plain_series([100, 100, 100, 101], kind="counter", exact=True))
    assert (change.index, change.ratio, change.confidence) == (3, pytest.approx(1.01), 1.0)
    assert (change.low, change.high) == (pytest.approx(1.01), pytest.approx(1.01))
    assert change.doubts == ()


def test_an_exact_counter_from_zero_stays_finite():
    (change,) = judge_series(plain_series([0, 0, 0, 5], kind="counter", exact=True))
    assert change.direction == "regression"
    assert change.ratio == 2.0
    assert math.isfinite(change.high)


def test_a_counter_that_differs_between_repetitions_is_noisy():
    points = [Point(v, (v, v + 1)) for v in (100.0, 100.0, 103.0, 103.0)]
    assert judge_series(Series(points, "lower", "counter", exact=True)) == []


def test_growth_around_zero_has_no_ratio_but_a_change():
    values = [0.0, 10.0, -10.0, 5.0, 0.0, 9e6, 9.05e6, 8.9e6]
    (change,) = judge_series(plain_series(values, kind="memory"))
    assert change.index == 5
    assert math.isfinite(change.ratio)
    assert change.direction == "regression"


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match=r"points\[1\]"):
        judge_series(plain_series([1.0, math.nan, 1.0]))


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_scale_does_not_matter(scale):
    assert change_indices(scale * step_levels(5, 3, 1.3) * noise_factors(8, 0.01)) == [5]


def test_times_are_judged_by_their_best_repetition():
    calm, disturbed = (1.0, 1.01, 1.0), (1.01, 1.5, 1.6)
    points = [Point(float(np.median(s)), s) for s in [calm] * 6 + [disturbed] * 3]
    assert judge_series(Series(points, "lower", "time")) == []


def test_rates_are_judged_by_their_best_repetition():
    calm, disturbed = (100.0, 99.0, 100.0), (101.0, 70.0, 60.0)
    points = [Point(float(np.median(s)), s) for s in [calm] * 6 + [disturbed] * 3]
    assert judge_series(Series(points, "higher", "rate")) == []


def test_growth_by_a_few_pages_is_not_relevant():
    assert change_indices([0, 0, 0, 4096, 0, 0, 8192, 8192, 8192, 8192], kind="memory") == []


def repeated_series(runs, kind="time", better="lower"):
    return Series([Point(float(np.median(run)), tuple(run)) for run in runs], better, kind)


def slowed_processes(before, after, slowed, seed=0):
    """Runs of five processes around 1; from `before` on some of each run take 38 % longer."""
    rng = np.random.default_rng(seed)
    runs = np.exp(rng.normal(0, 0.01, (before + after, 5)))
    runs[before:, :slowed] *= 1.38
    return runs.tolist()


@pytest.mark.parametrize(("before", "slowed"), [(10, 3), (40, 3), (40, 2)])
def test_a_cause_that_slows_some_processes_is_found(before, slowed):
    (change,) = judge_series(repeated_series(slowed_processes(before, 12, slowed)))
    assert change.index == before
    assert change.direction == "regression"
    average = 1.38 ** (slowed / 5)  # of logarithms
    assert change.ratio == pytest.approx(average, abs=0.03)
    assert change.low < average < change.high
    assert change.after == pytest.approx(change.before * change.ratio)
    (doubt,) = [doubt for doubt in change.doubts if doubt.code == "not in best"]
    assert doubt.about["ratio_of_best"] == pytest.approx(1, abs=0.02)
    assert judge_series(repeated_series(slowed_processes(before, 12, slowed)), [change.index]) == [change]


@pytest.mark.parametrize("before", [10, 40])
def test_what_is_busy_for_a_while_is_no_change(before):
    assert judge_series(repeated_series(slowed_processes(before, 11, 3))) == []
    over = slowed_processes(before, 24, 3)
    over[before + 8 :] = slowed_processes(16, 0, 0)
    assert judge_series(repeated_series(over)) == []


@pytest.mark.parametrize("before", [10, 40])
def test_what_all_processes_show_is_one_change_of_the_best(before):
    (change,) = judge_series(repeated_series(slowed_processes(before, 12, 5)))
    assert change.index == before
    assert "not in best" not in [doubt.code for doubt in change.doubts]


@pytest.mark.parametrize(
    ("run", "direction"),
    [((1.38, 1.38, 1.38, 1.38, 0.7), "regression"), ((0.6, 0.6, 1.06, 1.07, 1.06), "improvement")],
)
def test_where_best_and_average_differ_the_direction_is_that_of_the_average(run, direction):
    runs = slowed_processes(52, 0, 0)
    runs[40:] = (np.array(runs[40:]) * run).tolist()
    (change,) = judge_series(repeated_series(runs))
    assert (change.index, change.direction) == (40, direction)
    assert (change.ratio > 1) == (direction == "regression") == (change.after > change.before)


@pytest.mark.parametrize("n", [20, 24, 29])
def test_a_slope_is_no_step_of_the_average_process(n):
    rng = np.random.default_rng(n)
    runs = np.exp(np.linspace(0, 0.2, n)[:, None] + rng.normal(0, 0.01, (n, 5)))
    series = repeated_series(runs.tolist())
    (of_best,) = judge_readings([series], [prepare_readings(series)])
    assert [change.index for change in judge_series(series)] == [change.index for change in of_best]


def test_where_there_are_no_ratios_the_average_process_has_a_level_too():
    runs = [[0.0] * 5] * 40 + [[0.0, 0.0, 1.0, 1.2, 1.1]] * 12
    (change,) = judge_series(repeated_series(runs))
    assert (change.index, change.before) == (40, 0.0)
    assert change.after == pytest.approx(3.3 / 5)


@pytest.mark.parametrize(("first", "then"), [(2, 5), (5, 2), (3, 7), (1, 5)])
def test_another_number_of_repetitions_is_no_change(first, then):
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        runs = [np.exp(rng.normal(0, 0.05, first if i < 30 else then)) for i in range(60)]
        found += len(judge_series(repeated_series(runs)))
    assert found <= 1


def test_what_only_the_average_shows_stays_while_points_arrive():
    """A level of slow and fast processes is noisier than the one before it."""
    vanished = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        runs = np.exp(rng.normal(0, 0.02, (75, 5))) * (1 + 0.38 * (rng.random((75, 5)) < 0.6))
        runs[:30] = np.exp(rng.normal(0, 0.02, (30, 5)))
        runs[46:] *= 1.3
        series, known = repeated_series(runs.tolist()), []
        for n in range(40, 76):
            grown = replace(series, points=series.points[:n])
            found = [change.index for change in judge_series(grown, known)]
            near = [any(abs(index - 30) <= 3 for index in indices) for indices in (known, found)]
            vanished += near == [True, False]
            known = found
    assert vanished <= 1
