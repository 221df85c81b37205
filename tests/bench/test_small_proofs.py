"""Real pairs are measured and weighed as a site's are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import small_proofs
from bench.small_proofs import MeasuredPair


def test_a_pair_is_measured_for_real(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(small_proofs.SCRIPT)
    (tmp_path / "paceline.toml").write_text(small_proofs.MANIFEST.replace("steps = 200", "steps = 40"))
    pair = small_proofs.measure_pair(tmp_path, 0, 1.0, in_rare_steps=False)
    assert 1.3 < pair.head / pair.base < 3
    assert len(pair.steps["base"]) == len(pair.steps["head"]) == 40
    assert pair.calibration
    assert min(pair.calibration) > 0


def make_pair(index: int, moved: float) -> MeasuredPair:
    """Undisturbed, but for a pair's own difference."""
    own = (0.0, 0.002, -0.002, 0.001, -0.001)[index % 5]
    steps = {"base": [1.0] * 40, "head": [1 + moved + own] * 40}
    return MeasuredPair(index % 2 == 0, 1.0, 1 + moved + own, False, steps, (0.0, 0.0), 3.0, 1.0)


@pytest.mark.parametrize(("moved", "verdict"), [(0.01, "confirmed"), (0.0, "refuted")])
def test_the_next_experiment_begins_where_one_ends(moved: float, verdict: str) -> None:
    measured = [make_pair(index, moved) for index in range(100)]
    found = list(small_proofs.judge_pairs(measured, small_proofs.suspected_step(0.01)))
    assert len(found) > 1
    assert {told for told, _, _ in found} == {verdict}
    assert all(seconds == 3.0 * count for _, count, seconds in found)


def test_a_file_is_told_with_its_noise(tmp_path: Path) -> None:
    small_proofs.keep_pairs(tmp_path / "0.jsonl", (make_pair(index, 0.0) for index in range(60)))
    text = small_proofs.describe_file(tmp_path / "0.jsonl")
    assert text.startswith("0: 60 pairs, 0 disturbed, 3.0 s each; load 1.0, 0% of the time")
    assert "by single steps" in text
    assert "refuted" in text
    assert "check of 3%, by single steps too, " in text
    assert " not worse " in text


@pytest.mark.parametrize(("of_the_loops", "left"), [(0.0, 1.0), (1.0, 0.02)], ids=["apart", "the same"])
def test_what_the_calibration_loops_tell_is_taken_off(of_the_loops: float, left: float) -> None:
    drawn = np.random.default_rng(1)
    loops, own = drawn.normal(0, 0.03, 400), drawn.normal(0, 0.01, 400)
    values = 0.01 + of_the_loops * loops + (1 - of_the_loops) * own
    assert small_proofs.less_calibration(values, loops).std() / values.std() == pytest.approx(left, abs=0.02)


def test_a_file_says_what_calibration_loops_would_take_off(tmp_path: Path) -> None:
    pairs = [replace(make_pair(index, 0.0), calibration=(1.0, 1 + index % 3 / 10)) for index in range(60)]
    small_proofs.keep_pairs(tmp_path / "0.jsonl", pairs)
    assert "by single steps, less calibration loops" in small_proofs.describe_file(tmp_path / "0.jsonl")


def test_experiments_are_drawn_with_steps_that_were_planted(tmp_path: Path) -> None:
    small_proofs.keep_pairs(tmp_path / "0.jsonl", (make_pair(index, 0.0) for index in range(60)))
    lines = small_proofs.describe_drawn(tmp_path / "0.jsonl", 3).splitlines()
    told = [line for line in lines if "3 experiments" in line]
    assert [line.split(",")[0] for line in told] == list(small_proofs.PLANTED)
    verdicts = ["refuted", "confirmed", "confirmed"]
    assert all(f"3 {verdict} " in line for verdict, line in zip(verdicts, told, strict=True))


def test_a_planted_step_lies_in_all_steps_or_in_the_longest_of_twenty() -> None:
    long_third = [1.0, 1.0, 3.0, *[1.0] * 17] * 4
    pair = replace(make_pair(0, 0.0), steps={"base": long_third, "head": long_third})
    everywhere = small_proofs.with_longer_head(pair, 0.01, in_rare_steps=False)
    assert np.allclose(np.divide(everywhere.steps["head"], long_third), 1.01)
    rare = small_proofs.with_longer_head(pair, 0.01, in_rare_steps=True)
    assert sum(rare.steps["head"]) == pytest.approx(1.01 * sum(long_third))
    assert np.flatnonzero(np.not_equal(rare.steps["head"], long_third)).tolist() == [2, 22, 42, 62]
