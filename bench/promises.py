"""What detection promises, measured on simulated series, as tables: `python -m bench.promises [SERIES]`.

Nothing here was measured on a machine: real pairs of equal runs show other noise.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from bench.detection import say
from bench.scoring import Alarms, false_alarms
from bench.trials import Trial
from dashboard.detection import ALARM, SUSPICION, Budget, Watch, detect, judge, surprise, suspect
from dashboard.detection.identity import Steadiness
from dashboard.detection.nuisances import FAMILIES, series
from dashboard.detection.types import Change, Point, Series

SERIES = 40
POINTS = 150
HEADLINES = 6  # series of a project
QUIET = 30  # commits before the first that may raise an alert
PROMISES = (1.0, 10.0)  # false alerts per 100 commits
STEPS = (1.05, 1.15)
LENGTHS = (100, 1_000, 10_000)
ADDED = 300


def nuisances(count: int) -> Iterator[str]:
    """False alarms per 1,000 points, by what disturbs the series."""
    yield "| nuisance | `detect` | `suspect` |"
    yield "|---|---|---|"
    for family in FAMILIES:
        trials = [Trial(series(family, seed, POINTS).tolist()) for seed in range(count)]
        cells = []
        for detector in (detect, suspect):
            found = [false_alarms(detector, trial) for trial in trials]
            total = Alarms(sum(one.count for one in found), sum(one.points for one in found))
            cells.append(f"{total.per_1000:.1f}")
        yield f"| {family} | " + " | ".join(cells) + " |"


def budgets(projects: int) -> Iterator[str]:
    """False alerts per 100 commits of projects whose headline series all have the same nuisance."""
    kinds = [(promise, checked) for promise in PROMISES for checked in (False, True)]
    heads = [f"{promise:g}, {'checked' if checked else 'unchecked'}" for promise, checked in kinds]
    yield "| nuisance | " + " | ".join(heads) + " |"
    yield "|---|" + "---|" * len(kinds)
    for family in FAMILIES:
        cells = []
        for promise, checked in kinds:
            alerts = [raised(family, seed, promise, checked) for seed in range(projects)]
            cells.append(f"{100 * sum(alerts) / projects / (POINTS - QUIET):.1f}")
        yield f"| {family} | " + " | ".join(cells) + " |"


def raised(family: str, seed: int, promise: float, checked: bool) -> int:
    """The alerts of one project; each is refuted at once if they are checked, and its level stays."""
    values = [series(family, HEADLINES * seed + k, POINTS).tolist() for k in range(HEADLINES)]
    budget, since, count = Budget(promise), [0] * HEADLINES, 0
    for n in range(QUIET, POINTS):
        chances = {str(k): surprise(one[: n + 1], since[k]) for k, one in enumerate(values)}
        decision, budget = budget.decide(chances)
        count += bool(decision.raised)
        for key in decision.raised:
            since[int(key)] = n - 3
        if decision.raised and checked:
            budget = budget.refuted()
    return count


def steadiness(count: int) -> Iterator[str]:
    """What became of the changes that `judge` reported while histories grew from 30 to 80 points."""
    yield "| step | noise | told what is known | reported | moved, per report | vanished, per report |"
    yield "|---|---|---|---|---|---|"
    for step, sigma, told in product(STEPS, (0.01, 0.03), (False, True)):
        total = Steadiness()
        for seed in range(count):
            values = np.exp(np.random.default_rng(seed).normal(0, sigma, 80))
            values[40:] *= step
            total.follow(reports(values.tolist(), told))
        shares = (part / max(total.reported, 1) for part in (total.moved, total.vanished))
        cells = " | ".join(f"{share:.2f}" for share in shares)
        yield f"| {step - 1:.0%} | {sigma:.0%} | {'yes' if told else 'no'} | {total.reported} | {cells} |"


def reports(values: list[float], told: bool) -> Iterator[Sequence[Change]]:
    """The changes after each point, with or without being told those of the point before."""
    points = [Point(value) for value in values]
    found: list[Change] = []
    for n in range(30, len(points) + 1):
        found = judge(Series(points[:n], "lower", "time"), [one.index for one in found] if told else [])
        yield found


def costs() -> Iterator[str]:
    """Processor time, in milliseconds: of all at once, and of one point more, on average over many."""
    yield "| points before | `detect` | one more | `suspect` | one more |"
    yield "|---|---|---|---|---|"
    for n in LENGTHS:
        values = series("white", 1, n + ADDED).tolist()
        cells = []
        for detector, rule in ((detect, ALARM), (suspect, SUSPICION)):
            begun = time.process_time()
            detector(values[:n])
            whole = time.process_time() - begun
            watch = Watch(values[:n], rule)
            begun = time.process_time()
            for value in values[n:]:
                watch.add(value)
            cells += [whole, (time.process_time() - begun) / ADDED]
        yield f"| {n} | " + " | ".join(f"{1000 * cell:.2f}" for cell in cells) + " |"


def main(count: int) -> None:
    """All tables."""
    for lines in (costs(), steadiness(count), nuisances(count), budgets(max(count // 10, 1))):
        for line in lines:
            say(line)
        say("")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SERIES)
