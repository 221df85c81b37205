"""Runs the same small work in pairs of fresh processes, in the order A B B A, and times it.

Four processes start side by side, since a start may take ten times as long as the work; they work one by one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from threading import Event, Timer
from time import perf_counter
from typing import IO

from .smallest_effect import Spread, measure_spread

WORKLOADS = Path(__file__).parent / "workloads"
LOOP, TORCH_STEP = "equal_loop.py", "equal_torch_step.py"
MOST_PAIRS, FEWEST_PAIRS = 10, 4
# Of a batch of processes, which start side by side: imports may take a minute on a cold disk.
BATCH_SECONDS = 300.0
ORDERS = ((0, 1, 1, 0), (1, 0, 0, 1))
READY = "ready\n"


class EqualWorkError(Exception):
    """The work couldn't be timed; one sentence."""


class TooSlowError(EqualWorkError):
    """It took longer than it may."""


TimeSteps = Callable[[str, int, float], Sequence[float]]
"""Times the work of a script in so many fresh processes, one after the other, within so many seconds."""


def time_in_pairs(
    script: str, seconds: float, most_seconds: float, measure: TimeSteps | None = None
) -> Spread:
    """Pairs until the seconds are spent, within MOST_PAIRS; raises EqualWorkError.

    The fewest pairs may take longer, up to `most_seconds`.
    """
    measure, started = measure or time_processes, perf_counter()
    sides: tuple[list[float], list[float]] = ([], [])
    # Whatever drifts, or follows the starts of a batch, meets each side as often.
    for order in cycle(ORDERS):
        pairs, took = len(sides[0]), perf_counter() - started
        if pairs >= MOST_PAIRS or (pairs >= FEWEST_PAIRS and took > seconds):
            break
        left = most_seconds - took
        if left <= 0:
            raise EqualWorkError(f"not known: {pairs} pairs took {took:.0f} s, {FEWEST_PAIRS} are needed")
        try:
            values = measure(script, len(order), min(BATCH_SECONDS, left))
        except TooSlowError:
            if pairs >= FEWEST_PAIRS:
                break
            raise
        for side, value in zip(order, values, strict=True):
            sides[side].append(value)
    return measure_spread(*sides)


def time_processes(script: str, number: int, limit: float) -> list[float]:
    """The seconds of one step, as each of so many fresh processes prints them; raises EqualWorkError."""
    try:
        with ExitStack() as stack:
            # In files: nobody reads what they say of errors until one fails. Each has its own, for a file's
            # place is shared by all that write to it and whoever reads it.
            errors = [
                stack.enter_context(tempfile.TemporaryFile("w+", errors="replace")) for _ in range(number)
            ]
            processes = stack.enter_context(waiting_processes(script, errors))
            return _time_one_by_one(script, processes, errors, limit)
    except OSError as error:
        raise EqualWorkError(f"{script} can't be started: {error}") from error


def _time_one_by_one(
    script: str, processes: Sequence[subprocess.Popen[str]], errors: Sequence[IO[str]], limit: float
) -> list[float]:
    late, everyone, asked = Event(), range(len(processes)), 0

    def end() -> None:
        late.set()
        for process in processes:
            process.kill()

    watchdog = Timer(limit, end)
    watchdog.start()
    try:
        for asked in everyone:
            if _read_line(processes[asked]) != READY:
                raise ValueError("it was never ready")
        seconds = []
        for asked in everyone:
            seconds.append(_time_process(processes[asked]))
        return seconds
    except (OSError, ValueError) as error:
        if late.is_set():
            sentence = f"{len(processes)} processes of {script} took longer than {limit:.0f} s"
            raise TooSlowError(sentence) from error
        processes[asked].kill()
        processes[asked].wait()
        raise EqualWorkError(f"{script} failed: {_last_line(errors[asked]) or error}") from error
    finally:
        watchdog.cancel()


@contextmanager
def waiting_processes(script: str, errors: Sequence[IO[str]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that say when they are ready, and wait for a line; they are ended behind the block.

    One for each of the files `errors`, which it writes its errors to.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command, pipe = [sys.executable, "-P", str(WORKLOADS / script)], subprocess.PIPE
    processes: list[subprocess.Popen[str]] = []
    try:
        processes.extend(
            subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=file)
            for file in errors
        )
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()


def _time_process(process: subprocess.Popen[str]) -> float:
    print(file=process.stdin, flush=True)
    seconds = float(_read_line(process))
    process.wait()  # its end is work too, which the next one would wait for
    return seconds


def _last_line(errors: IO[str]) -> str:
    errors.seek(0)
    return (errors.read().splitlines() or [""])[-1]


def _read_line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline() if process.stdout is not None else ""
