"""How pairs decide about a step that only a phase shows: `python -m bench.detection.phase_verdicts`.

The pairs are simulated: what eight phases took of both commits, with noise that all share and some of their
own. A step of 1 % of the whole is suspected in one phase; it is there, or not, or its work has only moved.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from bench.detection.printing import print_tables
from bench.detection.verdicts import BUDGET, DEGREES, TRIALS, verdict_cells
from dashboard.detection import pairs
from dashboard.detection.paired_parts import estimate_parts, parts_verdict
from dashboard.detection.parts import LEAST_OF_WHOLE
from dashboard.detection.segmentation import Floats

SHARES = np.array([0.30, 0.25, 0.15, 0.12, 0.10, 0.05, 0.02, 0.01])
# Which phase is suspected, by what it is of the whole.
SUSPECTED = {"5 %": 5, "10 %": 4, "30 %": 0}
STEP = 0.01
# Of the noise that a repetition's phases share, each has so much of its own; small ones have more.
OWN, LEAST_OWN = 0.3, 0.001
# What repetitions of two sides differ by in turns, on a calm machine and on a busy one.
MACHINES = {"calm": 0.007, "busy": 0.03}
LEAST_NOISE = 0.003


@dataclass(frozen=True, slots=True)
class Truth:
    """By how much of the whole the suspected phase grew, and others shrank, by their places in SHARES."""

    grown: float = 0.0
    shrunk: Mapping[int, float] = field(default_factory=dict)


# With the verdicts that are right.
TRUTHS: Mapping[str, tuple[Truth, set[str]]] = {
    "nothing": (Truth(), {"refuted", "moved"}),
    "all of it": (Truth(STEP), {"confirmed"}),
    "moved from one": (Truth(STEP, {1: STEP}), {"refuted", "moved"}),
    "moved from three": (Truth(STEP, {1: 0.4 * STEP, 2: 0.3 * STEP, 3: 0.3 * STEP}), {"refuted", "moved"}),
}


def simulate_phases(
    truth: Truth, suspected: int, shared: float, trials: int
) -> Iterator[tuple[Floats, Floats]]:
    """What each phase took of the good and of the bad commit, (phases, BUDGET) each, by experiment."""
    rng = np.random.default_rng(round(1e5 * shared) + suspected)
    size = (trials, 2, len(SHARES), BUDGET)
    scale = math.sqrt((DEGREES - 2) / DEGREES)
    common = shared * scale * rng.standard_t(DEGREES, (trials, 2, 1, BUDGET))
    own_scale = np.maximum(OWN * shared, LEAST_OWN / np.sqrt(SHARES))[:, np.newaxis]
    times = SHARES[:, np.newaxis] * np.exp(common + own_scale * scale * rng.standard_t(DEGREES, size))
    moved = np.zeros(len(SHARES))
    moved[suspected] += truth.grown
    for row, lost in truth.shrunk.items():
        moved[row] -= lost
    times[:, 1] *= (1 + moved / SHARES)[:, np.newaxis]
    yield from ((both[0], both[1]) for both in times)


def decide_budget(good: Floats, bad: Floats, suspected: int, *, by_phases: bool) -> tuple[str, int]:
    """The verdict on the suspected step, and after how many pairs."""
    mask = np.arange(len(SHARES)) == suspected
    error = pairs.ERROR / 2 if by_phases else pairs.ERROR
    least = math.log1p(LEAST_OF_WHOLE) / math.log1p(STEP)
    for count in range(pairs.FEWEST_PAIRS, BUDGET + 1):
        whole = [(side[:, :count].sum(axis=0) / STEP).tolist() for side in (good, bad)]
        estimate = pairs.estimate_share(*whole, noise=LEAST_NOISE / STEP, error=error)
        found = (
            estimate_parts(good[:, :count], bad[:, :count], mask, STEP, LEAST_NOISE, error)
            if by_phases
            else None
        )
        verdict = parts_verdict(estimate, found, least)
        if verdict != "open":
            return verdict, count
    return "undecided", BUDGET


def phase_table(trials: int) -> Iterator[str]:
    """Of each machine, phase and truth, decided by pairs of the whole step alone, and with its phases."""
    heads = ["machine", "phase", "what is there"]
    heads += [
        f"{by}: {told}" for by in ("whole", "phases too") for told in ("right", "wrong", "undecided", "pairs")
    ]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for (machine, noise), (share, suspected) in product(MACHINES.items(), SUSPECTED.items()):
        for name, (truth, right) in TRUTHS.items():
            wrong = {"confirmed", "refuted", "moved"} - right
            cells = []
            for by_phases in (False, True):
                found = [
                    decide_budget(good, bad, suspected, by_phases=by_phases)
                    for good, bad in simulate_phases(truth, suspected, noise, trials)
                ]
                cells.append(verdict_cells(found, sorted(right), sorted(wrong), ["undecided"]))
            yield f"| {machine} | {share} | {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", nargs="?", type=int, default=TRIALS, help="experiments in each row")
    print_tables([phase_table(parser.parse_args().trials)])


if __name__ == "__main__":
    main()
