"""What became of changes, counted."""

from __future__ import annotations

from bench.detection.stability import Stability, known_starts, pair_changes
from tests.detection.builders import plain_series, step_levels
from tests.detection.test_identity import CHANGE, moved_change


def test_pairs_are_the_nearest_and_never_cross():
    near, far = moved_change(1), moved_change(20)
    assert pair_changes([CHANGE, far], [near]) == [(CHANGE, near), (far, None)]
    assert pair_changes([CHANGE], [moved_change(-9), near]) == [(None, moved_change(-9)), (CHANGE, near)]
    assert pair_changes([], []) == []


def test_stability_counts_what_became_of_reports():
    total = Stability()
    total.add_history(iter([[], [CHANGE], [moved_change(1)], [], [CHANGE]]))
    assert (total.reported, total.moved, total.vanished) == (2, 1, 1)


def test_what_the_site_knows_is_what_was_found():
    assert known_starts(plain_series(step_levels(10, 10, 1.3))) == [10]
