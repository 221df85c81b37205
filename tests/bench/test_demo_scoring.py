from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.demo.disturbed_runs import describe_disturbance, format_disturbance
from bench.demo.scoring import format_scores, score_grouping, score_planted

ROOT = Path(__file__).resolve().parent.parent.parent
COMMITS = [letter * 40 for letter in "abcdef"]
PLANTED = {
    "commit": COMMITS[2],
    "kind": "regression",
    "metric": "step_time",
    "phase": "push",
    "function": "push",
    "percent": 30.0,
}
FOUND = {
    "first_bad": COMMITS[2],
    "last_good": COMMITS[1],
    "metric": "step_time",
    "phase": "push",
    "change_percent": 31.0,
    "state": "confirmed",
    "suspects": [{"function": "Replay.push"}],
    "culprit": None,
    "recovered_by": None,
    "cause": "code",
}
RESULT: dict[str, Any] = {
    "commits": COMMITS,
    "planted": [PLANTED],
    "regressions": [FOUND],
    "withdrawn": [],
    "improvements": [],
    "runs": [],
}


def is_right(planted: dict[str, Any], *found: dict[str, Any], **more: Any) -> bool:
    (row, *_) = score_planted({**RESULT, "planted": [planted], "regressions": found, **more})
    return bool(row["right"])


def test_a_regression_that_says_all_that_was_planted_is_right() -> None:
    (row,) = score_planted(RESULT)
    assert (row["commit"], row["right"]) == (COMMITS[2], True)
    assert row["paceline"] == "step_time +31%, push, Replay.push (confirmed)"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({}, True),
        ({"phase": "push/copy"}, True),
        ({"phase": "pushed"}, False),
        ({"phase": ""}, False),
        ({"state": "undecided"}, False),
        ({"first_bad": COMMITS[3]}, False),
    ],
)
def test_an_optimization_that_is_off_is_seen_in_its_phase(found: dict[str, Any], wanted: bool) -> None:
    switch = {**PLANTED, "kind": "toggle", "event": "push off", "claim": "Vectorized push"}
    assert is_right(switch, {**FOUND, **found}) is wanted


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "suspected"},
        {"phase": "sample"},
        {"metric": "peak_memory"},
        {"suspects": []},
        {"suspects": [{"function": "pop"}]},
        {"recovered_by": COMMITS[4]},
        {"first_bad": COMMITS[3]},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_regression_that_says_anything_else_is_wrong(wrong: dict[str, Any]) -> None:
    assert not is_right(PLANTED, FOUND | wrong)


def test_one_cause_is_one_regression() -> None:
    assert not is_right(PLANTED, FOUND, FOUND | {"metric": "throughput"})
    assert not is_right(PLANTED)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([FOUND], (1.0, 1.0)),
        ([FOUND, FOUND | {"metric": "peak_memory"}], (2.0, 1.0)),
        ([FOUND | {"last_good": COMMITS[0], "first_bad": COMMITS[5]}], (1.0, 1.0)),
        ([FOUND | {"culprit": COMMITS[4]}], (0.0, 0.0)),
        ([], (0.0, 0.0)),
    ],
)
def test_causes_are_counted(found: list[dict[str, Any]], expected: tuple[float, float]) -> None:
    counted = score_grouping({**RESULT, "regressions": found})
    assert counted is not None
    assert tuple(counted.values()) == expected


def test_two_causes_in_one_regression_are_counted() -> None:
    planted = [PLANTED, PLANTED | {"commit": COMMITS[3]}]
    wide = FOUND | {"first_bad": COMMITS[4]}
    counted = score_grouping({**RESULT, "planted": planted, "regressions": [wide]})
    assert counted == {"regressions_per_cause": 1.0, "causes_per_regression": 2.0}
    assert score_grouping({**RESULT, "planted": []}) is None


def test_a_regression_where_nothing_changed_is_a_row_of_its_own() -> None:
    rows = score_planted({**RESULT, "regressions": [FOUND, FOUND | {"first_bad": COMMITS[4]}]})
    assert [row["right"] for row in rows] == [True, False]
    assert rows[1]["event"] == "nothing changed"


def test_the_commit_of_a_merged_branch_is_named_by_its_culprit() -> None:
    merged = FOUND | {"first_bad": COMMITS[3], "culprit": COMMITS[2]}
    assert is_right(PLANTED, merged)
    assert format_scores({**RESULT, "regressions": [merged]})[1].endswith("right")


def test_who_repaired_it_and_which_cause_it_has_is_asked_where_it_was_planted() -> None:
    planted = PLANTED | {"repaired_by": COMMITS[4], "cause": "dependency"}
    assert is_right(planted, FOUND | {"recovered_by": COMMITS[4], "cause": "dependency"})
    assert not is_right(planted, FOUND | {"recovered_by": COMMITS[4]})
    assert not is_right(planted, FOUND | {"cause": "dependency"})


def test_an_improvement_is_found_and_told_to_nobody() -> None:
    planted = PLANTED | {"kind": "improvement", "percent": -40.0}
    better = {"commit": COMMITS[2], "metric": "step_time", "phase": "targets", "change_percent": -41.0}
    assert is_right(planted, improvements=[better])
    assert not is_right(planted, FOUND, improvements=[better])
    assert not is_right(planted)


def test_a_commit_that_does_not_run_is_left_out() -> None:
    broken = {"commit": COMMITS[2], "kind": "broken", "event": "doesn't run"}
    failed = {"commit": COMMITS[2], "state": "failed", "case": "snake"}
    assert is_right(broken, runs=[failed])
    assert not is_right(broken, runs=[failed | {"state": "done"}])
    assert not is_right(broken, FOUND)


def test_a_benchmark_defined_anew_is_a_new_series_and_no_regression() -> None:
    anew = {"commit": COMMITS[2], "kind": "definition", "event": "benchmark defined anew"}
    runs = [
        {"commit": commit, "state": "done", "case": case}
        for commit, case in zip(COMMITS, ["one", "one", "two", "two"], strict=False)
    ]
    assert is_right(anew, runs=runs)
    assert not is_right(anew, FOUND | {"first_bad": COMMITS[3]}, runs=runs)
    assert not is_right(anew, runs=[run | {"case": "one"} for run in runs])


def test_runs_beside_a_burning_program_are_told_from_the_others() -> None:
    runs = [
        {"id": number, "commit": commit, "tainted": number < 3, "doubts": ["another program ran"]}
        for number, commit in enumerate(COMMITS)
    ]
    found = describe_disturbance({**RESULT, "runs": runs}, ids=range(6), disturbed={0, 1, 5})
    assert found["burned_but_judged"] == [COMMITS[5]]
    assert (found["undisturbed"], found["undisturbed_tainted"]) == (3, [COMMITS[2]])
    assert (found["tainted_share"], found["few_enough"]) == (0.333, False)
    assert found["reasons"][COMMITS[0]] == ["another program ran"]


def test_only_what_was_told_without_a_cause_is_a_false_alert() -> None:
    false_alert = FOUND | {"first_bad": COMMITS[4]}
    found = [FOUND, false_alert, false_alert | {"first_bad": COMMITS[5], "state": "suspected"}]
    assert describe_disturbance({**RESULT, "regressions": found}, [], [])["false_alerts"] == [COMMITS[4]]


@pytest.mark.parametrize(("metric", "wanted"), [("memory_growth", True), ("step_time", False)])
def test_what_a_switch_back_costs_is_no_time(metric: str, wanted: bool) -> None:
    planted = {
        "commit": COMMITS[2],
        "kind": "toggle",
        "event": "cache off",
        "phase": "push",
        "claim": "Cached",
    }
    found = {**FOUND, "first_bad": COMMITS[4], "metric": metric}
    planted = [{**planted, "repaired_by": COMMITS[4]}]
    _, row = score_planted({**RESULT, "planted": planted, "regressions": [found]})
    assert (row["event"], row["right"]) == ("cache on again", wanted)


def test_the_command_scores_what_the_demonstration_printed() -> None:
    command = [sys.executable, "-m", "bench.demo"]
    ended = subprocess.run(command, cwd=ROOT, input=json.dumps(RESULT), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[1].endswith("right")
    assert lines[2] == "regressions per cause: 1.00; causes per regression: 1.00"


def test_what_was_judged_beside_a_burning_program_is_told_in_lines() -> None:
    runs = [{"id": 1, "commit": COMMITS[0], "tainted": True, "doubts": ["another program ran"]}]
    lines = format_disturbance(describe_disturbance({**RESULT, "runs": runs}, [1], {1}))
    assert lines[0] == "0 false alerts"
    assert lines[-1] == f"not judged: {COMMITS[0][:10]}, another program ran"
