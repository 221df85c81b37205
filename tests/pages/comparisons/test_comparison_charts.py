"""Forest plots and the difference of two profiles, as they are laid out."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.charts.difference_icicle import draw_difference
from dashboard.charts.forest import ForestAxis
from dashboard.comparisons.phase_rows import pair_phases
from dashboard.comparisons.profile_rows import StackPair, differing_rows
from dashboard.experiments.paired_functions import listed_costs
from dashboard.pages.comparisons.phases import PhaseComparison, drawn_comparison


def test_an_axis_holds_all_ratios_and_no_difference() -> None:
    axis = ForestAxis.of_ratios([1.1, 1.38, 2.2])
    row = axis.place_row(1.38, 1.1, 2.2)
    assert 0 < axis.position(1.0) < row.start < row.x < row.end < 100
    assert not row.is_beyond
    assert [tick.label for tick in axis.ticks()] == ["0", "+100 %"]


def test_what_lies_far_off_is_drawn_at_the_edge() -> None:
    axis = ForestAxis.of_ratios([1000.0, 0.9])
    row = axis.place_row(1000.0, 900.0, 1100.0)
    assert row.is_beyond
    assert row.x == row.end == 97
    assert axis.place_row(0.0, None, None).is_beyond


def test_noise_does_not_fill_the_axis() -> None:
    axis = ForestAxis.of_ratios([1.001])
    assert axis.position(1.001) - axis.position(1.0) < 3


STACKS = [
    StackPair(("train", "push"), (0.0, 0.0), (3.0, 256.0)),
    StackPair(("train", "draw"), (2.0, 1.0), (0.0, 0.0)),
    StackPair(("train", "act"), (5.0, 1.0), (5.01, 1.0)),
]


def test_a_frame_is_as_wide_as_its_larger_side() -> None:
    drawn = draw_difference(STACKS, 0, by_calls=False)
    assert drawn is not None
    blocks = {shown.block.frame.name: shown for shown in drawn.blocks}
    assert {name: shown.colour for name, shown in blocks.items()} == {
        "": "much-more", "train": "much-more", "push": "much-more", "draw": "much-less", "act": "same",
    }  # fmt: skip
    assert [blocks[name].label for name in ("", "draw", "act")] == ["all functions", "draw (gone)", "act"]
    assert (blocks["push"].what, blocks["draw"].what, blocks["act"].what) == ("new", "gone", "")
    assert blocks["draw"].block.width == pytest.approx(100 * 2 / 10.01, abs=0.01)
    by_calls = draw_difference(STACKS, 0, by_calls=True)
    assert by_calls is not None
    assert max(shown.head for shown in by_calls.blocks) == 257


def test_what_is_called_as_often_is_told_where_much_of_all_moved() -> None:
    before = {("f", "a.py"): (1.0, 1.0), ("g", "a.py"): (1.0, 1.0), ("h", "a.py"): (2.0, 0.5)}
    after = {("f", "a.py"): (1.0, 3.0), ("g", "a.py"): (1.0, 1.01), ("k", "a.py"): (2.0, 0.5)}
    rows = differing_rows(before, after)
    assert [(row.name, row.what) for row in rows] == [("h", "gone"), ("k", "new"), ("f", "slower")]


def test_a_phase_has_the_share_of_the_whole_that_its_regression_tells() -> None:
    """Of what peak memory grew by the phases saw a part."""
    before, after = {"learn": 10e6, "act": 5e6}, {"learn": 60e6, "act": 5e6}
    shown = drawn_comparison(PhaseComparison(before, after, "bytes", "", whole=100e6))
    assert [(row["path"], row["share"]) for row in shown["phase_rows"]] == [("learn", 0.5), ("act", 0.0)]
    assert (shown["phase_unit"], shown["phase_counted"]) == ("bytes", "")


def test_the_name_of_a_count_stands_once_and_not_in_each_cell() -> None:
    shown = drawn_comparison(PhaseComparison({"learn": 17.0}, {"learn": 269.0}, "operations/step", ""))
    assert (shown["phase_unit"], shown["phase_counted"]) == ("1", "operations/step")


def test_parts_that_cancel_each_other_have_no_share() -> None:
    base, head = {"learn": 0.010, "act": 0.010}, {"learn": 0.012, "act": 0.0081}
    assert [row.share for row in pair_phases(base, head)] == [None, None]
    shown = drawn_comparison(PhaseComparison(base, head, "s", ""))
    assert [row["share"] for row in shown["phase_rows"]] == [None, None]
    assert [row.share for row in pair_phases({"learn": 0.010}, {"learn": 0.012})] == [1.0]


def test_a_function_that_one_side_may_not_list_is_neither_new_nor_gone() -> None:
    def cost(name: str, calls: float, own: float) -> dict[str, Any]:
        return {"function": name, "file": "a.py", "calls": calls, "self": own}

    listed = [cost(str(number), 1, number) for number in range(1, 9)]
    base = {"functions": listed, "rest": {"functions": 3, "calls": 5}}
    head = {**base, "functions": [*listed, cost("light", 2, 0.5), cost("heavy", 2, 7), cost("often", 9, 0.5)]}
    for few, many in (listed_costs(base, head), reversed(listed_costs(head, base))):
        assert {name for name, _ in many.keys() - few.keys()} == {"heavy", "often"}
