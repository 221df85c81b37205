"""How long measuring will take is said with what that rests on."""

from __future__ import annotations

import pytest

from dashboard.project_setup.duration_sentences import expected_sentence, expected_text, run_end_sentence
from dashboard.project_setup.expected_durations import (
    ExpectedDuration,
    expect_benchmarks,
    seconds_left_by_progress,
)
from dashboard.project_setup.manifests import PlannedBenchmark

BENCHMARKS = [
    PlannedBenchmark("train", "train.py", ("train[n=1]", "train[n=2]"), 5, 100, 600),
    PlannedBenchmark("load", "load.py", ("load",), 5, 100, 60),
]


@pytest.mark.parametrize(
    ("durations", "sentence", "of_five"),
    [
        (
            {},
            "How long a commit takes is unknown before the first full run: 21 min at most on one machine, by "
            "the time limits.",
            "1 h 45 min at most",
        ),
        (
            {"train[n=1]": 90.0, "other": 9.0},
            "On one machine the 1 case that ran before takes about 1 min 30 s a commit; how long the other 2 "
            "take is unknown before the first full run, 11 min at most by the time limits.",
            "1 h 2 min at most",
        ),
        (
            {"train[n=1]": 90.0, "train[n=2]": 30.0, "load": 12.0},
            "A commit with all these cases takes about 2 min 12 s on one machine, as their newest runs did.",
            "about 11 min",
        ),
    ],
)
def test_it_says_what_is_known(durations: dict[str, float], sentence: str, of_five: str) -> None:
    expected = expect_benchmarks(BENCHMARKS, durations)
    assert expected_sentence(expected) == sentence
    assert expected_text(expected, 5) == of_five


def test_nothing_is_said_of_nothing() -> None:
    assert expected_sentence(ExpectedDuration()) == ""
    assert expected_text(ExpectedDuration(unknown=1)) == ""
    assert expected_sentence(ExpectedDuration(unknown=1)) == (
        "How long a commit takes is unknown before the first full run."
    )


def test_what_no_time_limit_bounds_has_no_most() -> None:
    assert expected_text(ExpectedDuration(known=1, seconds=78.0, unknown=1)) == "more than 1 min 18 s"


@pytest.mark.parametrize(
    ("took", "elapsed", "progress", "sentence"),
    [
        (100, None, 0.0, "Once it has begun it will take about as long as before: its case's newest run"),
        (100, 40, 0.9, "About 1 min are left: its case's newest run took 1 min 40 s."),
        (100, 160, 0.8, "It takes long: its case's newest run took 1 min 40 s. About 40 s are left by its "),
        (None, 160, 0.8, "About 40 s are left by its progress."),
        (None, 160, 0.05, "No run of its case was measured yet: it is measured for 30 min at most, its "),
    ],
)
def test_a_run_always_says_when_it_will_have_ended(
    took: float | None, elapsed: float | None, progress: float, sentence: str
) -> None:
    left = seconds_left_by_progress(progress, elapsed or 0)
    assert run_end_sentence(took, elapsed, left, 1800).startswith(sentence)
