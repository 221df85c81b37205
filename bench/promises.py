"""What detection promises, measured on simulated series, as tables: `python -m bench.promises [SERIES]`.

Nothing of that was measured on a machine: real pairs of equal runs show other noise. With `--data FOLDER` the
promise is tried on the folder's change-free histories too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np

from bench.detection import say_all
from bench.scoring import Alarms, false_alarms
from bench.trials import Trial, load
from dashboard.detection import (
    ALARM,
    SUSPICION,
    FalseAlarmBudget,
    Watch,
    detect,
    judge_series,
    shift_p_value,
    suspect,
)
from dashboard.detection.identity import Steadiness
from dashboard.detection.null_models import NULL_MODELS, simulate_null
from dashboard.detection.types import Change, Point, Series

SERIES = 40
POINTS = 150
HEADLINES = 6  # series of a project
QUIET = 30  # commits before the first that may raise an alert
PROMISES = (1.0, 10.0)  # false alerts per 100 commits
KINDS = [(promise, checked) for promise in PROMISES for checked in (False, True)]
STEPS = (1.05, 1.15)
LENGTHS = (100, 1_000, 10_000)
ADDED = 300


def nuisances(count: int) -> Iterator[str]:
    """False alarms per 1,000 points, by what disturbs the series."""
    yield "| null model | `detect` | `suspect` |"
    yield "|---|---|---|"
    for model in NULL_MODELS:
        trials = [Trial(simulate_null(model, seed, POINTS).tolist()) for seed in range(count)]
        cells = []
        for detector in (detect, suspect):
            found = [false_alarms(detector, trial) for trial in trials]
            total = Alarms(sum(one.count for one in found), sum(one.points for one in found))
            cells.append(f"{total.per_1000:.1f}")
        yield f"| {model} | " + " | ".join(cells) + " |"


def heads() -> list[str]:
    """What the columns of a table of promises are called."""
    return [f"{promise:g}, {'checked' if checked else 'unchecked'}" for promise, checked in KINDS]


def budgets(projects: int) -> Iterator[str]:
    """False alerts per 100 commits of projects whose headline series all have the same nuisance."""
    yield "| null model | " + " | ".join(heads()) + " |"
    yield "|---|" + "---|" * len(KINDS)
    for model in NULL_MODELS:
        cells = []
        for promise, checked in KINDS:
            alerts = [raised(model, seed, promise, checked) for seed in range(projects)]
            cells.append(f"{100 * sum(alerts) / projects / (POINTS - QUIET):.1f}")
        yield f"| {model} | " + " | ".join(cells) + " |"


def raised(model: str, seed: int, promise: float, checked: bool) -> int:
    """The alerts of one project whose series all have the same nuisance."""
    values = [simulate_null(model, HEADLINES * seed + k, POINTS).tolist() for k in range(HEADLINES)]
    return false_alerts(values, promise, checked)


def false_alerts(values: Sequence[Sequence[float]], promise: float, checked: bool) -> int:
    """The alerts of one project; each is refuted at once if they are checked, and its level stays."""
    budget, since, count = FalseAlarmBudget(promise), [0] * len(values), 0
    for n in range(QUIET, min(map(len, values))):
        chances = {str(k): p_value(tuple(one), n + 1, since[k]) for k, one in enumerate(values)}
        decision, budget = budget.decide(chances)
        count += bool(decision.raised)
        for key in decision.raised:
            since[int(key)] = n - 3
        if decision.raised and checked:
            budget = budget.after_refutation()
    return count


@lru_cache(maxsize=100_000)
def p_value(values: tuple[float, ...], n: int, since: int) -> float:
    """That of the first n values, kept: the columns of a table ask for the same ones."""
    return shift_p_value(values[:n], since)


def measured(trials: Sequence[Trial]) -> Iterator[str]:
    """The same of projects put together from six change-free histories each, of nearly one length."""
    yield "| histories | " + " | ".join(heads()) + " |"
    yield "|---|" + "---|" * len(KINDS)
    for group, name in (("permuted", "in random order"), ("real", "as they are")):
        values = sorted((one.values for one in trials if one.group == group), key=len)
        projects = [values[k : k + HEADLINES] for k in range(0, len(values) - HEADLINES + 1, HEADLINES)]
        if not projects:
            continue
        commits = sum(min(map(len, project)) - QUIET for project in projects)
        counts = [sum(false_alerts(project, *kind) for project in projects) for kind in KINDS]
        cells = " | ".join(f"{100 * count / commits:.1f}" for count in counts)
        yield f"| {name} | {cells} |"


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
        found = judge_series(
            Series(points[:n], "lower", "time"), [one.index for one in found] if told else []
        )
        yield found


def costs() -> Iterator[str]:
    """Processor time, in milliseconds: of all at once, and of one point more, on average over many."""
    yield "| points before | `detect` | one more | `suspect` | one more |"
    yield "|---|---|---|---|---|"
    for n in LENGTHS:
        values = simulate_null("white", 1, n + ADDED).tolist()
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


def main(arguments: Sequence[str] | None = None) -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description="Measure what detection promises.")
    parser.add_argument("series", type=int, nargs="?", default=SERIES, help="simulated series in each cell")
    parser.add_argument(
        "--data", type=Path, help="folder with measured histories, which are put into projects"
    )
    options = parser.parse_args(arguments)
    count = options.series
    tables = [costs(), steadiness(count), nuisances(count), budgets(max(count // 10, 1))]
    if options.data:
        tables.append(measured(load(options.data).quiet))
    say_all(tables)


if __name__ == "__main__":
    main()
