"""How pairs decide about a step that only a phase shows: `python -m bench.detection.phase_verdicts`.

The pairs are simulated: what eight phases took of both commits, with noise that all share and some of their
own. A step of 1 % of the whole is suspected in one phase; it is there, or not, or its work has only moved.
Where sides take turns, single steps tell more of the whole than the mean of a window: in the last columns
they do.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from bench.detection.printing import print_tables, table_head
from bench.detection.verdicts import BUDGET, DEGREES, TRIALS, verdict_cells
from dashboard.detection import paired_steps, pairs
from dashboard.detection.paired_parts import decide_step, estimate_parts
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
# And what they differ by where their single steps are compared.
BY_STEPS = {"calm": 0.003, "busy": 0.01}
LEAST_NOISE = 0.003
# What is looked at, with its phases and its single steps or without.
LOOKS = {"whole": (False, False), "phases too": (True, False), "steps and phases": (True, True)}


@dataclass(frozen=True, slots=True)
class Truth:
    """By how much of the whole the suspected phase grew, and others shrank, by their places in SHARES."""

    grown: float = 0.0
    shrunk: Mapping[int, float] = field(default_factory=dict)

    @property
    def lost(self) -> float:
        """By how much the whole grew."""
        return self.grown - sum(self.shrunk.values())


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


def simulate_steps(truth: Truth, machine: str, trials: int) -> Floats:
    """By how many suspected steps the whole differs by single steps, (trials, BUDGET)."""
    rng = np.random.default_rng(round(1e5 * (truth.lost + BY_STEPS[machine])))
    noise = BY_STEPS[machine] * math.sqrt((DEGREES - 2) / DEGREES)
    return (truth.lost + noise * rng.standard_t(DEGREES, (trials, BUDGET))) / STEP


def estimate_by_values(values: Floats, error: float) -> pairs.ShareEstimate | None:
    """As `estimate_by_steps` does, of values that are shares already."""
    if len(values) < paired_steps.FEWEST_PAIRS:
        return None
    bounded = paired_steps.bound_far(values)
    deviation = max(float(bounded.std(ddof=1)), LEAST_NOISE / STEP)
    half = pairs.interval_half_width(len(values), deviation, error, paired_steps.PRIOR_SCALE)
    middle = float(bounded.mean())
    return pairs.ShareEstimate(len(values), middle, middle - half, middle + half)


def decide_budget(
    good: Floats, bad: Floats, suspected: int, *, by_phases: bool, steps: Floats | None = None
) -> tuple[str, int]:
    """The verdict on the suspected step, and after how many pairs; `steps` as `simulate_steps` has them."""
    mask = np.arange(len(SHARES)) == suspected
    error = pairs.ERROR / (1 + by_phases + (steps is not None))
    least = math.log1p(LEAST_OF_WHOLE) / math.log1p(STEP)
    for count in range(pairs.FEWEST_PAIRS, BUDGET + 1):
        whole = [(side[:, :count].sum(axis=0) / STEP).tolist() for side in (good, bad)]
        estimate = pairs.estimate_share(*whole, noise=LEAST_NOISE / STEP, error=error)
        found = (
            estimate_parts(good[:, :count], bad[:, :count], mask, STEP, LEAST_NOISE, error)
            if by_phases
            else None
        )
        by_steps = None if steps is None else estimate_by_values(steps[:count], error)
        verdict = decide_step(estimate, by_steps, found, least, error)
        if verdict != "open":
            return verdict, count
    return "undecided", BUDGET


def phase_table(trials: int) -> Iterator[str]:
    """Of each machine, phase and truth, decided by pairs of the whole step alone, or by more."""
    heads = ["machine", "phase", "what is there"]
    heads += [f"{by}: {outcome}" for by in LOOKS for outcome in ("right", "wrong", "undecided", "pairs")]
    yield from table_head(heads)
    for (machine, noise), (share, suspected) in product(MACHINES.items(), SUSPECTED.items()):
        for name, (truth, right) in TRUTHS.items():
            wrong = {"confirmed", "refuted", "moved"} - right
            cells = []
            for by_phases, by_steps in LOOKS.values():
                drawn = simulate_phases(truth, suspected, noise, trials)
                steps = list(simulate_steps(truth, machine, trials)) if by_steps else [None] * trials
                found = [
                    decide_budget(*both, suspected, by_phases=by_phases, steps=of_steps)
                    for both, of_steps in zip(drawn, steps, strict=True)
                ]
                cells.append(verdict_cells(found, sorted(right), sorted(wrong), ["undecided"]))
            yield f"| {machine} | {share} | {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", nargs="?", type=int, default=TRIALS, help="experiments in each row")
    print_tables([phase_table(parser.parse_args().trials)])


if __name__ == "__main__":
    main()
