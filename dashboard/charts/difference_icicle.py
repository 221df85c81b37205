"""The difference of two profiles as an icicle: each frame as wide as its larger side, coloured by what moved.

So a frame that is gone is still seen, and one that is new has its width from the head.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.charts.icicle import (
    Block,
    Frame,
    Stack,
    build_call_tree,
    find_frame,
    layout_icicle,
)
from dashboard.comparisons.profile_rows import StackPair

# A page has a budget of bytes: the widest are drawn, the tables have the rest.
MOST_BLOCKS = 140
# Of what a whole step takes: what moved by less keeps its grey.
LEAST_MOVED, MUCH_MOVED = 0.005, 0.05

# Pixels: of a letter, and of the drawing on a desktop.
LETTER_WIDTH, WIDE = 7.0, 1100
ALL = "all functions"

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DifferenceBlock:
    """A frame of both sides: what it took with all below it, per step, seconds or calls."""

    block: Block
    base: float
    head: float
    whole: float

    @property
    def moved(self) -> float:
        return self.head - self.base

    @property
    def colour(self) -> str:
        share = abs(self.moved) / self.whole if self.whole else 0.0
        if share < LEAST_MOVED:
            return "same"
        return f"{'much-' if share >= MUCH_MOVED else ''}{'more' if self.moved > 0 else 'less'}"

    @property
    def what(self) -> str:
        """`new`, `gone`, or empty."""
        return "new" if not self.base else "gone" if not self.head else ""

    @property
    def label(self) -> str:
        """The function, with what became of it where a wide page has room for both."""
        named = f"{self.block.label or ALL} ({self.what})"
        fits = len(named) * LETTER_WIDTH <= self.block.width / 100 * WIDE
        return named if self.what and fits else self.block.label or ALL


@dataclass(frozen=True, slots=True)
class DifferenceIcicle:
    blocks: Sequence[DifferenceBlock]
    height: int
    left_out: int
    frame: Frame
    above: Sequence[Frame]
    by_calls: bool


def draw_difference(stacks: Sequence[StackPair], number: int, *, by_calls: bool) -> DifferenceIcicle | None:
    """The frame of that number and what is below it; None without stacks on both sides."""
    if not stacks:
        return None
    whole = build_call_tree(
        Stack(pair.frames, max(pair.base[0], pair.head[0]), max(pair.base[1], pair.head[1]))
        for pair in stacks
    )
    by_calls = by_calls or not whole.total
    frame = find_frame(whole, number)
    drawn = layout_icicle(frame, whole, by_calls, MOST_BLOCKS)
    sums = _sum_paths(stacks, 1 if by_calls else 0)
    total = max(sums[()])
    blocks = [DifferenceBlock(block, *sums[_path_of(block.frame)], total) for block in drawn.blocks]
    return DifferenceIcicle(blocks, drawn.height, drawn.left_out, frame, frame.ancestors(), by_calls)


def _path_of(frame: Frame) -> Path:
    return tuple(above.name for above in (*frame.ancestors(), frame) if above.above)


def _sum_paths(stacks: Iterable[StackPair], column: int) -> dict[Path, tuple[float, float]]:
    """Of each frame, by the names from the outermost on, what both sides took in it and below."""
    sums: defaultdict[Path, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for pair in stacks:
        for depth in range(len(pair.frames) + 1):
            path = pair.frames[:depth]
            base, head = sums[path]
            sums[path] = base + pair.base[column], head + pair.head[column]
    return sums
