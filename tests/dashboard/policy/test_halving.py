from __future__ import annotations

from itertools import pairwise

import pytest

from dashboard.policy.halving import halving_order


@pytest.mark.parametrize(
    ("waiting", "measured", "order"),
    [
        (range(1, 8), [0, 8], [4, 6, 2, 7, 5, 3, 1]),
        ([], [3], []),
        ([5], [], [5]),
        ([1, 2, 9], [5], [9, 2, 1]),
        ([3, 4], [4], [4, 3]),
    ],
)
def test_the_largest_gap_is_halved_first(waiting: list[int], measured: list[int], order: list[int]) -> None:
    assert halving_order(waiting, measured) == order


def test_each_position_comes_once_and_gaps_shrink() -> None:
    order = halving_order(range(1, 1000), [0, 1000])
    assert sorted(order) == list(range(1, 1000))
    known = sorted([0, 1000, *order[:63]])
    assert max(after - before for before, after in pairwise(known)) <= 17
