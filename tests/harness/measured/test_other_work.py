"""What of a thread's waiting for a processor others can have caused."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping
from time import process_time

import pytest
from paceline.measured.other_work import OtherWork, busy_seconds, stolen_share, tree_seconds
from paceline.system.processor_ticks import ProcessorTicks, read_processor_ticks


def test_a_processor_that_was_half_busy_is_uncertain() -> None:
    start = {"cpu0": ProcessorTicks(1_000, 5_000), "cpu1": ProcessorTicks(7_000, 9_000)}
    busy = {"cpu0": ProcessorTicks(1_100, 5_100), "cpu1": ProcessorTicks(7_000, 9_100)}
    assert busy_seconds(start, busy) == pytest.approx(1.0)
    half = {"cpu0": ProcessorTicks(1_050, 5_100), "cpu1": ProcessorTicks(7_000, 9_100)}
    # Two standard deviations of a hundred draws, of which half hit: 2 x 5 ticks.
    assert busy_seconds(start, half) == pytest.approx(0.6)
    assert busy_seconds({}, half) is None
    assert busy_seconds({}, {}) is None


def test_what_was_stolen_is_a_share_of_all_processors() -> None:
    start = {"cpu0": ProcessorTicks(1_000, 5_000, 10), "cpu1": ProcessorTicks(7_000, 9_000, 20)}
    end = {"cpu0": ProcessorTicks(1_100, 5_100, 40), "cpu1": ProcessorTicks(7_100, 9_100, 30)}
    assert stolen_share(start, end) == pytest.approx(0.2)
    assert stolen_share({}, end) is None
    assert stolen_share(start, {}) is None
    assert stolen_share(start, start) is None


def burn_processor(seconds: float) -> None:
    while process_time() < seconds:
        pass


def burn_beside(processes: int, seconds: float) -> None:
    """Let so many children of this process use so many processor seconds each."""
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=burn_processor, args=(seconds,)) for _ in range(processes)]
    for child in children:
        child.start()
    for child in children:
        child.join()


def test_the_kernel_tells_a_busy_processor() -> None:
    before = read_processor_ticks()
    burn_beside(1, 0.4)
    busy = busy_seconds(before, read_processor_ticks())
    assert busy is not None
    assert busy > 0.2


def test_a_program_whose_threads_end_meanwhile_is_told() -> None:
    restless = (
        "import threading\nprint(flush=True)\n"
        "while True: (thread := threading.Thread(target=len, args=((),))).start(), thread.join()"
    )
    command = [sys.executable, "-c", restless]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout
        program.stdout.readline()
        told = [tree_seconds(os.getpid()) for _ in range(1_000)]
        program.kill()
    assert None not in told


def test_what_its_own_processes_use_is_no_other_work() -> None:
    """Others may work between two readings: it lies between what was read inside and around its own."""
    seen = OtherWork(os.getpid())
    before = read_work()
    seen.begin()
    begun = read_work()
    burn_beside(3, 0.3)
    burned = read_work()
    seen.end()
    after = read_work()
    assert burned[1] - begun[1] > 0.8
    assert seen.seconds is not None
    assert work_of_others(begun, burned) - 0.1 <= seen.seconds <= work_of_others(before, after) + 0.1


Work = tuple[Mapping[str, ProcessorTicks], float]


def read_work() -> Work:
    """The processors' ticks, and the seconds that this process and its children have used."""
    used = tree_seconds(os.getpid())
    assert used is not None
    return read_processor_ticks(), used


def work_of_others(start: Work, end: Work) -> float:
    busy = busy_seconds(start[0], end[0])
    assert busy is not None
    return max(0.0, busy - (end[1] - start[1]))


@pytest.mark.parametrize(("others", "waited"), [(0.0, 0.0), (0.4, 0.4), (7.0, 2.0), (None, 2.0)])
def test_others_cause_at_most_what_they_used(others: float | None, waited: float) -> None:
    seen = OtherWork(0)
    seen.seconds = others
    assert seen.bound_waiting(2.0) == waited


def test_a_root_that_is_unknown_bounds_nothing() -> None:
    seen = OtherWork(0)
    seen.begin()
    seen.end()
    assert seen.seconds is None
