"""Several commits that detection sees as one step: pairs name each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from dashboard.regressions.decision.facts import Change, Series
from dashboard.regressions.decision.ranges import Range
from tests.dashboard.regressions.decision.builders import make_change, make_series
from tests.dashboard.regressions.decision.simulated_project import Planted, SimulatedProject

TIME = make_series("step_time")
# Every so many commits one is measured: the step lies between 24 and 36.
EVERY = 12


def named_commits(*places: int) -> list[tuple[str, int, int]]:
    """What is told once a history was measured in which each of these commits takes 8 % more."""
    project = SimulatedProject(60, [Planted(TIME, place, 1.08) for place in places])
    for position in range(0, project.count, EVERY):
        project.measure(position)
        project.answer_all()
    standing = [row for row in project.regressions.values() if not row.withdrawn]
    return sorted((row.state, row.last_good.position, row.first_bad.position) for row in standing)


@pytest.mark.parametrize(
    "places", [(27, 33), (25, 26), (27, 30, 33), (25, 26, 27), (25, 34, 35), (26, 27, 35), (25, 29, 36)]
)
def test_each_part_of_a_step_is_named(places: tuple[int, ...]) -> None:
    assert named_commits(*places) == [("confirmed", place - 1, place) for place in places]


@dataclass
class OneChange(SimulatedProject):
    """Whatever lies between two levels is one step to detection, at one place."""

    place: int = 0

    def steps_of_series(self, series: Series) -> Iterator[Change]:
        if self.count - 1 in self.measured:
            change = make_change(series, self.place - 1, self.place, self.level(series, self.count - 1))
            yield replace(change, pk=None, reach=Range(self.place - 2, self.place + 1))


def told_of_one_change(place: int, *steps: tuple[int, float]) -> OneChange:
    """A history of which each commit is measured, and one step is seen, once all is answered."""
    project = OneChange(20, [Planted(TIME, at, factor) for at, factor in steps], place=place)
    project.measured = set(range(19))
    project.measure(19)
    project.answer_all()
    return project


def confirmed_commits(project: SimulatedProject) -> list[int]:
    rows = (row for row in project.regressions.values() if not row.withdrawn and row.state == "confirmed")
    return sorted(row.first_bad.position for row in rows)


@pytest.mark.parametrize("place", [8, 9, 10])
@pytest.mark.parametrize("factors", [(1.05, 1.04, 1.05), (1.04, 1.05, 1.04), (1.05, 1.05, 1.05)])
def test_each_of_three_neighbours_is_told_wherever_the_step_is_seen(
    place: int, factors: tuple[float, ...]
) -> None:
    steps = tuple(zip((8, 9, 10), factors, strict=True))
    assert confirmed_commits(told_of_one_change(place, *steps)) == [8, 9, 10]


@pytest.mark.parametrize("place", [6, 8, 10])
def test_quiet_commits_between_causes_hide_none(place: int) -> None:
    assert confirmed_commits(told_of_one_change(place, (6, 1.05), (8, 1.05), (10, 1.05))) == [6, 8, 10]


def test_a_second_side_is_asked_once_the_first_is_settled() -> None:
    project = OneChange(20, [Planted(TIME, at, 1.05) for at in (8, 9, 10)], place=9)
    project.measured = set(range(19))
    project.measure(19)
    ranges = []
    while project.asked:
        ((key, asked),) = project.asked.items()
        ranges.append((asked.wanted.base.position, asked.wanted.head.position))
        project.answer_experiment(key)
    assert ranges == [(8, 9), (9, 10), (7, 8)]


def test_two_causes_are_asked_for_on_one_side_alone() -> None:
    project = told_of_one_change(9, (9, 1.05), (10, 1.05))
    assert [(wanted.base.position, wanted.head.position) for _, wanted in project.proofs] == [(8, 9), (9, 10)]
