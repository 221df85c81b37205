"""A history of trainings with several ranks, DataLoader workers and a compiler.

One benchmark is worked on after the other, and its commits are measured by it alone. Which comes first, in
which order its mistakes are made, which rank or worker makes them and how many commits lie between is drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..changes.distributed_comments import remark_changes
from ..changes.distributed_plants import MISTAKES, Mistake
from ..edits import HERE, Change, Tree
from ..repository import Repository

FOLDER = HERE / "distributed"
FIRST = "Train taggers, classifiers and filters"
# Measured commits before a benchmark's first mistake and of each one's level, at least; how many more come.
# Of a time some may be disturbed, and one alone is no level.
FIRST_LEVEL, LEVEL, LEVEL_OF_TIME, MORE = 3, 2, 4, 1
# Ranks and workers of the benchmarks.
PROCESSES = 2


@dataclass(frozen=True)
class Step:
    """One commit of a benchmark; `mistake` is planted in it by a rank or worker."""

    benchmark: str
    change: Change
    mistake: Mistake | None = None
    process: int = 0


def first_tree() -> dict[str, str]:
    """The first commit's files."""
    files = sorted(path for path in FOLDER.rglob("*") if path.suffix in (".py", ".toml"))
    return {path.relative_to(FOLDER).as_posix(): path.read_text() for path in files}


def draw_steps(chance: random.Random) -> list[Step]:
    """All commits behind the first one, in their order."""
    benchmarks = sorted({mistake.benchmark for mistake in MISTAKES})
    chance.shuffle(benchmarks)
    return [step for benchmark in benchmarks for step in _draw_block(benchmark, chance)]


def _draw_block(benchmark: str, chance: random.Random) -> list[Step]:
    """The commits of one benchmark: a level without a mistake, then each mistake with its level."""
    mistakes = [mistake for mistake in MISTAKES if mistake.benchmark == benchmark]
    chance.shuffle(mistakes)
    remarks = remark_changes(benchmark)
    steps = [Step(benchmark, next(remarks)) for _ in range(FIRST_LEVEL + chance.randint(0, MORE))]
    for mistake in mistakes:
        process = chance.randrange(PROCESSES)
        steps.append(Step(benchmark, mistake.change(process), mistake, process))
        level = LEVEL_OF_TIME if mistake.metric == "step_time" else LEVEL
        steps += [Step(benchmark, next(remarks)) for _ in range(level - 1 + chance.randint(0, MORE))]
    return steps


def create_history(folder: Path, seed: int) -> dict[str, Any]:
    """Make the repository; every commit but the first is measured by the benchmark that it belongs to."""
    steps = draw_steps(random.Random(seed))
    tree: Tree = first_tree()
    repository = Repository(folder)
    first, made = repository.commit(FIRST, tree), []
    for step in steps:
        tree = step.change.apply(tree)
        made.append(repository.commit(step.change.subject, tree))
    return {
        "commits": [first, *made],
        "measured": made,
        "benchmarks": {commit: [step.benchmark] for commit, step in zip(made, steps, strict=True)},
        "planted": describe_mistakes(made, steps),
    }


def describe_mistakes(commits: Sequence[str], steps: Sequence[Step]) -> list[dict[str, Any]]:
    """What was planted, as the JSON tells it; how large its effect is only measuring says."""
    return [
        {
            "commit": commit,
            "kind": "regression",
            "event": step.mistake.name,
            "benchmark": step.benchmark,
            "metric": step.mistake.metric,
            "phase": step.mistake.phase,
            "function": step.mistake.function,
            **({step.mistake.process: step.process} if step.mistake.process else {}),
        }
        for commit, step in zip(commits, steps, strict=True)
        if step.mistake
    ]
