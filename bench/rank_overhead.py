"""What measuring adds to four ranks on gloo: their steps, and the processor time of all of them.

Two groups of four ranks train the same, one bare and one as `paceline script --nproc 4` runs it, with the
sampler. They take turns, a block of steps each, A B B A. On fewer than five processors the ranks wait for a
processor as much as for each other, so that steps vary by more than the target: processor time tells then.
"""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from paceline.measured.plan import ProcessPlan
from paceline.statistics import median, median_interval
from paceline.watching.process import MeasuredProcess

from .automatic import make_pipes
from .lines import Line, format_part, is_below
from .sampled_process import sample_alongside

SCRIPT = Path(__file__).resolve().parent / "four_ranks.py"
RANKS = 4
BATCH = 64
STARTS = 4
BLOCK = 20
PERCENT = 2.0
ENDING_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Training:
    """One running group, over its two pipes."""

    turns: TextIO
    done: TextIO

    def take_block(self, steps: int) -> tuple[float, float]:
        """Let it take so many steps; return milliseconds per step, of the clock and of the processors."""
        print(steps, file=self.turns, flush=True)
        seconds, processor = map(float, self.done.readline().split())
        return 1000 * seconds / steps, 1000 * processor / steps


@contextmanager
def _open_training(pipes: list[str]) -> Iterator[Training]:
    """Give it turns; it ends where they do."""
    with Path(pipes[0]).open("w") as turns, Path(pipes[1]).open() as done:
        yield Training(turns, done)


@contextmanager
def _bare_training() -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        pipes = make_pipes(Path(name))
        group = {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        command = [sys.executable, str(SCRIPT), str(BATCH), *pipes]
        ranks = [
            subprocess.Popen(command, env={**os.environ, **group, "RANK": str(rank)}) for rank in range(RANKS)
        ]
        try:
            with _open_training(pipes) as training:
                yield training
            # By itself: one that is killed has the others complain of their lost connection.
            for rank in ranks:
                rank.wait(ENDING_SECONDS)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()


@contextmanager
def _measured_training() -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as name:
        pipes = make_pipes(Path(name))
        plan = _timing_plan([str(BATCH), *pipes])
        with (
            MeasuredProcess(plan, Path(name), dict(os.environ)) as process,
            sample_alongside(process),
            _open_training(pipes) as training,
        ):
            yield training


def _timing_plan(arguments: list[str]) -> ProcessPlan:
    return ProcessPlan(
        kind="timing",
        script=str(SCRIPT),
        arguments=arguments,
        folder=str(SCRIPT.parent),
        warmup_steps=20,
        steps=20_000,
        seed=0,
        result="",
        progress="",
        package="",
        parent=0,
        auto=True,
        processes=RANKS,
    )


def measure_rank_overhead(pairs: int) -> str:
    """Return the table of what measuring adds to four ranks."""
    before: list[tuple[float, float]] = []
    after: list[tuple[float, float]] = []
    for _ in range(STARTS):
        with ExitStack() as running:
            bare, measured = (
                running.enter_context(_bare_training()),
                running.enter_context(_measured_training()),
            )
            for training in (bare, measured):
                training.take_block(2 * BLOCK)
            for pair in range(math.ceil(pairs / STARTS)):
                order = (bare, measured) if pair % 2 == 0 else (measured, bare)
                taken = {training: training.take_block(BLOCK) for training in order}
                before.append(taken[bare])
                after.append(taken[measured])
    lines = [
        Line(
            "a bare step of four ranks",
            f"{median([row[0] for row in before]):.3f} ms",
            f"{len(before)} pairs",
        )
    ]
    for index, what in ((0, "added to a step"), (1, "added to the processor time of all ranks")):
        ratios = [100 * (b[index] / a[index] - 1) for a, b in zip(before, after, strict=True)]
        low, high = median_interval(ratios) or (math.nan, math.nan)
        target = f"under {PERCENT:g} %"
        lines.append(
            Line(
                what,
                f"{median(ratios):+.2f} %",
                f"{low:+.2f} .. {high:+.2f}",
                target,
                is_below(low, high, PERCENT),
            )
        )
    heads = ["", "", "95 % interval"]
    return format_part(f"Four ranks on gloo, {os.cpu_count()} processors", heads, lines)
