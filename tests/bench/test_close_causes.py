"""Simulated histories of several causes, whose pairs are weighed as a site weighs them."""

from __future__ import annotations

from bench.detection.close_causes import Tally, simulate_history
from bench.detection.planted_causes import BEHIND, QUIET, Causes, Noise

CALM = Noise(0.002, 0.002)


def test_one_large_cause_is_told_by_one_experiment() -> None:
    project = simulate_history(Causes((20,)), CALM, seed=1)
    tally = Tally()
    tally.add(project, [QUIET])
    assert project.confirmed_ranges() == [(QUIET - 1, QUIET)]
    assert (tally.found, tally.all_found, tally.wide, tally.false) == (1, 1, 0, 0)
    assert tally.cells() == ["100.0", "100.0", "0.0", "0.0", "1.0", f"{project.pairs_measured:.1f}"]


def test_a_slower_machine_shows_in_points_and_not_in_pairs() -> None:
    project = simulate_history(Causes((0,), machine=20), CALM, seed=1)
    assert project.points[QUIET].value > 1.15 > project.points[QUIET - 1].value
    assert [verdict.verdict for verdict in project.verdicts][:1] == ["refuted"]
    assert project.confirmed_ranges() == []


def test_late_experiments_are_answered_so_many_commits_later() -> None:
    project = simulate_history(Causes((20,)), Noise(0.002, 0.002, late=5), seed=1)
    (asked,), (ended,) = project.asked_at.values(), project.ended_at.values()
    assert ended - asked == 5
    assert project.count == QUIET + BEHIND
