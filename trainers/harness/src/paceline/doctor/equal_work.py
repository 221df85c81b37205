"""Runs the same small work in pairs of fresh processes, in the order A B B A, and times it.

Four processes start side by side, since a start may take ten times as long as the work; they work one by one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from time import perf_counter

from .smallest_effect import Spread, measure_spread

WORKLOADS = Path(__file__).parent / "workloads"
LOOP, TORCH_STEP = "equal_loop.py", "equal_torch_step.py"
MOST_PAIRS, FEWEST_PAIRS = 10, 4
PROCESS_SECONDS = 120.0
ORDER = (0, 1, 1, 0)
READY = "ready\n"


class EqualWorkError(Exception):
    """The work couldn't be timed; one sentence."""


TimeSteps = Callable[[str, int], Sequence[float]]
"""Times the work of a script in so many fresh processes, one after the other."""


def time_in_pairs(
    script: str, seconds: float, most_seconds: float, measure: TimeSteps | None = None
) -> Spread:
    """Pairs until the seconds are spent, within MOST_PAIRS; raises EqualWorkError.

    The fewest pairs may take longer, up to `most_seconds`.
    """
    measure, started = measure or time_processes, perf_counter()
    sides: tuple[list[float], list[float]] = ([], [])
    while (pairs := len(sides[0])) < MOST_PAIRS:
        took = perf_counter() - started
        if pairs >= FEWEST_PAIRS and took > seconds:
            break
        if took > most_seconds:
            raise EqualWorkError(f"not told: {pairs} pairs took {took:.0f} s, {FEWEST_PAIRS} are needed")
        # Whichever drifts, each side is first as often as second.
        for side, value in zip(ORDER, measure(script, len(ORDER)), strict=True):
            sides[side].append(value)
    return measure_spread(*sides)


def time_processes(script: str, number: int) -> list[float]:
    """The seconds of one step, as each of so many fresh processes prints them; raises EqualWorkError."""
    with waiting_processes(script, number) as processes:
        return [_time_process(script, process) for process in processes]


@contextmanager
def waiting_processes(script: str, number: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ready and wait for a line; they are ended behind the block."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", str(WORKLOADS / script)]
    processes: list[subprocess.Popen[str]] = []

    def end() -> None:
        for process in processes:
            process.kill()

    watchdog = Timer(PROCESS_SECONDS, end)
    watchdog.start()
    try:
        for _ in range(number):
            pipe = subprocess.PIPE
            processes.append(
                subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=pipe)
            )
        for process in processes:
            if _read_line(process) != READY:
                raise EqualWorkError(f"{script} failed: {_last_error(process)}")
        yield processes
    finally:
        watchdog.cancel()
        end()
        for process in processes:
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()


def _time_process(script: str, process: subprocess.Popen[str]) -> float:
    try:
        print(file=process.stdin, flush=True)
        seconds = float(_read_line(process))
        process.wait()  # its end is work too, which the next one would wait for
        return seconds
    except (OSError, ValueError) as error:
        raise EqualWorkError(f"{script} failed: {error}") from error


def _last_error(process: subprocess.Popen[str]) -> str:
    process.kill()
    return (process.communicate()[1].splitlines() or ["it said nothing"])[-1]


def _read_line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline() if process.stdout is not None else ""
