"""Several commits that detection sees as one step: pairs name each."""

from __future__ import annotations

import pytest

from tests.dashboard.regressions.decision.builders import make_series
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
