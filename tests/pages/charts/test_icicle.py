"""Stacks -> blocks: where each one lies, and what is left out."""

from __future__ import annotations

import pytest

from dashboard.charts import icicle
from dashboard.charts.icicle import Stack

STACKS = [
    Stack(["main", "learn", "push"], 3.0, 1.0, hue=0),
    Stack(["main", "learn"], 1.0, 1.0, hue=0),
    Stack(["main", "act"], 4.0, 30.0, hue=1),
    Stack(["main"], 2.0, 0.0),
]


def blocks_by_name(number: int = 0, by_calls: bool = False) -> dict[str, icicle.Block]:
    whole = icicle.build_call_tree(STACKS)
    drawn = icicle.layout_icicle(icicle.find_frame(whole, number), whole, by_calls)
    return {block.frame.name: block for block in drawn.blocks}


def test_callees_lie_in_their_caller_the_widest_first() -> None:
    blocks = blocks_by_name()
    assert {name: (block.x, block.width, block.y) for name, block in blocks.items()} == {
        "": (0, 100, 0),
        "main": (0, 100, 21),
        "act": (0, 40, 42),
        "learn": (40, 40, 42),
        "push": (40, 30, 63),
    }


def test_calls_may_be_the_width() -> None:
    assert blocks_by_name(by_calls=True)["act"].width == pytest.approx(93.75)


def test_going_into_a_frame_keeps_its_share_of_all() -> None:
    learn = icicle.find_frame(icicle.build_call_tree(STACKS), 3)
    assert (learn.name, [frame.name for frame in learn.ancestors()]) == ("learn", ["", "main"])
    inside = blocks_by_name(3)
    assert set(inside) == {"learn", "push"}
    assert (inside["push"].width, inside["push"].share) == (75, 0.3)


def test_a_frame_that_is_not_there_is_the_whole() -> None:
    assert set(blocks_by_name(999)) == {"", "main", "act", "learn", "push"}


def test_a_colour_is_that_of_the_only_phase_below() -> None:
    colours = {name: block.colour for name, block in blocks_by_name().items()}
    assert colours == {"": "grey", "main": "grey", "act": "hue-2", "learn": "hue-1", "push": "hue-1"}


def test_a_large_profile_is_drawn_by_its_widest_frames() -> None:
    whole = icicle.build_call_tree(
        Stack([f"f{index}", *(f"g{index}.{depth}" for depth in range(60))], 1.0 + index, 1.0)
        for index in range(200)
    )
    drawn = icicle.layout_icicle(whole, whole)
    assert len(drawn.blocks) == icicle.MOST_BLOCKS
    assert drawn.height <= icicle.MOST_ROWS * icicle.ROW_HEIGHT
    assert drawn.left_out == 1 + 200 * 61 - icicle.MOST_BLOCKS


def test_recursion_counts_once() -> None:
    whole = icicle.build_call_tree([Stack(["walk", "walk", "walk"], 2.0, 1.0), Stack(["walk"], 1.0, 1.0)])
    (walk,) = icicle.sum_function_costs(whole)
    assert (walk.own, walk.total, walk.calls) == (3.0, 3.0, 2.0)


def test_nothing_measured_is_nothing_drawn() -> None:
    empty = icicle.build_call_tree([])
    assert icicle.layout_icicle(empty, empty).blocks == []
