"""What a step of one program costs beside another's, and how much memory a run needs, measured here."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import paceline
import torch

from .changes.plants import Plant
from .edits import Tree

BATCH_SIZE = 32
BLOCK = 10
"""Steps of one program before the other takes its turn."""

SETTLED = 400
"""The number of a step at which exploration has ended."""

FILLED = 800
"""Transitions in the memory before a race, about as many as in the middle of a measured window."""

WARMUP = 60

SECONDS = 1.6
"""How long two programs race each other."""

SMALL_GROWTH = 0.2

LEAST_ROUNDS = 10

MEASURE_PEAK = """
import re, runpy, sys
sys.argv = ["train.py", "--steps", sys.argv[1]]
sys.path.insert(0, ".")
runpy.run_path("train.py", run_name="__main__")
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1))
"""


def write_tree(tree: Tree, folder: Path) -> None:
    """Write every file of a tree below a folder."""
    for path, text in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def load_trainer(tree: Tree) -> Any:
    """Import a tree's train.py beside whatever else is imported under the same names; return the module."""
    names = module_names(tree)
    path = list(sys.path)
    with tempfile.TemporaryDirectory() as folder:
        write_tree(tree, Path(folder))
        for name in names:
            sys.modules.pop(name, None)
        sys.path.insert(0, folder)
        try:
            return import_module("train")
        finally:
            sys.path[:] = path
            for name in names:
                sys.modules.pop(name, None)


def module_names(tree: Tree) -> set[str]:
    """The names under which a tree's files and the packages that it carries along are imported."""
    paths = [Path(path) for path in tree if path.endswith(".py")]
    packages = {path.parent.name for path in paths if path.name == "__init__.py"}
    return packages | {path.stem for path in paths if len(path.parts) == 1}


class Racer:
    """A trainer of one tree, stepped in blocks."""

    def __init__(self, tree: Tree) -> None:
        # While a batch is larger than the memory nothing is learned.
        self.trainer = load_trainer(tree).Trainer(FILLED + 1, 0)
        self.number = 0
        self.run(FILLED)
        self.trainer.batch_size = BATCH_SIZE
        self.number = SETTLED
        self.run(WARMUP)

    def run(self, steps: int) -> float:
        """Take some steps; return seconds per step."""
        # Time on the processor: what other programs on this machine take from it isn't counted.
        start = thread_time()
        for number in range(self.number, self.number + steps):
            self.trainer.step(number)
        self.number += steps
        return (thread_time() - start) / steps


def race_programs(first: Tree, second: Tree, seconds: float) -> tuple[float, float]:
    """Step two programs in turn, A B B A, for some seconds.

    Returns seconds per step of the first, and the second's growth over the first's as a share.
    """
    torch.set_num_threads(1)
    racers = Racer(first), Racer(second)
    times: list[tuple[float, float]] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < LEAST_ROUNDS:
        before = racers[0].run(BLOCK)
        other = racers[1].run(BLOCK) + racers[1].run(BLOCK)
        times.append(((before + racers[0].run(BLOCK)) / 2, other / 2))
    ratio = statistics.median(other / base for base, other in times)
    return statistics.median(base for base, _ in times), ratio - 1


def choose_knob(plant: Plant, tree: Tree, growth: float, say: Callable[[str], None]) -> tuple[int, float]:
    """Find the knob with which a plant makes this tree's step longer by about `growth`, a share.

    Returns the knob and the growth that was measured with it.
    """
    knob, allowed = plant.trial, 0.003 + 0.06 * growth
    # How exactly a race tells is a share of the step: for a small growth it lasts longer.
    seconds = SECONDS if growth > SMALL_GROWTH else 2 * SECONDS
    best = (knob, float("inf"))
    for _ in range(5):
        measured = race_programs(tree, plant.apply(tree, knob), seconds)[1]
        say(f"{plant.phase}: {knob} makes a step {100 * measured:+.0f} %, {100 * growth:+.0f} % are wanted")
        if abs(measured - growth) < abs(best[1] - growth):
            best = (knob, measured)
        following = round(knob * (growth / max(measured, 0.01)) ** (1 / plant.power))
        following = min(max(following, knob // 8, 1), knob * 8, plant.most)
        if abs(best[1] - growth) <= allowed or following == knob:
            break
        knob = following
    return best


def peak_memory(tree: Tree, steps: int) -> int:
    """Run a tree's training for some steps in a process of its own; return its peak resident bytes."""
    with tempfile.TemporaryDirectory() as folder:
        write_tree(tree, Path(folder))
        harness = str(Path(paceline.__file__).parent.parent)
        ran = subprocess.run(
            [sys.executable, "-c", MEASURE_PEAK, str(steps)],
            cwd=folder,
            env={"PYTHONPATH": harness, "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
    found = re.search(r"(\d+)\s*$", ran.stdout)
    if found is None:
        raise RuntimeError("this system doesn't say how much memory a process needed")
    return int(found.group(1)) * 1024
