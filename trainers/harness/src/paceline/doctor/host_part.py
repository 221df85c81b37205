"""The part `host`: what makes this host noisy, how much equal work differs here, and what could be proven."""

from __future__ import annotations

import importlib.util
import math
import os
import time
from collections.abc import Iterator

from ..system.processes import ancestor_pids
from .equal_work import LOOP, TORCH_STEP, EqualWorkError, time_in_pairs
from .findings import Finding
from .gpu_facts import judge_gpu, read_gpus
from .harness_parts import look_at_host
from .host_facts import read_free_disk, read_host, read_processor_times
from .host_rules import judge_disk, judge_host, judge_processes
from .smallest_effect import BUDGET, POWER, Spread, pairs_within, smallest_effect
from .workbench import Workbench, visible_devices

# In which nothing of ours runs, so that what does is others'.
QUIET_SECONDS = 2.0
LOOP_SECONDS, TORCH_SECONDS = 15.0, 20.0
# What a repetition of a benchmark takes, its start included, for what ten minutes could prove.
REPETITION_SECONDS = 10.0


def check_host(bench: Workbench) -> list[Finding]:
    """What was found, which of it matters, and what could be proven in ten minutes."""
    facts, before = read_host(), read_processor_times()
    time.sleep(QUIET_SECONDS)
    later, after = read_host(), read_processor_times()
    findings = judge_host(facts, later)
    findings += judge_processes(before, after, frozenset(ancestor_pids(os.getpid())), os.cpu_count() or 1)
    findings.append(judge_disk(*read_free_disk()))
    devices = visible_devices()
    try:
        findings += [row for gpu in read_gpus(devices) for row in judge_gpu(gpu)]
    finally:
        devices.close()
    return [*look_at_host(bench), *findings, *_measure_equal_work(bench)]


def _measure_equal_work(bench: Workbench) -> Iterator[Finding]:
    works = [("a small loop", LOOP, LOOP_SECONDS)]
    if importlib.util.find_spec("torch") is not None:
        works.append(("a small torch step", TORCH_STEP, TORCH_SECONDS))
    for name, script, seconds in works:
        try:
            left = max(0.0, bench.seconds_left())
            spread = time_in_pairs(script, min(seconds, left / 3), left)
        except EqualWorkError as error:
            yield Finding(f"{name}, twice the same", str(error))
            continue
        yield from describe_spread(name, spread)


def describe_spread(name: str, spread: Spread) -> Iterator[Finding]:
    """How much the pairs differ, and what ten minutes of such pairs could prove."""
    yield Finding(
        f"{name}, twice the same",
        f"pairs differ by {spread.deviation:.2%} (one deviation), {spread.bias:+.2%} in the mean",
        f"{spread.pairs} pairs of fresh processes",
    )
    pairs = pairs_within(BUDGET, REPETITION_SECONDS)
    least, most = (
        smallest_effect(deviation, pairs) for deviation in (spread.deviation, spread.deviation_bound)
    )
    value = "nothing" if math.isinf(most) else f"slower by {least:.2%}, or by {most:.2%} at worst"
    yield Finding(
        f"{name}, provable in ten minutes",
        value,
        f"in {POWER:.0%} of cases, by {pairs} pairs of repetitions of {REPETITION_SECONDS:.0f} s "
        "that differ like these",
    )
