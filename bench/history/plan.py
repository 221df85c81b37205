"""How much history, how it is spread over projects, cases and commits, and where its steps are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# Of a case's runs, those on side branches.
BRANCH_SHARE = 0.05
BRANCHES = 2
LEAST_SERIES, LEAST_COMMITS = 12, 40
# Commits at both ends of a history that hold no step, and how many steps are repaired.
FREE_AT_ENDS, REPAIRED_SHARE = 10, 0.55


class PlanError(Exception):
    """The sizes don't fit each other; the message says which and why."""


@dataclass(frozen=True, slots=True)
class HistoryPlan:
    """What is made; each run leaves a point in every series of its case."""

    series: int = 5_000
    points: int = 2_000_000
    runs: int = 20_000
    regressions: int = 500
    projects: int = 5
    documents: int = 100
    seed: int = 1

    @property
    def series_per_case(self) -> int:
        return self.points // self.runs

    @property
    def cases_per_project(self) -> int:
        return max(1, round(self.series / self.series_per_case / self.projects))

    @property
    def runs_per_case(self) -> int:
        return self.runs // (self.cases_per_project * self.projects)

    @property
    def commits_of_branch(self) -> int:
        """On each side branch."""
        return max(1, round(self.runs_per_case * BRANCH_SHARE / BRANCHES))

    @property
    def commits(self) -> int:
        """On the branch of each project."""
        return self.runs_per_case - BRANCHES * self.commits_of_branch

    def regressions_of(self, project: int) -> int:
        """How many the project of that number gets."""
        return self.regressions // self.projects + (project < self.regressions % self.projects)

    def check_sizes(self) -> None:
        if self.runs < 1 or self.series_per_case < LEAST_SERIES:
            left = self.points // max(self.runs, 1)
            raise PlanError(f"points: each run leaves {left}; it has to be at least {LEAST_SERIES}.")
        if self.commits < LEAST_COMMITS:
            raise PlanError(
                f"runs: they make {self.commits} commits a case; it has to be at least {LEAST_COMMITS}."
            )
        if 2 * self.regressions_of(0) > self.commits - 20:
            raise PlanError(
                f"regressions: {self.regressions_of(0)} don't fit into {self.commits} commits of a project."
            )

    def describe_parts(self) -> Iterator[str]:
        yield f"{self.projects} projects of {self.commits:,} commits"
        yield f"{self.cases_per_project} cases each, {self.series_per_case} series a case"
        yield f"{self.runs:,} runs, {self.runs * self.series_per_case:,} points"
        yield f"{self.regressions} regressions"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """In the case of that number the step takes `factor` times as long from `position` on.

    `repairs` is the position of the regression that it takes back.
    """

    case: int
    position: int
    factor: float
    repairs: int | None = None


def plan_steps(count: int, commits: int, cases: int, random: np.random.Generator) -> list[PlannedStep]:
    """`count` regressions at commits of their own, in order, some of them repaired soon after."""
    spacing = (commits - 2 * FREE_AT_ENDS) / max(1, count)
    places = [FREE_AT_ENDS + int(spacing * number) for number in range(count)]
    steps = []
    for number, place in enumerate(places):
        case, factor = number % cases, float(np.exp(random.uniform(0.06, 0.6)))
        steps.append(PlannedStep(case, place, factor))
        repaired_at = place + max(1, int(spacing * cases / 2))
        if random.random() < REPAIRED_SHARE and repaired_at < commits - FREE_AT_ENDS:
            steps.append(PlannedStep(case, repaired_at, 1 / factor, repairs=place))
    return sorted(steps, key=lambda step: step.position)
