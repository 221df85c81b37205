"""Runs the same small work in pairs of fresh processes, in the order A B B A, and times it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from .smallest_effect import Spread, measure_spread

WORKLOADS = Path(__file__).parent / "workloads"
LOOP, TORCH_STEP = "equal_loop.py", "equal_torch_step.py"
MOST_PAIRS, FEWEST_PAIRS = 10, 4
PROCESS_SECONDS = 120.0


class EqualWorkError(Exception):
    """The work couldn't be timed; one sentence."""


def time_in_pairs(
    script: str, seconds: float, most_seconds: float, run: Callable[[str], float] | None = None
) -> Spread:
    """Pairs until the seconds are spent, within MOST_PAIRS; raises EqualWorkError.

    The fewest pairs may take longer, up to `most_seconds`.
    """
    measure, started = run or time_process, perf_counter()
    sides: tuple[list[float], list[float]] = ([], [])
    for pair in range(MOST_PAIRS):
        took = perf_counter() - started
        if pair >= FEWEST_PAIRS and took > seconds:
            break
        if took > most_seconds:
            raise EqualWorkError(f"not told: {pair} pairs took {took:.0f} s, {FEWEST_PAIRS} are needed")
        # Whichever drifts, each side is first as often as second.
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            sides[side].append(measure(script))
    return measure_spread(*sides)


def time_process(script: str) -> float:
    """The seconds of one step, as a fresh process prints them."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", str(WORKLOADS / script)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=PROCESS_SECONDS, check=True
        )
        return float(ended.stdout)
    except subprocess.TimeoutExpired as error:
        raise EqualWorkError(f"{script} took longer than {PROCESS_SECONDS:.0f} s") from error
    except (subprocess.CalledProcessError, ValueError) as error:
        raise EqualWorkError(f"{script} failed: {error}") from error
