"""Runs of one commit, judged after each of them."""

from __future__ import annotations

import numpy as np

from bench.detection.same_commit import Judged, count_alerts, judge_growing
from dashboard.detection import Point, Series
from tests.detection.builders import noise_factors, plain_series, step_levels


def test_calm_runs_report_nothing():
    samples = noise_factors(60, 0.01).reshape(20, 3).tolist()
    judged = judge_growing(
        Series([Point(float(np.median(row)), tuple(row)) for row in samples], "lower", "time")
    )
    assert (judged.reported, judged.standing, judged.points) == (0, 0, 20)
    assert 0.03 < judged.smallest < 0.15


def test_what_is_reported_once_and_stands_is_counted_once():
    judged = judge_growing(plain_series(step_levels(8, 8, 1.4) * noise_factors(16, 0.01)))
    assert (judged.reported, judged.standing) == (1, 1)


def test_alerts_are_runs_however_many_series_they_hold():
    certain, silent = [0.0] + [1.0] * 9, [1.0] * 10
    series = {"time": Judged(10, 0.1, p_values=certain), "rate": Judged(10, 0.1, p_values=certain)}
    assert count_alerts(series, 1.0) == 1
    assert count_alerts({"time": Judged(10, 0.1, p_values=silent)}, 1.0) == 0
