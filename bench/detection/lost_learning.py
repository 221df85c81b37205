"""How often a loss of learning is reported: `python -m bench.detection.lost_learning`.

Histories of what a training learned are simulated: a level, the luck of each seed, and commits of which some
draw the random numbers in another order, so that every seed has another luck from then on. What is
deterministic repeats to the last digit in between. A site's judgement looks at each commit; what it suspects
is proved by pairs over fresh seeds, as a site proves it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.detection.printing import print_tables
from dashboard.detection import GuardedPoint, Point, Series, judge_guarded

LEVEL, GUARD = 10.0, 3.0
COMMITS, TRIALS = 100, 12
# The part of the commits that draw random numbers in another order.
REDRAWING = 0.3
# Where a loss is planted.
LOST_AT = 40
WITHIN = 2


@dataclass(frozen=True, slots=True)
class Training:
    """What a seed learns: `spread` as a part of the level, and the part of the seeds that learn nothing."""

    spread: float
    seeds: int
    unlucky: float = 0.0
    guard: float = GUARD
    deterministic: bool = True

    def __str__(self) -> str:
        unlucky = f", {self.unlucky:.0%} of seeds fail" if self.unlucky else ""
        near = f", guard at {self.guard:g}" if self.guard != GUARD else ""
        kind = "" if self.deterministic else ", not deterministic"
        return f"{self.spread:.0%}{unlucky}{near}{kind}"

    def draw(self, rng: np.random.Generator, level: float, count: int) -> list[float]:
        values = rng.normal(level, self.spread * LEVEL, count)
        failed = rng.random(count) < self.unlucky
        return [float(value) for value in np.where(failed, rng.normal(0, 0.02 * LEVEL, count), values)]


TRAININGS = (
    *(Training(spread, seeds) for spread in (0.05, 0.15, 0.3) for seeds in (1, 3)),
    *(Training(0.15, seeds, unlucky=0.1) for seeds in (1, 3)),
    *(Training(0.15, seeds, guard=8.0) for seeds in (1, 3)),
    *(Training(0.15, seeds, deterministic=False) for seeds in (1, 3)),
)
LOSSES = (0.2, 0.3, 0.5, 0.9)


@dataclass(slots=True)
class Counts:
    """Of many histories: what was suspected, what pairs confirmed, and how many pairs that took."""

    commits: int = 0
    suspected: int = 0
    alarms: int = 0
    pairs: int = 0
    delays: list[int] = field(default_factory=list)

    @property
    def per_100(self) -> tuple[float, float]:
        return 100 * self.suspected / self.commits, 100 * self.alarms / self.commits


def simulate_history(
    rng: np.random.Generator, training: Training, levels: Sequence[float], counts: Counts
) -> int | None:
    """Judge each commit of a history as it comes, and prove what is suspected.

    The commit after which the first loss was confirmed; None where none was.
    """
    samples: list[list[float]] = []
    suspected: list[int] = []
    confirmed_after: int | None = None
    for index, level in enumerate(levels):
        moved = index == 0 or level != levels[index - 1]
        redraws = not training.deterministic or moved or rng.random() < REDRAWING
        samples.append(training.draw(rng, level, training.seeds) if redraws else samples[-1])
        for at in new_suspicions(samples, training, suspected):
            suspected.append(at[0])
            confirmed, pairs = prove_loss(rng, training, *at[1:], levels[at[0] - 1], levels[at[0]])
            counts.suspected += 1
            counts.alarms += confirmed
            counts.pairs += pairs
            confirmed_after = index if confirmed and confirmed_after is None else confirmed_after
    counts.commits += len(levels)
    return confirmed_after


def new_suspicions(
    samples: Sequence[Sequence[float]], training: Training, suspected: Sequence[int]
) -> list[tuple[int, float, float]]:
    """(index, level before, level after) of the losses that weren't suspected near there before."""
    values = [float(np.mean(row)) for row in samples]
    several = training.seeds > 1
    series = Series(
        [Point(value, tuple(row) if several else ()) for value, row in zip(values, samples, strict=True)],
        better="higher",
        kind="quality",
    )
    points = [GuardedPoint(value, failed=value < training.guard) for value in values]
    known = [index for index in suspected if index < len(values)]
    return [
        (change.index, change.before, change.after)
        for change in judge_guarded(series, points, known, one_seed=not several)
        if change.direction == "regression"
        and not any(abs(change.index - index) <= WITHIN for index in suspected)
    ]


def prove_loss(
    rng: np.random.Generator, training: Training, before: float, after: float, base: float, head: float
) -> tuple[bool, int]:
    """Whether pairs over fresh seeds confirm a suspected loss, and how many it took.

    The worst case for a commit that changes nothing: it draws its random numbers in another order.
    """
    from dashboard.experiments.verdicts import evaluate_experiment
    from dashboard.models import Experiment, ExperimentPair, Metric

    experiment = Experiment(
        question=Experiment.Question.TEST,
        metric=Metric(name="quality.score", unit="1", better="higher", kind="quality"),
        before=before,
        after=after,
    )
    pairs: list[ExperimentPair] = []
    while True:
        (low,), (high,) = training.draw(rng, base, 1), training.draw(rng, head, 1)
        pairs.append(ExperimentPair(index=len(pairs), base=low, head=high, disturbed=False))
        if verdict := evaluate_experiment(experiment, pairs, 0.0).verdict:
            return verdict == Experiment.Verdict.CONFIRMED, len(pairs)


def unchanged_table(trials: int) -> Iterator[str]:
    """Where no commit changes what is learned."""
    yield "| spread of seeds | seeds | suspected | false alarms | pairs |"
    yield "|---|---|---|---|---|"
    for training in TRAININGS:
        counts, rng = Counts(), np.random.default_rng(7)
        for _ in range(trials):
            simulate_history(rng, training, [LEVEL] * COMMITS, counts)
        suspected, alarms = counts.per_100
        mean = counts.pairs / max(1, counts.suspected)
        yield f"| {training} | {training.seeds} | {suspected:.1f} | {alarms:.2f} | {mean:.1f} |"


def lost_table(trials: int) -> Iterator[str]:
    """Where one commit loses a part of what is learned: how often that is reported, and how soon."""
    yield "| spread of seeds | seeds | lost | reported | after commits |"
    yield "|---|---|---|---|---|"
    for training in TRAININGS[:4]:
        for loss in LOSSES:
            counts, rng = Counts(), np.random.default_rng(11)
            levels = [LEVEL] * LOST_AT + [(1 - loss) * LEVEL] * (COMMITS - LOST_AT)
            found = [simulate_history(rng, training, levels, counts) for _ in range(trials)]
            delays = [at - LOST_AT for at in found if at is not None and at >= LOST_AT]
            late = f"{np.median(delays):.0f}" if delays else "never"
            yield f"| {training} | {training.seeds} | {loss:.0%} | {len(delays) / trials:.0%} | {late} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--trials", type=int, default=TRIALS, help=f"histories in each row (default {TRIALS})"
    )
    trials = parser.parse_args().trials
    set_up_django()
    print_tables((unchanged_table(trials), lost_table(trials)))


def set_up_django() -> None:
    """Weighing reads its choices off the models; no database is asked."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()


if __name__ == "__main__":
    main()
