"""How many of several causes close to each other are found: `python -m bench.detection.close_causes`.

Whole histories are simulated: noisy points, the steps that detection finds in them, and the pairs that the
decision asks for, judged as a site judges them. A machine that is slower from some commit on shows in the
points and not in the pairs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import django
import numpy as np

from bench.detection.planted_causes import BEHIND, QUIET, Causes, Noise
from bench.detection.printing import print_tables, table_head

if TYPE_CHECKING:
    from bench.detection.noisy_project import NoisyProject

TRIALS, SEED = 150, 21
# Each history has a seed of its own.
SEEDS = 1_000_000

NOISES = (Noise(0.005, 0.005), Noise(0.01, 0.01, late=10), Noise(0.02, 0.02, late=10))
CAUSES = (
    Causes((5, 4, 5)),
    Causes((3, 5, 3)),
    Causes((5, 0, 4, 0, 5)),
    Causes((5, 5)),
    Causes((3, 6)),
    Causes((5, 0, 5)),
    Causes((8,)),
    Causes((5,), machine=5, machine_at=1),
    Causes((5,), machine=5, machine_at=-1),
    Causes((5, 5), machine=5, machine_at=1),
)
# Every twelfth commit is measured first, then a part of those in a range that holds the cause.
EVERY, FILLED, FILLED_PARTS, FILLED_STEP = 12, range(48, 96), (1.0, 0.3, 0.0), 15
FILLED_NOISES = tuple(Noise(noise, noise, late=SEEDS) for noise in (0.01, 0.02, 0.03))


@dataclass(slots=True)
class Tally:
    """What was proved of simulated histories, added up."""

    histories: int = 0
    planted: int = 0
    found: int = 0
    all_found: int = 0
    wide: int = 0
    false: int = 0
    pairs: int = 0
    experiments: int = 0

    def add(self, project: NoisyProject, places: Sequence[int]) -> None:
        self.histories += 1
        self.planted += len(places)
        found = set()
        for good, bad in project.confirmed_ranges():
            inside = [place for place in places if good < place <= bad]
            if not inside:
                self.false += 1
            elif bad - good == 1:
                found |= set(inside)
            else:
                self.wide += 1
        self.found += len(found)
        self.all_found += len(found) == len(places)
        self.pairs += project.pairs_measured
        self.experiments += len(project.pairs)

    def cells(self) -> list[str]:
        """In percent of causes or histories, then per history."""
        parts = [self.found / self.planted, self.all_found / self.histories]
        cells = [f"{100 * part:.1f}" for part in parts]
        cells += [f"{100 * count / self.histories:.1f}" for count in (self.wide, self.false)]
        cells += [f"{count / self.histories:.1f}" for count in (self.experiments, self.pairs)]
        return cells


def simulate_history(causes: Causes, noise: Noise, seed: int) -> NoisyProject:
    """One history, each commit of which is measured in its order."""
    from bench.detection.noisy_project import NoisyProject

    project = NoisyProject.of_history(causes, noise, seed, QUIET + BEHIND)
    project.measured = set(range(QUIET - 2))
    for position in range(QUIET - 2, project.count):
        project.measure(position)
        project.answer_due()
    project.answer_all()
    return project


def cause_table(
    trials: int, seed: int = SEED, causes: Sequence[Causes] = CAUSES, noises: Sequence[Noise] = NOISES
) -> Iterator[str]:
    heads = ["noise", "causes, %", "found", "all found", "a range", "false", "experiments", "pairs"]
    yield from table_head(heads)
    for noise in noises:
        for planted in causes:
            tally = Tally()
            for trial in range(trials):
                tally.add(simulate_history(planted, noise, seed * SEEDS + trial), planted.places)
            yield f"| {noise} | {planted} | {' | '.join(tally.cells())} |"


def simulate_filled(noise: Noise, filled: float, seed: int) -> tuple[NoisyProject, int]:
    """A history of which each twelfth commit is measured, and then a part of the others before pairs are.

    With the place of its cause.
    """
    from bench.detection.noisy_project import NoisyProject

    rng = np.random.default_rng(seed)
    at, count = int(rng.integers(FILLED.start + EVERY, FILLED.stop - EVERY)), 2 * FILLED.stop
    project = NoisyProject.of_history(Causes((FILLED_STEP,)), noise, seed, count, at)
    *first, last = range(0, count, EVERY)
    project.measured = set(first)
    project.measure(last)
    rest = [position for position in FILLED if position % EVERY and rng.random() < filled]
    if rest:
        project.measured |= set(rest[:-1])
        project.measure(rest[-1])
    project.answer_all()
    return project, at


def filled_table(trials: int, seed: int = SEED) -> Iterator[str]:
    heads = ["noise", "filled", "found", "a range", "false", "experiments", "pairs"]
    yield from table_head(heads)
    for noise in FILLED_NOISES:
        for filled in FILLED_PARTS:
            tally = Tally()
            for trial in range(trials):
                project, at = simulate_filled(noise, filled, seed * SEEDS + trial)
                tally.add(project, [at])
            # There is one cause, so that all are found where it is.
            found, _, *rest = tally.cells()
            yield f"| {noise.run:.1%} | {filled:.0%} | {' | '.join([found, *rest])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", nargs="?", type=int, default=TRIALS, help="histories in a row")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    print_tables([table(options.trials, options.seed) for table in (cause_table, filled_table)])


if __name__ == "__main__":
    main()
