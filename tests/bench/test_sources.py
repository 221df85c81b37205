"""Public histories by source: how they are read, and which of their stretches count as change-free."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bench.detection.by_source import format_scores, score_source
from bench.detection.source_trials import (
    SourceTrials,
    disturbed_trials,
    find_real_steps,
    find_stretches,
    is_change_free,
    step_trials,
)
from bench.detection.sources import read_action_pages, read_asv_results
from bench.detection.trials import Trial
from dashboard.detection import detect


def test_results_of_asv_are_read_by_machine_and_parameter() -> None:
    document = {
        "date": 5,
        "result_columns": ["result", "params"],
        "results": {"time_sum": [[1.5, None], [["1", "2"]]]},
    }
    read = list(read_asv_results([("results/i7/0a1b-python3.json", json.dumps(document).encode())]))
    assert read[0] == ("i7/python3.json/time_sum#0", 5.0, 1.5)
    assert math.isnan(read[1][2])


def test_pages_of_results_are_read_commit_by_commit() -> None:
    entries = [
        {"date": date, "benches": [{"name": "step", "value": value}]} for date, value in ((1, 2.0), (2, "3"))
    ]
    text = f"window.BENCHMARK_DATA = {json.dumps({'entries': {'rust': entries}})};"
    assert list(read_action_pages([("data.js", text.encode())])) == [
        ("rust/step", 1.0, 2.0),
        ("rust/step", 2.0, 3.0),
    ]


@pytest.mark.parametrize(("step", "free"), [(0.0, True), (0.05, False)])
def test_a_stretch_with_a_step_is_not_change_free(step: float, free: bool) -> None:
    values = np.random.default_rng(1).normal(0, 0.01, 120)
    values[60:] += step
    assert is_change_free(values) is free
    histories = [{"series": "a#0", "values": np.exp(values).tolist()}]
    assert len(find_stretches(histories, lambda part: is_change_free(part) and len(part) == 120)) in (0, free)


def test_real_steps_are_found_where_they_are() -> None:
    values = np.random.default_rng(2).normal(0, 0.01, 160)
    values[90:] += 0.2
    (trial,) = find_real_steps([{"series": "a#0", "values": np.exp(values).tolist()}], "own")
    assert trial.taus == (35,)
    assert trial.values[34] < 1.1 < trial.values[35]


def test_the_table_ends_with_the_mean_and_the_worst_source() -> None:
    drawn = np.random.default_rng(3)
    scores = []
    for name, noise in (("calm", 0.003), ("loud", 0.06)):
        still = drawn.normal(0, noise, 100)
        trials = SourceTrials(name, [Trial(np.exp(still).tolist(), source=name)])
        trials.steps = list(step_trials(still, drawn, name))
        trials.disturbed = list(disturbed_trials(still, drawn, name))[:1]
        scores.append(score_source(detect, trials))
    *_, calm, loud, mean, worst = format_scores(scores)
    assert calm.startswith("| calm | 0.00 |")
    cells = [[cell.strip() for cell in row.split("|")] for row in (calm, loud, mean, worst)]
    found = [row[6] for row in cells]
    assert float(found[0]) == 1.0
    assert float(found[3]) == min(float(found[0]), float(found[1])) < 1.0
