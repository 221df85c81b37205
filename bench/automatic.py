"""What automatic phases add to a script without marks, on steps of about two milliseconds.

The script runs twice, in two processes that take turns: once by itself, once as `paceline script` runs it,
with the sampler. Processes differ a little in speed by where their memory happens to lie, so both are started
afresh a few times, and the median is taken over all the pairs.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import sleep
from typing import TextIO

from paceline.measured.plan import ProcessPlan
from paceline.statistics import median, median_interval
from paceline.watching import nvml
from paceline.watching.process import MeasuredProcess
from paceline.watching.process_tree import ProcessTree
from paceline.watching.sampler import Sampler

from .lines import Line, format_part, is_below

SCRIPT = Path(__file__).resolve().parent / "two_milliseconds.py"
STEP_SECONDS = 0.002
STARTS = 3
BLOCK = 25
PERCENT = 5.0


class Training:
    """One running script, over its two pipes."""

    def __init__(self, turns: TextIO, done: TextIO) -> None:
        self._turns = turns
        self._done = done

    def block(self, steps: int) -> float:
        """Let it take so many steps; return milliseconds per step."""
        self._turns.write(f"{steps}\n")
        self._turns.flush()
        return float(self._done.readline()) / steps * 1000


def _make_pipes(folder: Path) -> list[str]:
    names = [str(folder / name) for name in ("turns", "done")]
    for name in names:
        os.mkfifo(name)
    return names


def _open_training(pipes: list[str]) -> Training:
    return Training(open(pipes[0], "w"), open(pipes[1]))  # noqa: PTH123  # ended with the processes


@contextmanager
def _bare_training(batch: int) -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as name:
        pipes = _make_pipes(Path(name))
        process = subprocess.Popen([sys.executable, str(SCRIPT), str(batch), *pipes])
        try:
            yield _open_training(pipes)
        finally:
            process.kill()
            process.wait()


@contextmanager
def _measured_training(batch: int) -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as name:
        pipes = _make_pipes(Path(name))
        with MeasuredProcess(_timing_plan([str(batch), *pipes]), Path(name), dict(os.environ)) as process:
            ended = threading.Event()
            sampling = threading.Thread(target=_sample_process, args=(process, ended))
            sampling.start()
            try:
                yield _open_training(pipes)
            finally:
                ended.set()
                sampling.join()


def _sample_process(process: MeasuredProcess, ended: threading.Event) -> None:
    sampler = Sampler(ProcessTree(process.pid), nvml.probe_devices(os.environ), process.started)
    while not ended.wait(sampler.until_next()):
        sampler.sample()


def _timing_plan(arguments: list[str]) -> ProcessPlan:
    return ProcessPlan(
        kind="timing",
        script=str(SCRIPT),
        arguments=arguments,
        folder=str(SCRIPT.parent),
        warmup_steps=20,
        steps=100_000,
        seed=0,
        result="",
        progress="",
        package="",
        parent=0,
        auto=True,
    )


def _choose_batch_size() -> int:
    """Return the batch size whose step takes about two milliseconds here."""
    sizes = (64, 512)
    took = []
    for size in sizes:
        with _bare_training(size) as training:
            training.block(BLOCK)
            took.append(median([training.block(BLOCK) for _ in range(5)]) / 1000)
    each = (took[1] - took[0]) / (sizes[1] - sizes[0])
    return max(8, round(sizes[0] + (STEP_SECONDS - took[0]) / each))


def measure_automatic_phases(pairs: int) -> str:
    """Return the table of the automatic phases' overhead."""
    batch = _choose_batch_size()
    before: list[float] = []
    after: list[float] = []
    for _ in range(STARTS):
        with ExitStack() as running:
            bare, measured = (
                running.enter_context(_bare_training(batch)),
                running.enter_context(_measured_training(batch)),
            )
            for training in (bare, measured):
                training.block(2 * BLOCK)
            for pair in range(math.ceil(pairs / STARTS)):
                first, second = (bare, measured) if pair % 2 == 0 else (measured, bare)
                taken = {training: training.block(BLOCK) for training in (first, second)}
                before.append(taken[bare])
                after.append(taken[measured])
            sleep(0)
    ratios = [100 * (b / a - 1) for a, b in zip(before, after, strict=True)]
    return format_part(
        "Automatic phases: a script without marks, measured against by itself",
        ["", "", "95 % interval"],
        _overhead_lines(median(before), ratios),
    )


def _overhead_lines(bare: float, ratios: list[float]) -> list[Line]:
    more = median(ratios)
    low, high = median_interval(ratios) or (math.nan, math.nan)
    target = f"under {PERCENT:g} % of steps of 2 ms"
    return [
        Line("a bare step", f"{bare:.3f} ms", f"{len(ratios)} pairs of {BLOCK} steps"),
        Line(
            "added by measuring",
            f"{more:+.2f} %",
            f"{low:+.2f} .. {high:+.2f}",
            target,
            is_below(low, high, PERCENT),
        ),
    ]
