"""The scores of the detection benchmark, by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bench.detection import detectors, false_alarms, scoring, verdicts
from bench.detection.trials import Trial, Trials, load_trials, simulate_trials

STEP = [1.0] * 40 + [2.0] * 20


def detect_by_four_points(values):
    """Finds a step when its fourth point is there."""
    return [40] if len(values) >= 44 else []


def detect_nothing(_):
    return []


def detect_every_tenth(values):
    """Raises something new with every tenth point."""
    return list(range(10, len(values), 10))


def test_a_delay_counts_the_points_of_the_new_level():
    assert scoring.detection_delay(detect_by_four_points, Trial(STEP, (40,))) == 4
    assert scoring.detection_delay(detect_nothing, Trial(STEP, (40,))) == math.inf
    assert scoring.detection_delay(detect_by_four_points, Trial(STEP, (37,))) == math.inf


def test_false_alarms_are_counted_after_the_first_points():
    assert scoring.count_false_alarms(detect_every_tenth, Trial([1.0] * 60)) == scoring.Alarms(3, 30)
    assert scoring.Alarms(3, 30).per_1000 == 100


def test_each_change_needs_a_report_of_its_own():
    assert scoring.count_matches([10, 12], [11]) == 1
    assert scoring.count_matches([10, 30], [14, 31, 50]) == 2
    assert scoring.count_matches([10], [16]) == 0


def test_whole_histories_and_annotators():
    assert scoring.f1_of_all(
        detect_by_four_points, [Trial(STEP, (40,)), Trial(STEP, (40, 50))]
    ) == pytest.approx(0.8)
    assert scoring.f1_of_annotators([40], {"a": [40], "b": [40]}) == 1
    assert scoring.covering_score([], {"a": [30]}, 60) == pytest.approx(0.5)


def test_a_folder_is_read(tmp_path):
    for name in ("null", "null_var", "online", "offline", "real_gpu", "tcpd", "noise"):
        (tmp_path / f"{name}.json").write_text("[]")
    row = {"base": "a", "values": STEP, "tau": 40, "step_pct": 5, "variant": "drift"}
    (tmp_path / "online.json").write_text(json.dumps([row]))
    (tmp_path / "noise.json").write_text(json.dumps([{"id": "a", "source": "x:numpy"}]))
    assert load_trials(tmp_path).online == [Trial(STEP, (40,), "drift", "numpy", 5)]


def test_peers_are_the_public_functions_of_a_file(tmp_path):
    (tmp_path / "peers.py").write_text(
        "from math import sqrt\ndef no(v, p=1): return []\ndef _own(v): return []\ndef two(a, b): return 0\n"
    )
    assert list(detectors.load_peers(tmp_path / "peers.py")) == ["no"]


def test_a_peer_that_fails_is_a_line():
    def broken(values):
        raise ImportError("no otava")

    assert "ImportError: no otava" in detectors.table_row("otava", broken, Trials())


def test_simulated_trials_hold_every_null_model():
    trials = simulate_trials()
    assert {trial.group for trial in trials.change_free} == {"real", "permuted"}
    assert len({trial.source for trial in trials.disturbed}) == 16
    assert {trial.percent for trial in trials.online} == {3, 5, 10}


def test_a_line_has_all_columns():
    line = detectors.table_row(
        "fourth", detect_by_four_points, Trials(online=[Trial(STEP, (40,), percent=5)])
    )
    assert line.count("|") == len(detectors.COLUMNS) + 1
    assert "/1.00/" in line


def test_projects_of_measured_histories_have_a_line_for_each_order():
    values = np.random.default_rng(3).normal(100, 1, (6, 36)).tolist()
    trials = [Trial(history, group=group) for group in ("real", "permuted") for history in values]
    lines = list(false_alarms.measured_budget_table(trials))
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["in random order", "as they are"]
    assert {line.count("|") for line in lines} == {6}


def test_pairs_of_a_history_alternate_which_is_the_good_one():
    good, bad = next(verdicts.pair_neighbours([1.0, 1.1] * verdicts.BUDGET, step=0.1))
    assert [round(share, 6) for share in (bad - good)[:4]] == [1, -1, 1, -1]


def test_tables_of_verdicts_count_what_was_decided():
    *_, quiet = verdicts.confirmation_table(2)
    assert quiet.count("|") == 8
    calm = list(verdicts.bisection_table(4))[2]
    assert [cell.strip() for cell in calm.split("|")[1:4]] == ["0.15", "0.0", "0.0"]
    noise = np.random.default_rng(3).normal(100, 0.1, 2 * verdicts.BUDGET).tolist()
    *_, line = verdicts.measured_table([Trial(noise, group="real")])
    assert line.split("|")[3:6] == [" 1 ", " 0.0 ", " 0.0 "]
