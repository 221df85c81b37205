"""How often the slow rank of a training is named, and how often a rank falsely: `python -m bench.stragglers`.

Simulated, since four processes on two processors can't tell. A step is cut by collectives at which all
ranks wait for the last; between them each rank computes for its share of 10 ms, under a noise of its own. In
half of the runs one rank computes for 5 % longer. What judges is the harness's own code.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from paceline.ranks.straggler import Arrivals, compare_arrivals, find_slowest
from paceline.units import align_columns

README = Path(__file__).resolve().parent / "README.md"
PART = re.compile(r"(<!-- stragglers:[^>]*-->\n).*?(<!-- end stragglers -->)", re.DOTALL)
SLOWER = 0.05
STEP_SECONDS = 0.01
TRANSFER_SECONDS = 0.0005
# Of 100 runs.
NAMED_AT_LEAST, FALSE_AT_MOST = 95, 1

Numbers = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, int]], Numbers]


def make_even_noise(draw: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Factors of steps that don't know of each other: lognormal, 5 %."""
    return draw.lognormal(0.0, 0.05, shape)


def make_hiccups(draw: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """One step in fifty takes longer, by half of it in the mean."""
    return draw.lognormal(0.0, 0.03, shape) + (draw.random(shape) < 0.02) * draw.exponential(0.5, shape)


def make_heavy_tails(draw: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """One step in twenty takes longer by a Pareto of exponent 1.5, whose variance is infinite."""
    return draw.lognormal(0.0, 0.03, shape) + (draw.random(shape) < 0.05) * 0.1 * draw.pareto(1.5, shape)


def make_drift(draw: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Each rank's speed drifts by 3 % over a repetition, up or down, and swings by 2 % on the way."""
    along = np.linspace(0.0, 1.0, shape[1])
    slope = draw.uniform(-0.03, 0.03, (shape[0], 1)) * (along - 0.5)
    turns = draw.uniform(1, 3, (shape[0], 1)) * along + draw.random((shape[0], 1))
    swing = 0.02 * np.sin(2 * np.pi * turns)
    return make_even_noise(draw, shape) * (1.0 + slope + swing)


def make_correlated_steps(draw: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Steps that resemble the one before: autoregressive, 0.9, with a spread of 4 %."""
    noise = draw.normal(0.0, 0.04 * np.sqrt(1 - 0.9**2), shape)
    noise[:, 0] /= np.sqrt(1 - 0.9**2)
    for step in range(1, shape[1]):
        noise[:, step] += 0.9 * noise[:, step - 1]
    return np.maximum(0.1, 1.0 + noise)


def make_placement(draw: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Where a process lands in a repetition makes it 1 % faster or slower for all of it."""
    return make_even_noise(draw, shape) * draw.normal(1.0, 0.01, (shape[0], 1))


@dataclass(frozen=True, slots=True)
class Scenario:
    """Trainings of one kind: their noise, ranks, and the size of a run."""

    name: str
    noise: Noise
    ranks: int = 4
    collectives: int = 2
    steps: int = 160
    repetitions: int = 5


SCENARIOS = (
    Scenario("independent steps", make_even_noise),
    Scenario("2 ranks", make_even_noise, ranks=2),
    Scenario("8 ranks", make_even_noise, ranks=8),
    Scenario("few collectives: 100 in all", make_even_noise, collectives=1, steps=20),
    Scenario("many collectives: 20 a step", make_even_noise, collectives=20),
    Scenario("hiccups", make_hiccups),
    Scenario("hiccups, 8 ranks", make_hiccups, ranks=8),
    Scenario("heavy tails", make_heavy_tails),
    Scenario("heavy tails, 2 ranks", make_heavy_tails, ranks=2),
    Scenario("drifting speeds", make_drift),
    Scenario("drifting speeds, 8 ranks", make_drift, ranks=8),
    Scenario("correlated steps", make_correlated_steps),
    Scenario("correlated steps, 2 ranks", make_correlated_steps, ranks=2),
    Scenario("speed by placement", make_placement),
    Scenario("speed by placement, 8 ranks", make_placement, ranks=8),
    Scenario("a quick run of 2 repetitions", make_hiccups, repetitions=2),
    Scenario("a single repetition", make_hiccups, repetitions=1),
    Scenario("a single repetition, drifting speeds", make_drift, repetitions=1),
    Scenario("a single repetition, correlated steps", make_correlated_steps, repetitions=1),
)


def simulate_repetition(draw: np.random.Generator, scenario: Scenario, slower: float) -> Arrivals:
    """Simulate when each rank comes to each collective; the last rank is the slower one."""
    factors = scenario.noise(draw, (scenario.ranks, scenario.steps))
    factors[-1] += slower
    # How a step's work lies between its collectives differs from step to step.
    shares = draw.dirichlet(np.full(scenario.collectives, 20.0), scenario.steps)
    work = STEP_SECONDS * factors[:, :, None] * shares[None]
    work = work.reshape(scenario.ranks, -1)
    begins = np.concatenate([[0.0], np.cumsum(work.max(axis=0) + TRANSFER_SECONDS)])
    arrived = begins[:-1] + work
    orders = [["all_reduce"] * work.shape[1]] * scenario.ranks
    return compare_arrivals(orders, arrived.tolist(), scenario.steps, begins[-1] / scenario.steps)


def count_named(scenario: Scenario, slower: float, runs: int, seed: int) -> tuple[int, int]:
    """Return in how many runs the last rank was named, and in how many another one."""
    draw = np.random.default_rng(seed)
    named = [
        find_slowest([simulate_repetition(draw, scenario, slower) for _ in range(scenario.repetitions)])[0]
        for _ in range(runs)
    ]
    right = named.count(scenario.ranks - 1)
    return right, sum(rank is not None for rank in named) - right


def judge_scenario(scenario: Scenario, runs: int) -> list[str]:
    """Return the table's row: per 100 runs, with the 5 % slower rank and without."""
    right, wrong = count_named(scenario, SLOWER, runs, 1)
    false = sum(count_named(scenario, 0.0, runs, 2))
    per_hundred = [100 * number / runs for number in (right, wrong, false)]
    reached = per_hundred[0] >= NAMED_AT_LEAST and max(per_hundred[1:]) <= FALSE_AT_MOST
    return [scenario.name, *(f"{number:.1f}" for number in per_hundred), "reached" if reached else "MISSED"]


def format_table(rows: list[list[str]]) -> str:
    """Return the table in Markdown."""
    heads = ["noise", "named", "another named", "named though all are alike", ""]
    lines = [heads, ["---", "---:", "---:", "---:", "---"], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    """Print the table, or write it into this folder's README.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.stragglers", description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="of each kind, with and without a slow rank")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    arguments = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(judge_scenario, SCENARIOS, [arguments.runs] * len(SCENARIOS)))
    print(align_columns([["noise", "named", "another", "false", ""], *rows]))
    if arguments.write:
        table = format_table(rows)
        README.write_text(PART.sub(lambda found: found[1] + table + found[2], README.read_text()))


if __name__ == "__main__":
    main()
