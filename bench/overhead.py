"""What a measurement adds to a whole run: snake_dqn, optimized, measured and bare, in alternating blocks.

Two trainings with the same seed take turns in one process, A B B A, each in a thread of its own of which one
waits always. One is the benchmark as it is, with the recorder of a timed repetition; of the other, all marks
were cut out of its source. So block k does the same work in both. The sampler reads this process from one of
its own, ten times in a second of measured time.
"""

from __future__ import annotations

import ast
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from mmap import mmap
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import torch
from paceline.measured.timing import TimingRecorder
from paceline.statistics import median, median_interval

from .lines import Line, format_part, is_below

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "trainers" / "snake_dqn"
BLOCK_SECONDS = 0.1
WARMUP_STEPS = 1500
STARTS = 12
PERCENT = 1.0
MICROSECONDS = 2.0


class _Cut(ast.NodeTransformer):
    """Takes all marks out of a program."""

    def visit_With(self, node: ast.With) -> Any:  # ast's name
        self.generic_visit(node)
        kept = [item for item in node.items if "paceline" not in ast.unparse(item)]
        if not kept:
            return node.body
        node.items = kept
        return node


def _load_trainer(name: str, *, bare: bool) -> ModuleType:
    """Import the trainer, with its marks or without them."""
    path = FOLDER / "train.py"
    tree = ast.parse(path.read_text())
    tree = ast.fix_missing_locations(_Cut().visit(tree)) if bare else tree
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(tree, str(path), "exec"), vars(module))  # noqa: S102  # the trainer itself
    return module


class Turns:
    """Lets one of two threads run at a time, a block of steps each, and keeps the blocks' times."""

    def __init__(self, flag: mmap) -> None:
        self._flag = flag
        self._go = {False: threading.Semaphore(0), True: threading.Semaphore(0)}
        self._back = threading.Semaphore(0)
        self._steps = 0
        self.last = False
        self.seconds = 0.0
        self.failure: BaseException | None = None

    def block(self, measured: bool, steps: int) -> float:
        """Let one of them take so many steps; return their seconds."""
        self._steps = steps
        self._flag[0] = measured
        self._go[measured].release()
        self._back.acquire()
        self._flag[0] = 0
        if self.failure:
            raise self.failure
        return self.seconds

    def fail(self, failure: BaseException) -> None:
        """Hand a thread's end to whoever waits for its block."""
        self.failure = failure
        self._back.release()

    def items(self, measured: bool) -> Iterator[int]:
        """Yield step numbers, and wait after each block until it is this thread's turn again."""
        number = 0
        self._go[measured].acquire()
        while not self.last:
            started = perf_counter()
            for number in range(number, number + self._steps):  # noqa: B020  # it goes on where it was
                yield number
            self.seconds = perf_counter() - started
            number += 1
            self._back.release()
            self._go[measured].acquire()


def _train_in_turns(module: ModuleType, steps: Any, turns: Turns) -> None:
    """Run the benchmark's loop over these steps; the same random numbers are drawn in both."""
    try:
        _run_trainer(module, steps)
    except Exception as error:  # noqa: BLE001  # a thread's border: the other one would wait for ever
        turns.fail(error)


def _run_trainer(module: ModuleType, steps: Any) -> None:
    module.paceline = steps  # type: ignore[attr-defined]
    args = module.read_arguments(["--variant", "optimized"]).args
    random.seed(0)
    torch.manual_seed(args.seed)
    module.train(args, torch.device("cpu"))


class _Bare:
    """Stands for the package in the program without marks; only its loop is left."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def steps(self, _: Iterable[int]) -> Iterable[int]:
        return self._turns.items(False)

    def count(self, _name: str, _n: float = 1) -> None:
        """A call that isn't a `with` stays in the program; here it does nothing."""

    gauge = quality = count

    def lap(self, _name: str) -> None:
        """As above."""


class _Marked:
    """Stands for the package in the program with marks, as it is once a recorder takes them."""

    def __init__(self, turns: Turns, pairs: int, progress: int) -> None:
        self._turns = turns
        recorder = TimingRecorder(WARMUP_STEPS, pairs, lambda done: _report_progress(progress, done))
        self.recorder = recorder
        self.phase = recorder.phase
        self.lap = recorder.lap
        self.gauge, self.quality = recorder.gauge, recorder.quality

    def count(self, name: str, n: float = 1) -> None:
        self.recorder.count(name, n)

    def steps(self, _: Iterable[int]) -> Iterable[int]:
        return self.recorder.steps(self._turns.items(True))


def _report_progress(file: int, done: int) -> None:
    os.pwrite(file, struct.pack("q", done), 0)


def measure_overhead(pairs: int) -> str:
    """Return the table of the whole run's overhead.

    Two copies of a program differ in speed by where their memory happens to lie, by more than what is
    measured here. So the pairs are spread over several processes, and the interval is that of their medians.
    """
    starts = min(STARTS, pairs)
    command = [sys.executable, "-m", "bench.overhead", str(math.ceil(pairs / starts))]
    found = []
    for _ in range(starts):
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"the training failed: {ended.stderr.strip().splitlines()[-1]}")
        found.append(json.loads(ended.stdout.splitlines()[-1]))
    lines = _overhead_lines(found)
    return format_part(
        "A whole run: snake_dqn, optimized, measured against bare", ["", "", "95 % interval"], lines
    )


def measure_blocks(pairs: int) -> dict[str, Any]:
    """Return microseconds per step, bare and measured, of the blocks of one process."""
    torch.set_num_threads(1)
    sys.path.insert(0, str(FOLDER))
    with tempfile.TemporaryDirectory() as folder:
        file = os.open(Path(folder, "flag"), os.O_RDWR | os.O_CREAT)
        os.ftruncate(file, 4096)
        flag = mmap(file, 4096)
        turns = Turns(flag)
        sampling = [sys.executable, "-m", "bench.sampling", str(os.getpid()), str(Path(folder, "flag"))]
        sampler = subprocess.Popen(sampling, stdin=subprocess.PIPE)
        try:
            return _alternate_blocks(turns, pairs, file)
        finally:
            sampler.terminate()
            sampler.wait()


def _alternate_blocks(turns: Turns, pairs: int, progress: int) -> dict[str, Any]:
    bare, marked = _load_trainer("bench_bare", bare=True), _load_trainer("bench_marked", bare=False)
    threads = [
        threading.Thread(target=lambda: _train_in_turns(bare, _Bare(turns), turns), daemon=True),
        # The recorder is made in the thread that takes the steps, as in a measured process.
        threading.Thread(
            target=lambda: _train_in_turns(marked, _Marked(turns, 10**6, progress), turns), daemon=True
        ),
    ]
    for thread in threads:
        thread.start()
    for measured in (False, True):
        warmup = turns.block(measured, WARMUP_STEPS)
    steps = max(20, round(BLOCK_SECONDS / (warmup / WARMUP_STEPS)))
    for measured in (True, False):
        turns.block(measured, steps)
    taken: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(pairs):
        for measured in (False, True) if pair % 2 == 0 else (True, False):
            taken[measured].append(turns.block(measured, steps) / steps * 1e6)
    return {"bare": taken[False], "measured": taken[True], "steps": steps}


def _overhead_lines(found: list[dict[str, Any]]) -> list[Line]:
    added = [
        median([after - before for before, after in zip(start["bare"], start["measured"], strict=True)])
        for start in found
    ]
    bare, more = median([value for start in found for value in start["bare"]]), median(added)
    interval = median_interval(added)
    pairs = sum(len(start["bare"]) for start in found)
    allowed = max(MICROSECONDS, bare * PERCENT / 100)
    target = f"under {PERCENT:g} % or {MICROSECONDS:g} us a step, whichever is more"
    return [
        Line(
            "a bare step",
            f"{bare:.1f} us",
            f"{pairs} pairs of {found[0]['steps']} steps in {len(found)} processes",
        ),
        Line(
            "added by measuring",
            f"{more:+.2f} us",
            _format_interval(interval),
            target,
            is_below(*interval, allowed) if interval else None,
        ),
        Line("", f"{100 * more / bare:+.2f} %", _format_interval(interval, 100 / bare)),
    ]


def _format_interval(interval: tuple[float, float] | None, factor: float = 1.0) -> str:
    if interval is None:
        return "none from so few pairs"
    low, high = interval
    return f"{factor * low:+.2f} .. {factor * high:+.2f}"


if __name__ == "__main__":
    print(json.dumps(measure_blocks(int(sys.argv[1]))))
