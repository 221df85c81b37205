"""How often interleaved pairs decide wrongly, and how many they take: `python -m bench.detection.verdicts`.

The pairs are simulated: values of both commits, in suspected steps, with noise of a known size. With
`--data FOLDER` neighbours in the folder's change-free histories are pairs too, with nothing to be confirmed.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.detection.printing import print_tables, table_head
from bench.detection.trials import Trial, load_trials
from dashboard.detection import EFFECT_FLOORS, pairs

TRIALS = 1000
BUDGET = 24
DEGREES = 4  # of Student's t: tails as heavy as those of repetitions
# Something else slows a repetition by so many standard deviations of a pair.
SPIKE = (3.0, 8.0)
# A machine is slower by so many of them for some pairs, then fast again: how likely either is after a pair.
SLOWER, SLOWS, RECOVERS = 4.0, 0.1, 0.2


@dataclass(frozen=True, slots=True)
class Kind:
    """A pair's standard deviation, as a part of the suspected step, and what comes on top of it."""

    noise: float
    slowed: float = 0.0  # The part of the repetitions that something else slows.
    changing: bool = False  # The machine's speed.

    def __str__(self) -> str:
        slowed = f", {self.slowed:.0%} slowed" if self.slowed else ""
        return f"{self.noise:g}{slowed}{', machine changes' if self.changing else ''}"


KINDS = (
    *(Kind(noise) for noise in (0.15, 0.3, 0.5, 0.7, 1.0)),
    *(Kind(noise, slowed) for slowed in (0.1, 0.3) for noise in (0.15, 0.3, 0.5)),
    Kind(0.5, changing=True),
)
SUSPECTED = (0.1, 0.25)
ORDERS = {"permuted": "random order", "real": "their own order"}
RIGHT = {1: "whole", 0: "none"}

# The values of a whole budget of pairs, in suspected steps: of the good and of the bad commit, (2, BUDGET).
Values = npt.NDArray[np.float64]


def confirm_budget(budget: Values, step: float = 0.25) -> tuple[str, int]:
    """The verdict on the whole of a suspected step, and after how many pairs."""
    least = math.log1p(EFFECT_FLOORS["time"].long) / math.log1p(step)
    for weight, _ in sequential_estimates(budget):
        found = pairs.step_verdict(weight, least)
        if found != "open":
            return found, weight.pairs
    return "undecided", BUDGET


def bisect_budget(budget: Values) -> tuple[str, int]:
    """The verdict on a commit in the middle, and after how many pairs."""
    for weight, spent in sequential_estimates(budget):
        found = pairs.place_verdict(weight, spent)
        if found != "open":
            return found, weight.pairs
    return "undecided", BUDGET


def sequential_estimates(budget: Values) -> Iterator[tuple[pairs.ShareEstimate, float]]:
    """What the pairs say after each, and which part of the budget is spent."""
    for count in range(pairs.FEWEST_PAIRS, BUDGET + 1):
        good, bad = budget[:, :count].tolist()
        yield pairs.estimate_share(good, bad), count / BUDGET


def simulate_budgets(true: float, kind: Kind, trials: int) -> Iterator[Values]:
    """So many whole budgets of pairs, of which it is known how much of the step is there."""
    rng = np.random.default_rng(round(1000 * kind.noise))
    # A pair's noise is that of two repetitions.
    tails = rng.standard_t(DEGREES, (trials, 2, BUDGET)) * math.sqrt((DEGREES - 2) / DEGREES / 2)
    tails += rng.uniform(*SPIKE, tails.shape) * (rng.random(tails.shape) < kind.slowed)
    if kind.changing:
        tails += SLOWER * slow_pairs(rng, trials)[:, np.newaxis]
    tails *= kind.noise
    tails[:, 1] += true
    yield from tails


def slow_pairs(rng: np.random.Generator, trials: int) -> npt.NDArray[np.bool_]:
    """In which pairs of each budget the machine is slow, (trials, BUDGET)."""
    states = np.zeros((trials, BUDGET), dtype=np.bool_)
    chances = rng.random(states.shape)
    for pair in range(1, BUDGET):
        before = states[:, pair - 1]
        states[:, pair] = np.where(before, chances[:, pair] >= RECOVERS, chances[:, pair] < SLOWS)
    return states


def verdict_cells(found: Sequence[tuple[str, int]], *asked: Sequence[str]) -> str:
    """For each group of verdicts its part of what was found, in percent; then the pairs on average."""
    verdicts = Counter(verdict for verdict, _ in found)
    parts = [f"{100 * sum(verdicts[name] for name in names) / len(found):.1f}" for names in asked]
    return " | ".join([*parts, f"{np.mean([count for _, count in found]):.1f}"])


def confirmation_table(trials: int) -> Iterator[str]:
    """Of a step that isn't there, and of one that is wholly."""
    yield "| noise | nothing: confirmed | undecided | pairs | all of it: refuted | undecided | pairs |"
    yield "|---|---|---|---|---|---|---|"
    for kind in KINDS:
        nothing, whole = (
            [confirm_budget(budget) for budget in simulate_budgets(true, kind, trials)] for true in (0.0, 1.0)
        )
        first = verdict_cells(nothing, ["confirmed"], ["undecided"])
        yield f"| {kind} | {first} | {verdict_cells(whole, ['refuted'], ['undecided'])} |"


def bisection_table(trials: int) -> Iterator[str]:
    """Of a commit in the middle that has all or nothing of the step, and of one that has half of it."""
    heads = ["noise", "all or nothing: wrong", "undecided", "pairs"]
    heads += ["half: part seen", "one side named", "undecided", "pairs"]
    yield from table_head(heads)
    for kind in KINDS:
        sides = [
            (side, *bisect_budget(budget))
            for side in (1, 0)
            for budget in simulate_budgets(side, kind, trials)
        ]
        known = [("right" if verdict == RIGHT[side] else verdict, count) for side, verdict, count in sides]
        half = [bisect_budget(budget) for budget in simulate_budgets(0.5, kind, trials)]
        first = verdict_cells(known, ["whole", "none", "part"], ["undecided"])
        yield f"| {kind} | {first} | {verdict_cells(half, ['part'], ['none', 'whole'], ['undecided'])} |"


def measured_table(trials: Sequence[Trial]) -> Iterator[str]:
    """Of suspicions in change-free histories, whose neighbouring values are taken as pairs, A B B A."""
    yield "| suspected | histories in | experiments | confirmed | undecided | pairs |"
    yield "|---|---|---|---|---|---|"
    for step, (group, name) in product(SUSPECTED, ORDERS.items()):
        histories = [trial.values for trial in trials if trial.group == group and min(trial.values) > 0]
        found = [
            confirm_budget(budget, step) for values in histories for budget in pair_neighbours(values, step)
        ]
        if found:
            cells = verdict_cells(found, ["confirmed"], ["undecided"])
            yield f"| {step:.0%} | {name} | {len(found)} | {cells} |"


def pair_neighbours(values: Sequence[float], step: float) -> Iterator[Values]:
    """Whole budgets of pairs from one history: which of two neighbours is the good one alternates."""
    steps = np.log(np.asarray(values, dtype=np.float64)) / math.log1p(step)
    for start in range(0, len(steps) - 2 * BUDGET + 1, 2 * BUDGET):
        budget = steps[start : start + 2 * BUDGET].reshape(BUDGET, 2)
        budget[1::2] = budget[1::2, ::-1].copy()
        yield budget.T


def main(arguments: Sequence[str] | None = None) -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description="Measure how often interleaved pairs decide wrongly.")
    parser.add_argument("trials", type=int, nargs="?", default=TRIALS, help="simulated budgets in a cell")
    parser.add_argument("--data", type=Path, help="folder with measured histories, whose values become pairs")
    options = parser.parse_args(arguments)
    tables = [confirmation_table(options.trials), bisection_table(options.trials)]
    if options.data:
        tables.append(measured_table(load_trials(options.data).change_free))
    print_tables(tables)


if __name__ == "__main__":
    main()
