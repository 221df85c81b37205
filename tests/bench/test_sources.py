"""Histories by source: repositories are read, stretches are told from steps, and a choice is made unseen."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from bench.detection import first_points, leave_one_out, source_trials, sources
from bench.detection.leave_one_out import SourceScore, choose_variant
from bench.detection.scoring import Alarms
from bench.detection.source_trials import SourceTrials
from bench.detection.trials import Trial
from dashboard.detection.history_fit import find_starts, scale_history
from dashboard.detection.rules import Rule


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


def test_the_newest_version_that_a_clone_holds_is_read(tmp_path: Path) -> None:
    page = "dev/bench/data.js"
    repository = tmp_path / "clone"
    commit_file(repository, "gh-pages", page, "{}")
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (repository / page).write_text('{"newer": 1}')
    subprocess.run([*git, "commit", "-qam", "More results"], check=True)
    blob = subprocess.run([*git, "rev-parse", f"HEAD:{page}"], capture_output=True, check=True, text=True)
    name = blob.stdout.strip()
    source = next(source for source in sources.SOURCES if source.name == "hyper")
    assert list(sources.read_files(repository / ".git", source)) == [(page, b'{"newer": 1}')]
    every = replace(source, every_version=True)
    assert [content for _, content in sources.read_files(repository / ".git", every)] == [
        b'{"newer": 1}',
        b"{}",
    ]
    (repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    assert list(sources.read_files(repository / ".git", source)) == [(page, b"{}")]


PERFHERDER_ROW = {
    "date": "2026-01-02T00:00:00Z",
    "platform": "macosx",
    "application": "firefox",
    "suite": "jetstream3",
    "test": "score",
    "value": 259.5,
}
ENSO_RUN = {"bench_run": {"id": "12", "event": "schedule"}, "label_score_dict": {"a": 2.5}}
UNIFIED_RUN = {
    "name": "Baseline_PVC",
    "date": "2026-01-02T00:00:00+00:00",
    "results": [{"label": "a", "value": 11.5}],
}
LEGION_RUN = {
    "measurements": {"time_seconds": "2.5"},
    "metadata": {
        "benchmark": "circuit",
        "argv": ["-l", "10"],
        "host": "n0004.sapling",
        "branch": "master",
        "date": "2026-01-02T00:00:00+00:00",
    },
}
GOOGLE_RUN = {
    "context": {"date": "2026-01-02T00:00:00+00:00"},
    "benchmarks": [{"name": "a", "real_time": 7.5}],
}
PHP_NIGHT = "Test name\tPHP\tMedian\nbench.php\tmaster\t0.5\n"
RUSTC_RUN = {"times": [{"crate": "core", "total": 1.5}]}
SECOND_OF_JANUARY = datetime(2026, 1, 2, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("read", "path", "content", "expected"),
    [
        (
            sources.read_perfherder,
            "jetstream-data.json.gz",
            gzip.compress(json.dumps({"query_result": {"data": {"rows": [PERFHERDER_ROW]}}}).encode()),
            ("macosx/firefox/jetstream3/score", SECOND_OF_JANUARY, 259.5),
        ),
        (
            sources.read_rustc_timings,
            "processed/rustc--2026-01-02-03-04.json",
            json.dumps(RUSTC_RUN).encode(),
            ("processed/rustc/core", 20260102030400.0, 1.5),
        ),
        (
            sources.read_hana,
            "hana/0010__time__s.csv",
            b"index_1based,timestamp,sut_version,value\n3,2021-09-01 05:09:06,531193,1.9\n",
            ("hana/0010__time__s.csv", 3.0, 1.9),
        ),
        (
            sources.read_unified_runtime,
            "results/Baseline_PVC_20260102.json",
            json.dumps(json.dumps(UNIFIED_RUN)).encode(),
            ("Baseline_PVC/a", SECOND_OF_JANUARY, 11.5),
        ),
        (
            sources.read_php_nights,
            "2026/2026_01_02_03_04_05_1_aws_c6id.metal/result.tsv",
            PHP_NIGHT.encode(),
            ("aws_c6id.metal/bench.php/master", 20260102030405.0, 0.5),
        ),
        (sources.read_enso_runs, "cache/12.json", json.dumps(ENSO_RUN).encode(), ("a", 12.0, 2.5)),
        (
            sources.read_legion,
            "measurements/circuit/2026-01-02.json",
            json.dumps(LEGION_RUN).encode(),
            ("sapling/master/circuit/-l/10", SECOND_OF_JANUARY, 2.5),
        ),
        (
            sources.read_google_benchmark,
            "ubuntu/Kokkos_Atomic_2026-01-02_T00-00-00.json",
            json.dumps(GOOGLE_RUN).encode(),
            ("ubuntu/Kokkos_Atomic/a", SECOND_OF_JANUARY, 7.5),
        ),
    ],
)
def test_reads_each_form_of_results(
    read: sources.Reader, path: str, content: bytes, expected: sources.Reading
) -> None:
    assert list(read([(path, content)])) == [expected]


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


def test_rules_that_share_candidates_find_what_they_find_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    rows = [
        {"series": f"b{k}", "values": np.exp(rng.normal(0, 0.01, 110)).tolist()}
        for k in range(leave_one_out.FEWEST_STRETCHES)
    ]
    (tmp_path / "lab.json").write_text(json.dumps(rows))
    (trials,) = leave_one_out.load_sources(tmp_path)
    # A look at each point of a stretch and of a few steps takes both ways often enough.
    trials = SourceTrials("lab", trials.change_free[:1], steps=trials.steps[2:4])
    moved = leave_one_out.moved_constants("least_step")
    rules = {name: moved[name] for name in (leave_one_out.AS_IT_IS, "least_step 0.7")} | {
        "no autocorrelation": leave_one_out.MODELS["no autocorrelation"]
    }
    together = leave_one_out.score_rules(rules, trials)
    for name, rule in rules.items():
        alone = leave_one_out.score_source(lambda values, r=rule: by_rule(values, r), trials)
        assert repr(together[name]) == repr(alone)  # an unmeasured share is no number, and unequal to itself


def by_rule(values: Sequence[float], rule: Rule) -> list[int]:
    """What a rule finds, without a memory."""
    return find_starts(scale_history(values, rule.reach), rule)


def test_a_table_says_which_constants_are_chosen_unseen() -> None:
    def score(false: int, recall: float) -> SourceScore:
        return SourceScore(Alarms(false, 1000), Alarms(), Alarms(), (recall,) * 3, (1.0,) * 3, 1.0)

    rules = leave_one_out.moved_constants("least_step")
    scores = {name: {source: score(2, 0.5) for source in "abc"} for name in rules}
    scores["least_step 1.1"] = {source: score(1, 0.5) for source in "abc"}
    *_, row = leave_one_out.constant_rows(scores, ["least_step"])
    assert row == ("| least step | 0.9 | 1.1 (3) | 2.00, 1.00 | 0.500, 0.500 | 2.00 0.50, 1.00 0.50 |")


def test_first_points_are_scored_by_every_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    quiet, burst = (Trial(np.exp(0.01 * rng.normal(size=29)).tolist()) for _ in range(2))
    burst.values[12:18] = [2.0, 2.01, 2.02, 2.0, 2.01, 2.0]
    monkeypatch.setattr(first_points, "MOVED", {"after": (7,)})
    of_source = first_points.score_all(SourceTrials("a", [quiet], [burst]))
    as_it_is, longer = of_source["after"]["4"], of_source["after"]["7"]
    # A burst of six points is told where it begins and where it ends, unless seven are asked for.
    assert [score.alarms[1].count for score in (as_it_is, longer)] == [2, 0]
    assert as_it_is.recalls[1:] == (1.0, 1.0, 1.0)
    assert longer.recalls == (0.0,) * 4
    lines = list(first_points.table_rows([of_source, of_source]))
    assert len({line.count("|") for line in lines}) == 1
    assert sum(line.endswith("| 2 |") for line in lines) == 1
