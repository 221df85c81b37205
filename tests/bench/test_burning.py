"""A program that burns every core beside some runs."""

from __future__ import annotations

import os
import random
import time

from bench.demo.burning import Burner, draw_runs


def test_a_quarter_of_the_runs_is_drawn() -> None:
    drawn = draw_runs(range(1, 9), random.Random(1))  # noqa: S311 - nothing secret is drawn
    assert len(drawn) == 2
    assert drawn <= set(range(1, 9))
    assert draw_runs([], random.Random(1)) == set()  # noqa: S311 - nothing secret is drawn


def test_each_core_burns_while_it_is_wanted() -> None:
    wanted = False
    burner = Burner(lambda: wanted)
    try:
        burner.look()
        assert burner.processes == []
        wanted = True
        burner.look()
        burning = burner.processes
        kept_on = [os.sched_getaffinity(process.pid) for process in burning]
        assert kept_on == [{core} for core in sorted(os.sched_getaffinity(0))]
        assert all(process.poll() is None for process in burning)
        wanted = False
        burner.look()
        assert all(process.poll() is not None for process in burning)
    finally:
        burner.stop()


def test_nothing_burns_on_after_the_wait_has_ended() -> None:
    with Burner(lambda: True) as burner:
        deadline = time.monotonic() + 30
        while not burner.processes and time.monotonic() < deadline:
            time.sleep(0.05)
        burning = list(burner.processes)
    assert burning
    assert all(process.poll() is not None for process in burning)
