"""What phases add to detection: `python -m bench.detection.planted_parts [--histories N] [--write]`.

Steps of 1, 2 and 3 % of the whole in a phase that is 5, 10 and 30 % of it, and histories without any: found,
after how many commits, and how many false suspicions a project of 30 cases of 8 phases gets in 100 commits.
Histories are judged after each commit, as a site does, with what was found known. `--write` puts the tables
into docs/method/detection.md.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bench.detection.printing import print_published
from bench.detection.simulation import autoregressive_wander
from dashboard.detection import Change, FalseAlarmBudget, Point, Series, judge_series, steps_of_parts
from dashboard.detection.segmentation import Floats

PAGE = Path(__file__).parents[2] / "docs" / "method" / "detection.md"
PART = re.compile(r"(<!-- planted_parts:[^>]*-->\n).*?(<!-- end of planted_parts -->)", re.DOTALL)

CASES, COMMITS, REPETITIONS = 30, 100, 5
# The phases of a step and their shares of it; steps are planted into three of them.
SHARES = {
    "update": 0.30,
    "env": 0.25,
    "act": 0.15,
    "sample": 0.10,
    "push": 0.07,
    "log": 0.05,
    "a": 0.05,
    "b": 0.03,
}
PLANTED = {0.05: "log", 0.10: "sample", 0.30: "update"}
STEPS = (0.01, 0.02, 0.03)
STEP_SECONDS = 0.010
KNOWN = 40  # commits before the first that is judged
AT, BEHIND = 80, 30  # where a step is planted, and within how many commits it is to be found
NEAR = 2  # commits from where it was planted


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """Deviations of logarithms: of runs and of the repetitions in one, of what all phases of a run share
    and of each phase's own; see `docs/method/detection.md` for the runs that they were read off.
    """

    shared: float
    wander: float
    own: float
    shared_repetition: float
    own_repetition: float
    burst_chance: float
    burst: tuple[float, float] = (0.05, 0.40)


NOISES = {
    "calm machine": NoiseModel(0.010, 0.005, 0.008, 0.008, 0.008, 0.02),
    "busy machine": NoiseModel(0.030, 0.015, 0.010, 0.020, 0.015, 0.08),
}


@dataclass(frozen=True, slots=True)
class History:
    """A step's time and that of its phases, commit by commit."""

    whole: Series
    parts: Mapping[str, Series]

    def until(self, end: int) -> History:
        return History(
            cut_series(self.whole, end), {name: cut_series(part, end) for name, part in self.parts.items()}
        )


def cut_series(series: Series, end: int) -> Series:
    return replace(series, points=series.points[:end])


def simulate_history(
    seed: int, noise: NoiseModel, commits: int, steps: Mapping[str, float] = {}, at: int = AT
) -> History:
    """A history in which phases take longer by these shares of the whole from commit `at` on."""
    rng = np.random.default_rng(seed)
    shape = (commits, REPETITIONS)
    run = noise.shared * 0.77 * rng.standard_t(5, commits) + autoregressive_wander(rng, commits, noise.wander)
    run += np.log1p(rng.uniform(*noise.burst, commits) * (rng.random(commits) < noise.burst_chance))
    shared = run[:, None] + noise.shared_repetition * np.abs(rng.standard_normal(shape))
    seconds: dict[str, Floats] = {}
    for name, share in SHARES.items():
        # Of a shorter phase fewer seconds are measured: relative to it, the noise is larger.
        own = noise.own * (0.1 / share) ** 0.5
        repetition = noise.own_repetition * (0.1 / share) ** 0.5
        slow = autoregressive_wander(rng, commits, own / 2)[:, None]
        deviations = (
            slow + own * 0.77 * rng.standard_t(5, commits)[:, None] + repetition * rng.standard_normal(shape)
        )
        level = np.full(commits, share)
        level[at:] += steps.get(name, 0.0)
        seconds[name] = np.asarray(STEP_SECONDS * level[:, None] * np.exp(shared + deviations))
    return History(
        make_series(np.sum(list(seconds.values()), axis=0)),
        {name: make_series(part) for name, part in seconds.items()},
    )


def make_series(repetitions: Floats) -> Series:
    points = [Point(float(np.median(row)), tuple(row.tolist())) for row in repetitions]
    return Series(points, "lower", "time")


# How a history is judged: the changes that are reported, by what was reported before.
Judge = Callable[[History, Sequence[int]], list[Change]]


def judge_whole(history: History, known: Sequence[int]) -> list[Change]:
    return judge_series(history.whole, known)


def judge_with_parts(history: History, known: Sequence[int]) -> list[Change]:
    """As the site does: every case has its part of what a commit may risk."""
    found = judge_series(history.whole, known)
    risk = FalseAlarmBudget().risk / CASES
    return [*found, *steps_of_parts(history.whole, history.parts, known, found, risk)]


JUDGES: dict[str, Judge] = {
    "the whole alone": judge_whole,
    "with phases": judge_with_parts,
}


@dataclass(slots=True)
class ReportedChanges:
    """What was reported of a growing history: at which commit, of which one, in which direction."""

    known: list[int] = field(default_factory=list)
    news: list[tuple[int, Change]] = field(default_factory=list)

    def look(self, judge: Judge, history: History) -> None:
        now = judge(history, self.known)
        fresh = [change for change in now if not any(abs(change.index - at) <= NEAR for at in self.known)]
        self.news += [(len(history.whole.points) - 1, change) for change in fresh]
        self.known = sorted({change.index for change in now})


def false_suspicions(seed: int, noise: NoiseModel, judge: Judge) -> int:
    """Of one case that never changes, in COMMITS commits: places at which a regression was reported."""
    history, reported = simulate_history(seed, noise, KNOWN + COMMITS), ReportedChanges()
    for end in range(KNOWN + 1, KNOWN + COMMITS + 1):
        reported.look(judge, history.until(end))
    return sum(change.direction == "regression" for _, change in reported.news)


def delay_of_step(seed: int, noise: NoiseModel, judge: Judge, steps: Mapping[str, float]) -> float:
    """How many commits with the step were measured when it was reported; infinite where it never was."""
    history, reported = simulate_history(seed, noise, AT + BEHIND, steps), ReportedChanges()
    reported.look(judge, history.until(AT))
    for end in range(AT + 1, AT + BEHIND + 1):
        reported.look(judge, history.until(end))
        if any(is_planted(change) for at, change in reported.news if at >= AT):
            return end - AT
    return float("inf")


def is_planted(change: Change) -> bool:
    """Whether the step may have started where it did, by its own range."""
    near = change.earliest - NEAR <= AT <= change.latest + NEAR
    return near and change.direction == "regression"


def found_table(noise: NoiseModel, histories: int) -> Iterator[str]:
    """Found and median delay by step and phase."""
    yield "| step, of the whole | phase, of the whole | " + " | ".join(JUDGES) + " |"
    yield "|---|---|" + "---|" * len(JUDGES)
    for step in STEPS:
        for share, name in PLANTED.items():
            cells = []
            for judge in JUDGES.values():
                delays = [delay_of_step(seed, noise, judge, {name: step}) for seed in range(histories)]
                met = sorted(delay for delay in delays if np.isfinite(delay))
                after = f", after {met[len(met) // 2]:.0f}" if met else ""
                cells.append(f"{len(met) / histories:.0%}{after}")
            yield f"| {step:.0%} | {share:.0%} | " + " | ".join(cells) + " |"


def false_table(noise: NoiseModel, projects: int) -> Iterator[str]:
    yield "| | false suspicions per 100 commits |"
    yield "|---|---|"
    for name, judge in JUDGES.items():
        counts = [false_suspicions(1000 + seed, noise, judge) for seed in range(projects * CASES)]
        yield f"| {name} | {sum(counts) / projects:.1f} |"


def moves_table(noise: NoiseModel, histories: int) -> Iterator[str]:
    """What becomes of work that only moves from the phase of 30 % to the one of 5 %."""
    yield "| moved, of the whole | reported as a move, after | reported as a regression |"
    yield "|---|---|---|"
    for step in STEPS:
        moved, lost = [], 0
        for seed in range(histories):
            steps = {PLANTED[0.30]: -step, PLANTED[0.05]: step}
            history, reported = simulate_history(seed, noise, AT + BEHIND, steps), ReportedChanges()
            for end in range(AT, AT + BEHIND + 1):
                reported.look(judge_with_parts, history.until(end))
            near = [(at, change) for at, change in reported.news if abs(change.index - AT) <= NEAR]
            moved += [at - AT + 1 for at, change in near if change.direction == "moved"][:1]
            lost += any(change.direction == "regression" for _, change in near)
        after = f", {sorted(moved)[len(moved) // 2]}" if moved else ""
        yield f"| {step:.0%} | {len(moved) / histories:.0%}{after} | {lost / histories:.0%} |"


def result_lines(histories: int, projects: int) -> Iterator[str]:
    """All tables, each with its machine's noise above it."""
    for name, noise in NOISES.items():
        yield from ("", f"*A {name}*: found, and after how many commits (median).", "")
        yield from found_table(noise, histories)
        yield ""
        yield from false_table(noise, projects)
        yield ""
        yield from moves_table(noise, histories)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, and write them where they are published."""
    parser = argparse.ArgumentParser(description="Measure what phases add to detection.")
    parser.add_argument("--histories", type=int, default=8, help="for each step and phase")
    parser.add_argument("--projects", type=int, default=1, help=f"of {CASES} cases that never change")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args(arguments)
    print_published(result_lines(options.histories, options.projects), PAGE, PART, write=options.write)


if __name__ == "__main__":
    main()
