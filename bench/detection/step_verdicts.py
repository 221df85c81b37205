"""How single steps decide about a step of 1 %, and answer checks: `python -m bench.detection.step_verdicts`.

The pairs are simulated: 200 steps of both commits that took turns, each twentieth of which takes three times
as long. Other work disturbs a part of them, another one in each pair, of both sides nearly alike. Beside that
a pair has a difference of its own (where its memory lies) and one by which of both began.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bench.detection.printing import print_tables
from bench.detection.verdicts import verdict_cells
from dashboard.detection import pairs
from dashboard.detection.paired_parts import decide_step
from dashboard.detection.paired_steps import (
    FEWEST_PAIRS,
    LARGEST_STEP,
    agreed_estimate,
    compare_steps,
    estimate_by_steps,
)
from dashboard.detection.parts import LEAST_OF_WHOLE
from dashboard.detection.segmentation import Floats

STEPS, EVERY, LONGER = 200, 20, 3.0
STEP = 0.01
# So many pairs of five seconds there are in ten minutes.
BUDGET = 120
TRIALS, TRIALS_WITHOUT = 200, 1000
# The largest part of a pair's steps that other work disturbs, and by how much at most it makes them longer.
MACHINES = {"calm": 0.1, "busy": 0.4, "far too busy": 0.7}
MOST_LONGER, UNLIKE = 3.0, 0.1
# Of a step, and of a pair: by where its memory lies, and by who begins.
OF_A_STEP, OF_A_PAIR, BY_ORDER = 0.02, 0.004, 0.005
LEAST_NOISE = 0.003
# The whole step and its phases are looked at too, and share the error.
ERROR = pairs.ERROR / 3


@dataclass(frozen=True, slots=True)
class Truth:
    """By how much all steps of the head take longer, and the long ones beside that.

    `pauses`: as a part of all, what it is held up by in few steps, other ones each time.
    """

    all_steps: float = 0.0
    long_ones: float = 0.0
    pauses: float = 0.0


# What the long ones have to take more, so that it is 1 % of all.
OF_ALL = (EVERY - 1 + LONGER) / LONGER
OF_LONG_ONES = STEP * OF_ALL
# With the verdict that is right.
TRUTHS: Mapping[str, tuple[Truth, str]] = {
    "nothing": (Truth(), "refuted"),
    "1 % in all steps": (Truth(STEP), "confirmed"),
    "1 % in each twentieth": (Truth(0.0, OF_LONG_ONES), "confirmed"),
    "1 % by pauses": (Truth(pauses=STEP), "confirmed"),
    "moved from these to all": (Truth(STEP, -OF_LONG_ONES), "refuted"),
}
# A check's floor, and what of its error either look may take.
FLOOR, CHECK_ERROR = 0.03, 0.001
WORSE = 0.05
# The step of which it is asked how much is there.
PLACED = 0.02
# One of so many steps is held up.
HELD_UP = 50
# What points show of it, and how much of that there is.
PLACES: Mapping[str, tuple[Truth, float, str]] = {
    "2 % in all steps": (Truth(PLACED), PLACED, "whole"),
    "the same": (Truth(PLACED), 2 * PLACED, "part"),
    "and 2 % by pauses": (Truth(PLACED, pauses=PLACED), 2 * PLACED, "whole"),
}
CHECKED: Mapping[str, tuple[Truth, str]] = {
    "nothing": (Truth(), "not worse"),
    "1 % in all steps": (Truth(STEP), "not worse"),
    "5 % in all steps": (Truth(WORSE), "worse"),
    "5 % in each twentieth": (Truth(0.0, WORSE * OF_ALL), "worse"),
    "5 % by pauses": (Truth(pauses=WORSE), "worse"),
}


def simulate_steps(
    truth: Truth, disturbed: float, trials: int
) -> Iterator[tuple[Floats, Floats, list[bool]]]:
    """The times of the base and of the head, (STEPS, BUDGET) each, and which of both began."""
    rng = np.random.default_rng(round(1e4 * (disturbed + truth.all_steps + truth.long_ones)))
    is_long = (np.arange(STEPS) % EVERY == 0)[:, np.newaxis]
    base = np.where(is_long, LONGER, 1.0)
    head = base * (1 + truth.all_steps) * np.where(is_long, 1 + truth.long_ones, 1.0)
    for _ in range(trials):
        begins = rng.random(BUDGET // 2) < 0.5
        first = np.stack([begins, ~begins], axis=1).ravel()
        share = rng.uniform(0, disturbed, BUDGET)
        own = rng.normal(0, OF_A_PAIR, BUDGET) + np.where(first, BY_ORDER, -BY_ORDER)
        good, bad = (_disturb_steps(rng, side, share) for side in (base, head))
        if truth.pauses:
            held_up = rng.random(bad.shape) < 1 / HELD_UP
            bad = bad + held_up * truth.pauses * HELD_UP * good.mean()
        yield good, bad * np.exp(own), first.tolist()


def _disturb_steps(rng: np.random.Generator, steps: Floats, share: Floats) -> Floats:
    shape = (STEPS, BUDGET)
    hit = rng.random(shape) < np.clip(share * np.exp(rng.normal(0, UNLIKE, BUDGET)), 0, 1)
    longer = np.where(hit, 1 + rng.uniform(0, MOST_LONGER, shape), 1.0)
    return np.asarray(steps * longer * np.exp(rng.normal(0, OF_A_STEP, shape)))


def estimate_times(
    good: Floats, bad: Floats, first: list[bool], suspected: float = STEP
) -> pairs.ShareEstimate | None:
    compared = compare_steps(good, bad)
    if compared is None:
        return None
    return estimate_by_steps(compared, first, math.log1p(suspected), LEAST_NOISE, ERROR)


def decide_budget(good: Floats, bad: Floats, first: list[bool], suspected: float = STEP) -> tuple[str, int]:
    """The verdict on the suspected step, by the means and by single steps, and after how many pairs."""
    step = math.log1p(suspected)
    least = math.log1p(LEAST_OF_WHOLE) / step
    before, after = (np.log(side.mean(axis=0)) / step for side in (good, bad))
    for count in range(FEWEST_PAIRS, BUDGET + 1):
        whole = pairs.estimate_share(before[:count], after[:count], LEAST_NOISE / step, ERROR)
        steps = estimate_times(good[:, :count], bad[:, :count], first[:count], suspected)
        found = decide_step(whole, steps, None, least, ERROR)
        if found != "open":
            return found, count
    return "undecided", BUDGET


def answer_check(good: Floats, bad: Floats, first: list[bool], *, by_steps: bool) -> tuple[str, int]:
    """What a check says of these pairs, and after how many; by their means alone, or by single steps too."""
    error = CHECK_ERROR if by_steps else 2 * CHECK_ERROR
    before, after = (np.log(side.mean(axis=0)) for side in (good, bad))
    floor = math.log1p(FLOOR)
    for count in range(pairs.FEWEST_PAIRS, BUDGET + 1):
        estimate = pairs.estimate_share(before[:count], after[:count], LEAST_NOISE, error)
        if by_steps and (compared := compare_steps(good[:, :count], bad[:, :count])):
            steps = estimate_by_steps(compared, first[:count], 1.0, LEAST_NOISE, error)
            estimate = agreed_estimate(estimate, steps, error, math.log1p(LARGEST_STEP))
        if estimate.low is None or estimate.high is None:
            continue
        if estimate.low > 0 and estimate.share >= floor:
            return "worse", count
        if estimate.high < floor:
            return "not worse", count
    return "undecided", BUDGET


def check_table(trials: int, trials_without: int) -> Iterator[str]:
    """Of each machine and truth, by the means of pairs and by single steps too."""
    outcomes = ("right", "wrong", "undecided", "pairs")
    names = [f"{look}: {name}" for look in ("means", "steps too") for name in outcomes]
    yield f"| machine | what is there | experiments | {' | '.join(names)} |"
    yield f"|{'---|' * (3 + len(names))}"
    for machine, disturbed in MACHINES.items():
        for name, (truth, right) in CHECKED.items():
            wrong = "worse" if right == "not worse" else "not worse"
            count = trials_without if truth == Truth() else trials
            budgets = list(simulate_steps(truth, disturbed, count))
            cells = [
                verdict_cells(
                    [answer_check(*budget, by_steps=by_steps) for budget in budgets],
                    [right], [wrong], ["undecided"],
                )
                for by_steps in (False, True)
            ]  # fmt: skip
            yield f"| {machine} | {name} | {count} | {' | '.join(cells)} |"


def step_table(trials: int, trials_without: int) -> Iterator[str]:
    """Of each machine and truth; `trials_without` experiments where nothing is."""
    yield "| machine | what is there | experiments | right | wrong | undecided | pairs |"
    yield "|---|---|---|---|---|---|---|"
    for machine, disturbed in MACHINES.items():
        for name, (truth, right) in TRUTHS.items():
            wrong = "refuted" if right == "confirmed" else "confirmed"
            count = trials_without if truth == Truth() else trials
            found = [decide_budget(*budget) for budget in simulate_steps(truth, disturbed, count)]
            cells = verdict_cells(found, [right], [wrong], ["undecided"])
            yield f"| {machine} | {name} | {count} | {cells} |"


def place_step(good: Floats, bad: Floats, first: list[bool], shown: float) -> tuple[str, str]:
    """How much the pairs say is there of a step that points show: by means, and by steps too."""
    step = math.log1p(shown)
    before, after = (np.log(side.mean(axis=0)) / step for side in (good, bad))
    means, shared = (
        pairs.estimate_share(before, after, LEAST_NOISE / step, error) for error in (pairs.ERROR, ERROR)
    )
    agreed = agreed_estimate(shared, estimate_times(good, bad, first, shown), ERROR, math.inf)
    return pairs.place_verdict(means), pairs.place_verdict(agreed)


def place_table(trials: int) -> Iterator[str]:
    """Where points show as much as all steps have, or twice that: what BUDGET pairs say."""
    outcomes = ("right", "wrong", "open")
    names = [f"{look}: {name}" for look in ("means", "steps too") for name in outcomes]
    yield f"| machine | there | points show | {' | '.join(names)} |"
    yield f"|{'---|' * (3 + len(names))}"
    for machine, disturbed in MACHINES.items():
        for name, (truth, shown, right) in PLACES.items():
            budgets = simulate_steps(truth, disturbed, trials)
            found = [place_step(*budget, shown) for budget in budgets]
            cells = []
            for look in (0, 1):
                places = [row[look] for row in found]
                counts = places.count(right), places.count("open")
                parts = (counts[0], trials - sum(counts), counts[1])
                cells += [f"{100 * part / trials:.1f}" for part in parts]
            yield f"| {machine} | {name} | {shown:.0%} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", nargs="?", type=int, default=TRIALS, help="experiments with a step")
    parser.add_argument("without", nargs="?", type=int, default=TRIALS_WITHOUT, help="and without one")
    options = parser.parse_args()
    tables = [table(options.trials, options.without) for table in (step_table, check_table)]
    print_tables([*tables, place_table(options.trials)])


if __name__ == "__main__":
    main()
