"""How often interleaved pairs decide wrongly, and how many they take: `python -m bench.verdicts [TRIALS]`.

The pairs are simulated: shares of the suspected step with noise of a known size. With `--data FOLDER` they
are put together from the folder's change-free histories too, in which nothing is there to be confirmed.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.detection import say_all
from bench.trials import Trial, load
from dashboard.detection import EFFECT_FLOORS, pairs

TRIALS = 1000
BUDGET = 24
DEGREES = 4  # of Student's t: tails as heavy as those of repetitions
# Something else slows one repetition in ten by so many standard deviations of a pair.
SPIKY, SPIKE = 0.1, (3.0, 8.0)
Kind = tuple[float, bool]
# Standard deviations of a pair, as parts of the suspected step; with spikes or without.
KINDS: tuple[Kind, ...] = (
    *((noise, False) for noise in (0.15, 0.3, 0.5, 0.7, 1.0)),
    *((noise, True) for noise in (0.15, 0.3, 0.5)),
)
SUSPECTED = (0.1, 0.25)
ORDERS = {"permuted": "random order", "real": "their own order"}
RIGHT = {1: "bad", 0: "good"}

Shares = npt.NDArray[np.float64]


def confirmed(shares: Shares, step: float = 0.25) -> tuple[str, int]:
    """The verdict on the whole of a suspected step, and after how many pairs."""
    least = math.log1p(EFFECT_FLOORS["time"].long) / math.log1p(step)
    for count in range(pairs.FEWEST_TO_WEIGH, len(shares) + 1):
        found = pairs.verdict(pairs.weigh(shares[:count].tolist()), least)
        if found != "open":
            return found, count
    return "undecided", len(shares)


def placed(shares: Shares) -> tuple[str, int]:
    """The verdict on a commit in the middle, and after how many pairs."""
    for count in range(pairs.FEWEST_TO_WEIGH, len(shares) + 1):
        found = pairs.place(pairs.weigh(shares[:count].tolist()), spent=count / len(shares))
        if found != "open":
            return found, count
    return "undecided", len(shares)


def simulated(true: float, kind: Kind, trials: int) -> Iterator[Shares]:
    """The shares of so many whole budgets of pairs, whose true share is known."""
    noise, spiky = kind
    rng = np.random.default_rng(round(1000 * noise))
    tails = rng.standard_t(DEGREES, (trials, BUDGET)) * math.sqrt((DEGREES - 2) / DEGREES)
    if spiky:
        # Of both repetitions of a pair.
        spikes = rng.uniform(*SPIKE, (2, trials, BUDGET)) * (rng.random((2, trials, BUDGET)) < SPIKY)
        tails += spikes[1] - spikes[0]
    yield from true + noise * tails


def named(kind: Kind) -> str:
    noise, spiky = kind
    return f"{noise:g}, spikes" if spiky else f"{noise:g}"


def cells(found: Sequence[tuple[str, int]], *asked: Sequence[str]) -> str:
    """For each group of verdicts its part of what was found, in percent; then the pairs on average."""
    verdicts = Counter(verdict for verdict, _ in found)
    parts = [f"{100 * sum(verdicts[name] for name in names) / len(found):.1f}" for names in asked]
    return " | ".join([*parts, f"{np.mean([count for _, count in found]):.1f}"])


def confirmations(trials: int) -> Iterator[str]:
    """Of a step that isn't there, and of one that is wholly."""
    yield "| noise | nothing: confirmed | undecided | pairs | all of it: refuted | undecided | pairs |"
    yield "|---|---|---|---|---|---|---|"
    for kind in KINDS:
        nothing, whole = ([confirmed(one) for one in simulated(true, kind, trials)] for true in (0.0, 1.0))
        first = cells(nothing, ["confirmed"], ["undecided"])
        yield f"| {named(kind)} | {first} | {cells(whole, ['refuted'], ['undecided'])} |"


def bisections(trials: int) -> Iterator[str]:
    """Of a commit in the middle that has all or nothing of the step, and of one that has half of it."""
    heads = ["noise", "all or nothing: wrong", "undecided", "pairs"]
    heads += ["half: part seen", "one side told", "undecided", "pairs"]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for kind in KINDS:
        sides = [(side, *placed(one)) for side in (1, 0) for one in simulated(side, kind, trials)]
        known = [("right" if verdict == RIGHT[side] else verdict, count) for side, verdict, count in sides]
        half = [placed(one) for one in simulated(0.5, kind, trials)]
        first = cells(known, ["bad", "good", "between"], ["undecided"])
        yield f"| {named(kind)} | {first} | {cells(half, ['between'], ['good', 'bad'], ['undecided'])} |"


def measured(trials: Sequence[Trial]) -> Iterator[str]:
    """Of suspicions in change-free histories, whose neighbouring values are taken as pairs, A B B A."""
    yield "| suspected | histories in | confirmations | confirmed | undecided | pairs |"
    yield "|---|---|---|---|---|---|"
    for step, (group, name) in product(SUSPECTED, ORDERS.items()):
        histories = [one.values for one in trials if one.group == group and min(one.values) > 0]
        found = [confirmed(shares, step) for values in histories for shares in paired(values, step)]
        if found:
            told = cells(found, ["confirmed"], ["undecided"])
            yield f"| {step:.0%} | {name} | {len(found)} | {told} |"


def paired(values: Sequence[float], step: float) -> Iterator[Shares]:
    """Whole budgets of pairs from one history: which of two neighbours is the good one alternates."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    turns = np.resize([1.0, -1.0], BUDGET)
    for start in range(0, len(logs) - 2 * BUDGET + 1, 2 * BUDGET):
        window = logs[start : start + 2 * BUDGET].reshape(BUDGET, 2)
        yield turns * (window[:, 1] - window[:, 0]) / math.log1p(step)


def main(arguments: Sequence[str] | None = None) -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description="Measure how often interleaved pairs decide wrongly.")
    parser.add_argument("trials", type=int, nargs="?", default=TRIALS, help="simulated budgets in a cell")
    parser.add_argument("--data", type=Path, help="folder with measured histories, whose values become pairs")
    options = parser.parse_args(arguments)
    tables = [confirmations(options.trials), bisections(options.trials)]
    if options.data:
        tables.append(measured(load(options.data).quiet))
    say_all(tables)


if __name__ == "__main__":
    main()
