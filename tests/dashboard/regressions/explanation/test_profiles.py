"""Which run's profile stands for a level."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dashboard.models import Commit, Project
from dashboard.profile_tallies import profiled_seconds
from dashboard.regressions.explanation.profiles import profile_of_level
from tests.dashboard import factories


@pytest.fixture
def line(project: Project) -> list[Commit]:
    return factories.create_commits(project, 4)


def runs_of_level(line: list[Commit], *profiled: float | None, steps: Sequence[float] = ()) -> list[int]:
    """Runs of the newest commit and of those before it, whose profiled steps took so long; None: no profile.

    `steps`: what their measured ones took, if not 10 ms.
    """
    case, made = factories.create_case(line[0].project), []
    for place, took in enumerate(profiled):
        document = {"profile": None} if took is None else {}
        functions = [factories.profiled_function("sample", self=took)] if took else []
        values = {"step_time": steps[place] if steps else 0.010}
        commit = line[-1 - place]
        run = factories.store_measured_run(commit, case, values, functions=functions, document=document)
        made.append(run.pk)
    return made


def chosen_profile_seconds(runs: list[int]) -> float | None:
    found = profile_of_level(runs)
    return profiled_seconds(found) if found else None


@pytest.mark.parametrize(
    ("profiled", "wanted"),
    [
        ((0.0111, 0.0110, 0.0109), 0.0111),  # the nearest
        ((0.0165, 0.0110, 0.0109), 0.0110),  # the nearest that wasn't slowed
        ((0.0165, 0.0150, 0.0109), 0.0109),
        ((0.0165,), 0.0165),  # there is no other
        ((None, 0.0110), 0.0110),
        ((0.0165, 0.0164, 0.0163, 0.0109), 0.0165),  # so far away much may have changed
    ],
)
def test_the_nearest_undisturbed_profile_stands_for_its_level(
    line: list[Commit], profiled: tuple[float | None, ...], wanted: float
) -> None:
    assert chosen_profile_seconds(runs_of_level(line, *profiled)) == pytest.approx(wanted)


def test_a_run_that_was_slower_throughout_has_a_slower_profile(line: list[Commit]) -> None:
    assert chosen_profile_seconds(runs_of_level(line, 0.0165, 0.0110, steps=(0.015, 0.010))) == pytest.approx(
        0.0165
    )


def test_there_is_none_where_no_run_has_one(line: list[Commit]) -> None:
    assert chosen_profile_seconds(runs_of_level(line, None)) is None
    assert chosen_profile_seconds([]) is None
