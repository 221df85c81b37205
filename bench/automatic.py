"""What automatic phases add to a script without marks, on steps of 1.4 milliseconds.

The script runs by itself, as `paceline script` runs it, with the sampler, and, where `TRACEML` names the
Python of an environment that has it, as `traceml run` runs it. They are processes that take turns, in all
orders. What they differ by depends a little on where their memory happens to lie, so that all are started
afresh several times: the figure is the median of the starts' median ratios, with its interval.
"""

from __future__ import annotations

import itertools
import math
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from time import sleep
from typing import TextIO

from paceline.measured.plan import ProcessPlan
from paceline.statistics import median, median_interval
from paceline.watching.process import MeasuredProcess

from .lines import Line, format_part, is_below
from .sampled_process import sample_alongside

FOLDER = Path(__file__).resolve().parent
SCRIPT = FOLDER / "small_steps.py"
TRACEML_SCRIPT = FOLDER / "small_steps_traceml.py"
STEP_SECONDS = 0.0014
STARTS = 8
BLOCK = 25
PERCENT = 5.0
ENDING_SECONDS = 60


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

    def close(self) -> None:
        """Let it end by itself."""
        self._turns.close()


def make_pipes(folder: Path) -> list[str]:
    """Two pipes by name: the turns that a training is given, and what it answers."""
    names = [str(folder / name) for name in ("turns", "done")]
    for name in names:
        os.mkfifo(name)
    return names


def _open_training(pipes: list[str], has_ended: Callable[[], bool]) -> Training:
    """Wait until the script has opened its pipes."""
    while True:
        try:
            turns = os.open(pipes[0], os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            if has_ended():
                raise SystemExit("the training ended before its first step") from None
            sleep(0.05)
        else:
            os.set_blocking(turns, True)
            return Training(os.fdopen(turns, "w"), open(pipes[1]))  # noqa: PTH123  # ended with the process


@contextmanager
def _bare_training(batch: int) -> Iterator[Training]:
    with _started_training([sys.executable, str(SCRIPT), str(batch)]) as training:
        yield training


@contextmanager
def _traceml_training(batch: int) -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as logs, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
        probe.close()
        options = ["--mode", "summary", "--logs-dir", logs, "--aggregator-port", port]
        command = [str(Path(os.environ["TRACEML"]).parent / "traceml"), "run", *options, str(TRACEML_SCRIPT)]
        with _started_training([*command, "--args", str(batch)]) as training:
            yield training


@contextmanager
def _started_training(command: Sequence[str]) -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as name:
        pipes = make_pipes(Path(name))
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        quiet = subprocess.DEVNULL
        process = subprocess.Popen([*command, *pipes], env=environment, stdout=quiet, stderr=quiet)
        try:
            training = _open_training(pipes, lambda: process.poll() is not None)
            yield training
            training.close()
            # What it started itself is ended by it.
            process.wait(ENDING_SECONDS)
        finally:
            process.kill()
            process.wait()


@contextmanager
def _measured_training(batch: int) -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as name:
        pipes = make_pipes(Path(name))
        with (
            MeasuredProcess(_timing_plan([str(batch), *pipes]), Path(name), dict(os.environ)) as process,
            sample_alongside(process),
        ):
            yield _open_training(pipes, lambda: process.wait(0))


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
    starters: dict[str, Callable[[int], AbstractContextManager[Training]]] = {
        "bare": _bare_training,
        "paceline": _measured_training,
    }
    if "TRACEML" in os.environ:
        starters["traceml"] = _traceml_training
    starts = min(STARTS, pairs)
    taken = [_measure_in_turns(starters, batch, math.ceil(pairs / starts)) for _ in range(starts)]
    lines = [
        Line(
            "a bare step",
            f"{median([milliseconds['bare'][0] for milliseconds in taken]):.3f} ms",
            f"{starts} starts of {math.ceil(pairs / starts)} blocks of {BLOCK} steps",
        )
    ]
    for name in starters:
        if name != "bare":
            percents = [100 * (found[name][1] - 1) for found in taken]
            lines.append(_overhead_line(f"added by {name}", percents, name == "paceline"))
    title = "Automatic phases: a script without marks, measured against by itself"
    return format_part(title, ["", "", "95 % interval"], lines)


def _measure_in_turns(
    starters: dict[str, Callable[[int], AbstractContextManager[Training]]], batch: int, rounds: int
) -> dict[str, tuple[float, float]]:
    """Return of each its milliseconds per step, and the median of its ratios to the bare one."""
    orders = itertools.cycle(itertools.permutations(starters))
    blocks: dict[str, list[float]] = {name: [] for name in starters}
    with ExitStack() as running:
        trainings = {name: running.enter_context(start(batch)) for name, start in starters.items()}
        for training in trainings.values():
            training.block(4 * BLOCK)
        for order in itertools.islice(orders, rounds):
            for name in order:
                blocks[name].append(trainings[name].block(BLOCK))
    return {
        name: (median(took), median([own / bare for own, bare in zip(took, blocks["bare"], strict=True)]))
        for name, took in blocks.items()
    }


def _overhead_line(name: str, percents: list[float], has_target: bool) -> Line:
    low, high = median_interval(percents) or (math.nan, math.nan)
    target = f"under {PERCENT:g} % of steps of 1.4 ms" if has_target else ""
    reached = is_below(low, high, PERCENT) if has_target else None
    return Line(name, f"{median(percents):+.2f} %", f"{low:+.2f} .. {high:+.2f}", target, reached)
