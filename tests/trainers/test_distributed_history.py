"""The history of distributed trainings: what is planted changes what it should, and nothing else."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import prepared_python
from tests.harness.conftest import MEASURING_ONCE
from tests.harness.strangers import start_uncompiled
from trainers.planted.calibration import write_tree
from trainers.planted.changes.distributed_comments import REMARKS, remark_changes
from trainers.planted.changes.distributed_plants import (
    FRAGMENTED,
    GRADIENTS,
    GRAPH_BREAK,
    ITEM,
    MISTAKES,
    SLOW_RANK,
    SLOW_WORKER,
    UNRELATED,
    Mistake,
)
from trainers.planted.edits import Tree
from trainers.planted.histories import distributed

# Steps of the window; behind ten of warm-up the classifier is evaluated once in it.
SHORTER = {"classify": 35, "signals": 60, "images": 30, "sequences": 25}
WARMUP = 10


def plant_mistakes(*mistakes: Mistake, process: int = 1) -> Tree:
    tree = distributed.first_tree()
    for mistake in mistakes:
        tree = mistake.change(process).apply(tree)
    return tree


def measure_tree(tree: Tree, benchmark: str, folder: Path, *options: str) -> dict[str, Any]:
    """The document of one short repetition of a benchmark."""
    if benchmark != "classify":
        script = f"{benchmark}/train.py"
        tree = {**tree, script: start_uncompiled(tree[script])}
    write_tree(tree, folder)
    manifest = folder / "paceline.toml"
    before, _, after = manifest.read_text().partition(f"[benchmarks.{benchmark}]")
    shorter = {"steps": SHORTER[benchmark], "warmup_steps": WARMUP, "countings": 1}
    shorter |= {"counting_steps": 5, "counting_warmup_steps": 3}
    shortened = after
    for name, value in shorter.items():
        shortened = re.sub(rf"^{name} = \d+$", f"{name} = {value}", shortened, count=1, flags=re.MULTILINE)
    manifest.write_text(f"{before}[benchmarks.{benchmark}]{shortened}")
    command = [sys.executable, "-P", "-c", MEASURING_ONCE, "run", benchmark, "--repetitions", "1", *options]
    done = prepared_python.run_prepared([*command, "--document", "out.json"], cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return document


def metric_of(document: dict[str, Any], name: str, phase: str | None = None) -> float:
    """Of the whole step or a phase; where a phase has no row it counts nothing."""
    rows = [row for row in document["metrics"] if (row["name"], row["phase"]) == (name, phase)]
    assert rows or phase
    return float(rows[0]["value"]) if rows else 0.0


@pytest.fixture(scope="module")
def classified(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """The classifier as it was, and with all of its mistakes: each is seen in a metric of its own."""
    made = tmp_path_factory.mktemp("classify")
    spoilt = plant_mistakes(GRAPH_BREAK, ITEM, GRADIENTS, UNRELATED)
    trees = {"before": distributed.first_tree(), "after": spoilt}
    before, after = (
        measure_tree(tree, "classify", made / name, "--no-sweep") for name, tree in trees.items()
    )
    return before, after


def test_compiled_code_is_left_at_every_step(classified: tuple[dict[str, Any], dict[str, Any]]) -> None:
    before, after = classified
    assert metric_of(before, "graph_breaks") == 0
    assert metric_of(after, "graph_breaks") >= 1


def test_the_loss_is_read_at_every_step(classified: tuple[dict[str, Any], dict[str, Any]]) -> None:
    before, after = classified
    # Of itself, apart from what the branch that breaks the graph reads in `learn/forward`.
    grown = metric_of(after, "scalar_reads", "learn") - metric_of(before, "scalar_reads", "learn")
    assert grown == pytest.approx(1)


def test_the_evaluation_holds_what_a_backward_pass_would_need(
    classified: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    before, after = (metric_of(document, "peak_memory") for document in classified)
    assert after > 1.1 * before


def test_nothing_is_learned_any_more(classified: tuple[dict[str, Any], dict[str, Any]]) -> None:
    before, after = (metric_of(document, "quality.accuracy") for document in classified)
    assert before > 0.7
    assert after < 0.5


def test_free_buffers_fit_no_later_record(tmp_path: Path) -> None:
    before, after = (
        metric_of(measure_tree(tree, "signals", tmp_path / name, "--no-counting"), "peak_memory")
        for name, tree in (("before", distributed.first_tree()), ("after", plant_mistakes(FRAGMENTED)))
    )
    shortest = 4 * 60_000
    assert after - before > shortest * (SHORTER["signals"] + WARMUP)


def test_the_rank_that_reports_takes_longer_than_the_other(tmp_path: Path) -> None:
    def report_ratio(folder: Path) -> float:
        document = measure_tree(plant_mistakes(SLOW_RANK), "sequences", folder, "--no-counting")
        other, reporting = (row["phases"]["report"] for row in document["ranks"]["rows"])
        return float(reporting / other)

    assert largest_ratio(report_ratio, tmp_path, 10) > 10


def test_the_worker_that_checks_takes_longer_than_the_other(tmp_path: Path) -> None:
    """With twice as many checks as the demo has: each fetch also waits for a processor, as the other's do."""
    slower = replace(SLOW_WORKER, size=2 * SLOW_WORKER.size)

    def fetch_ratio(folder: Path) -> float:
        document = measure_tree(plant_mistakes(slower), "images", folder, "--no-counting")
        (loader,) = document["loaders"]
        # However busy the machine is, nobody else is named.
        assert loader["slowest"] in (1, None)
        named = (loader["slowest"], loader["starved"]) == (1, "loop")
        fetch = {worker["worker"]: worker["fetch_time"] for worker in loader["workers"]}
        return float(fetch[1] / fetch[0]) if named else 0.0

    assert largest_ratio(fetch_ratio, tmp_path, 2) > 2


def largest_ratio(measure_ratio: Callable[[Path], float], folder: Path, wanted: float) -> float:
    """Of six measurements at most: other work lengthens both sides, which brings them closer together."""
    largest = 0.0
    for attempt in range(6):
        largest = max(largest, measure_ratio(folder / str(attempt)))
        if largest > wanted:
            break
    return largest


@pytest.mark.parametrize("seed", range(20))
def test_every_order_of_commits_can_be_made(seed: int) -> None:
    steps = distributed.draw_steps(random.Random(seed))  # noqa: S311
    tree: Tree = distributed.first_tree()
    for step in steps:
        tree = step.change.apply(tree)
    planted = [step.mistake for step in steps if step.mistake]
    assert sorted(mistake.name for mistake in planted) == sorted(mistake.name for mistake in MISTAKES)
    for path, text in tree.items():
        if path.endswith(".py"):
            compile(text, path, "exec")


@pytest.mark.parametrize("seed", range(20))
def test_there_are_levels_before_and_behind_each_mistake(seed: int) -> None:
    steps = distributed.draw_steps(random.Random(seed))  # noqa: S311
    places = [place for place, step in enumerate(steps) if step.mistake]
    assert min(later - place for place, later in pairwise([*places, len(steps)])) >= distributed.LEVEL
    first = {step.benchmark: place for place, step in reversed(list(enumerate(steps)))}
    for place in places:
        assert place - first[steps[place].benchmark] >= distributed.FIRST_LEVEL
    # One benchmark's commits lie together.
    assert len(Counter(step.benchmark for step in steps)) == 1 + sum(
        old.benchmark != new.benchmark for old, new in pairwise(steps)
    )


@pytest.mark.parametrize("benchmark", sorted(REMARKS))
def test_a_remark_touches_its_own_benchmark_alone(benchmark: str) -> None:
    tree = distributed.first_tree()
    for _, change in zip(REMARKS[benchmark], remark_changes(benchmark), strict=False):
        assert {edit.path.split("/")[0] for edit in change.edits} == {benchmark}
        tree = change.apply(tree)


def test_each_commit_is_measured_by_the_benchmark_that_it_touches(tmp_path: Path) -> None:
    made = distributed.create_history(tmp_path / "history", 3)
    assert made["measured"] == made["commits"][1:]
    for commit in made["measured"]:
        git = ["git", "-C", str(tmp_path / "history"), "show", "--format=", "--name-only", commit]
        touched = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split()
        assert {path.split("/")[0] for path in touched} == set(made["benchmarks"][commit])
    by_name = {entry["event"]: entry for entry in made["planted"]}
    assert by_name["slow rank"]["rank"] in (0, 1)
    assert by_name["slow DataLoader worker"]["worker"] in (0, 1)
