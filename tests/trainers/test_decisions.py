from __future__ import annotations

from typing import Any

import pytest

from dashboard.management import decisions, disturbance

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


def right(planted: dict[str, Any], *found: dict[str, Any], **more: Any) -> bool:
    (row, *_) = decisions.decided({**RESULT, "planted": [planted], "regressions": found, **more})
    return bool(row["right"])


def test_a_regression_that_says_all_that_was_planted_is_right() -> None:
    (row,) = decisions.decided(RESULT)
    assert (row["commit"], row["right"]) == (COMMITS[2], True)
    assert row["paceline"] == "step_time +31%, push, Replay.push (confirmed)"


@pytest.mark.parametrize(
    ("found", "is_right"),
    [
        ({}, True),
        ({"phase": "push/copy"}, True),
        ({"phase": "pushed"}, False),
        ({"phase": ""}, False),
        ({"state": "undecided"}, False),
        ({"first_bad": COMMITS[3]}, False),
    ],
)
def test_an_optimization_that_is_off_is_seen_in_its_phase(found: dict[str, Any], is_right: bool) -> None:
    switch = {**PLANTED, "kind": "toggle", "event": "push off", "claim": "Vectorized push"}
    assert right(switch, {**FOUND, **found}) is is_right


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
    assert not right(PLANTED, FOUND | wrong)


def test_one_cause_is_one_regression() -> None:
    assert not right(PLANTED, FOUND, FOUND | {"metric": "throughput"})
    assert not right(PLANTED)


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
    counted = decisions.grouping({**RESULT, "regressions": found})
    assert counted is not None
    assert tuple(counted.values()) == expected


def test_two_causes_in_one_regression_are_counted() -> None:
    planted = [PLANTED, PLANTED | {"commit": COMMITS[3]}]
    wide = FOUND | {"first_bad": COMMITS[4]}
    counted = decisions.grouping({**RESULT, "planted": planted, "regressions": [wide]})
    assert counted == {"regressions_per_cause": 1.0, "causes_per_regression": 2.0}
    assert decisions.grouping({**RESULT, "planted": []}) is None


def test_a_regression_where_nothing_changed_is_a_row_of_its_own() -> None:
    rows = decisions.decided({**RESULT, "regressions": [FOUND, FOUND | {"first_bad": COMMITS[4]}]})
    assert [row["right"] for row in rows] == [True, False]
    assert rows[1]["event"] == "nothing changed"


def test_the_commit_of_a_merged_branch_is_named_by_its_culprit() -> None:
    merged = FOUND | {"first_bad": COMMITS[3], "culprit": COMMITS[2]}
    assert right(PLANTED, merged)
    assert decisions.table(decisions.decided({**RESULT, "regressions": [merged]}))[1].endswith("right")


def test_who_repaired_it_and_which_cause_it_has_is_asked_where_it_was_planted() -> None:
    planted = PLANTED | {"repaired_by": COMMITS[4], "cause": "dependency"}
    assert right(planted, FOUND | {"recovered_by": COMMITS[4], "cause": "dependency"})
    assert not right(planted, FOUND | {"recovered_by": COMMITS[4]})
    assert not right(planted, FOUND | {"cause": "dependency"})


def test_an_improvement_is_found_and_told_to_nobody() -> None:
    planted = PLANTED | {"kind": "improvement", "percent": -40.0}
    better = {"commit": COMMITS[2], "metric": "step_time", "phase": "targets", "change_percent": -41.0}
    assert right(planted, improvements=[better])
    assert not right(planted, FOUND, improvements=[better])
    assert not right(planted)


def test_a_commit_that_does_not_run_is_left_out() -> None:
    broken = {"commit": COMMITS[2], "kind": "broken", "event": "doesn't run"}
    failed = {"commit": COMMITS[2], "state": "failed", "case": "snake"}
    assert right(broken, runs=[failed])
    assert not right(broken, runs=[failed | {"state": "done"}])
    assert not right(broken, FOUND)


def test_a_benchmark_defined_anew_is_a_new_series_and_no_regression() -> None:
    anew = {"commit": COMMITS[2], "kind": "definition", "event": "benchmark defined anew"}
    runs = [
        {"commit": commit, "state": "done", "case": case}
        for commit, case in zip(COMMITS, ["one", "one", "two", "two"], strict=False)
    ]
    assert right(anew, runs=runs)
    assert not right(anew, FOUND | {"first_bad": COMMITS[3]}, runs=runs)
    assert not right(anew, runs=[run | {"case": "one"} for run in runs])


def test_runs_beside_a_burning_program_are_told_from_the_others() -> None:
    runs = [
        {"id": number, "commit": commit, "tainted": number < 3, "doubts": ["another program ran"]}
        for number, commit in enumerate(COMMITS)
    ]
    found = disturbance.described({**RESULT, "runs": runs}, ids=range(6), burned={0, 1, 5})
    assert found["burned_but_judged"] == [COMMITS[5]]
    assert (found["undisturbed"], found["undisturbed_tainted"]) == (3, [COMMITS[2]])
    assert (found["tainted_share"], found["few_enough"]) == (0.333, False)
    assert found["reasons"][COMMITS[0]] == ["another program ran"]


def test_only_what_was_told_without_a_cause_is_a_false_alert() -> None:
    elsewhere = FOUND | {"first_bad": COMMITS[4]}
    found = [FOUND, elsewhere, elsewhere | {"first_bad": COMMITS[5], "state": "suspected"}]
    assert disturbance.described({**RESULT, "regressions": found}, [], [])["false_alerts"] == [COMMITS[4]]


@pytest.mark.parametrize(("metric", "is_right"), [("memory_growth", True), ("step_time", False)])
def test_what_a_switch_back_costs_is_no_time(metric: str, is_right: bool) -> None:
    planted = {
        "commit": COMMITS[2],
        "kind": "toggle",
        "event": "cache off",
        "phase": "push",
        "claim": "Cached",
    }
    found = {**FOUND, "first_bad": COMMITS[4], "metric": metric}
    planted = [{**planted, "repaired_by": COMMITS[4]}]
    _, row = decisions.decided({**RESULT, "planted": planted, "regressions": [found]})
    assert (row["event"], row["right"]) == ("cache on again", is_right)
