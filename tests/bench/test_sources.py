"""Histories by source: repositories are read, stretches are told from steps, and a choice is made unseen."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np

from bench.detection import leave_one_out, source_trials, sources
from bench.detection.leave_one_out import SourceScore, choose_variant
from bench.detection.scoring import Alarms


def commit_file(repository: Path, branch: str, path: str, content: str) -> None:
    """A bare-like clone with one file on a branch."""
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    repository.mkdir(parents=True)
    subprocess.run([*git, "init", "-q", "-b", branch], check=True)
    file = repository / path
    file.parent.mkdir(parents=True)
    file.write_text(content)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "Results"], check=True)


def test_reads_an_action_page(tmp_path: Path) -> None:
    entries = [{"date": n, "benches": [{"name": "b", "value": 5 + n}]} for n in reversed(range(120))]
    text = f"window.BENCHMARK_DATA = {json.dumps({'entries': {'suite': entries}})};"
    commit_file(tmp_path / "hyperium+hyper", "gh-pages", "dev/bench/data.js", text)
    clone = tmp_path / "hyperium+hyper"
    source = next(source for source in sources.SOURCES if source.name == "hyper")
    readings = source.read(sources.read_files(clone / ".git", source))
    assert sources.collect_series(readings) == [
        {"series": "suite/b", "values": [5.0 + n for n in range(120)]},
    ]


def test_asv_reads_both_forms_of_results() -> None:
    old = {"date": 1, "results": {"a": 2.0, "b": {"result": [3.0, None]}}}
    new = {"date": 2, "result_columns": ["result", "params"], "results": {"a": [[4.0], []]}}
    files = [
        (f"results/host/0000000{k}-py3.json", json.dumps(document).encode())
        for k, document in enumerate((old, new))
    ]
    readings = {(name, at): value for name, at, value in sources.read_asv_results(files)}
    assert readings["host/py3.json/a#0", 1.0] == 2.0
    assert readings["host/py3.json/a#0", 2.0] == 4.0
    assert np.isnan(readings["host/py3.json/b#1", 1.0])


def test_a_step_is_no_quiet_stretch_and_is_found_where_it_is() -> None:
    values = np.random.default_rng(3).normal(0, 0.01, 120)
    assert source_trials.is_change_free(values)
    values[60:] += 0.06
    assert not source_trials.is_change_free(values)
    assert not source_trials.is_wandering(values)
    assert source_trials.clearest_step(values) == 60


def test_a_source_gives_every_kind_of_trial(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = [
        {"series": f"b{k}", "values": np.exp(rng.normal(0, 0.01, 110)).tolist()}
        for k in range(leave_one_out.FEWEST_STRETCHES + 3)
    ]
    (tmp_path / "lab.json").write_text(json.dumps(rows))
    (trials,) = leave_one_out.load_sources(tmp_path)
    score = leave_one_out.score_source(lambda _: [], trials)
    assert score.quiet.points > 0
    assert score.quiet.count == score.disturbed.count == 0
    assert score.recalls == (0.0, 0.0, 0.0)


def test_what_is_chosen_never_saw_the_source_left_out() -> None:
    def score(false: int, recall: float) -> SourceScore:
        quiet = Alarms(false, 1000)
        return SourceScore(quiet, Alarms(), Alarms(), (recall,) * 3, (1.0,) * 3, 1.0)

    scores = {
        "careful": {"a": score(0, 0.5), "b": score(0, 0.5)},
        "bold": {"a": score(0, 0.9), "b": score(9, 0.9)},
    }
    assert choose_variant(scores, left_out="a") == "careful"
    assert choose_variant(scores, left_out="b") == "bold"
