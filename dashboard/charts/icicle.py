"""A profile's stacks as an icicle: the outermost function on top, each as wide as what it cost.

Laid out here and drawn by a template as SVG, so that it needs no script; the size is bounded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MOST_BLOCKS = 600
MOST_ROWS = 44
# Narrower blocks can't be hit; the tables have them.
LEAST_SHARE = 0.0015
ROW_HEIGHT = 21
# Of the width: what has room for a name, on a wide page and on a phone.
LABELLED, LABELLED_ON_PHONE = 0.03, 0.12
GREY, MIXED = -1, -2


@dataclass(frozen=True, slots=True)
class Stack:
    """Frames, outermost first; `own` seconds and `calls` per step of the last one; `hue` of its phase."""

    frames: Sequence[str]
    own: float
    calls: float
    hue: int = GREY


@dataclass(slots=True)
class Frame:
    """A function as called from the frames above it.

    `number` counts the frames of the whole tree from 0, callers before callees; `size` those in and below it.
    """

    name: str
    above: Frame | None = None
    own: float = 0.0
    calls: float = 0.0
    total: float = 0.0
    total_calls: float = 0.0
    hue: int | None = None
    number: int = 0
    size: int = 1
    below: dict[str, Frame] = field(default_factory=dict)

    def children(self, by_calls: bool) -> list[Frame]:
        """The widest first."""
        frames = list(self.below.values())
        if len(frames) > 1:
            frames.sort(key=lambda frame: (-frame.width(by_calls), frame.name))
        return frames

    def holds(self, number: int) -> bool:
        """Whether the frame of that number is this one or lies below it."""
        return self.number <= number < self.number + self.size

    def width(self, by_calls: bool) -> float:
        return self.total_calls if by_calls else self.total

    def ancestors(self) -> list[Frame]:
        """From the whole to the frame above this one."""
        frames: list[Frame] = []
        frame = self.above
        while frame:
            frames.append(frame)
            frame = frame.above
        return frames[::-1]


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle: `x` and `width` in per cent of the drawing, `y` in pixels, `share` of the whole step."""

    frame: Frame
    x: float
    width: float
    y: int
    share: float

    @property
    def size(self) -> str:
        """Which names fit: `wide` everywhere, `middle` not on a phone, `narrow` nowhere."""
        share = self.width / 100
        return "wide" if share >= LABELLED_ON_PHONE else "middle" if share >= LABELLED else "narrow"

    @property
    def colour(self) -> str:
        hue = self.frame.hue
        return f"hue-{hue + 1}" if hue is not None and hue >= 0 else "grey"

    @property
    def label(self) -> str:
        """The function without its file, which the title has."""
        return self.frame.name.rpartition(" ")[0] or self.frame.name


@dataclass(frozen=True, slots=True)
class Icicle:
    """What is drawn of `frame` and all below it; `left_out` frames were too narrow, too deep or too many."""

    blocks: list[Block]
    height: int
    left_out: int


def build_call_tree(stacks: Iterable[Stack]) -> Frame:
    """All stacks below one frame that has no name; equal stacks are summed."""
    whole = Frame("")
    for stack in stacks:
        frame = whole
        _add_stack(frame, stack)
        for name in stack.frames:
            frame = frame.below.setdefault(name, Frame(name, frame))
            _add_stack(frame, stack)
        frame.own += stack.own
        frame.calls += stack.calls
    order = list(_walk_frames(whole))
    for number, frame in enumerate(order):
        frame.number = number
    for frame in reversed(order):
        if frame.above:
            frame.above.size += frame.size
    return whole


def _add_stack(frame: Frame, stack: Stack) -> None:
    frame.total += stack.own
    frame.total_calls += stack.calls
    frame.hue = stack.hue if frame.hue in (None, stack.hue) else MIXED


def _walk_frames(whole: Frame) -> Iterable[Frame]:
    waiting = [whole]
    while waiting:
        frame = waiting.pop()
        yield frame
        waiting.extend(reversed(frame.children(by_calls=False)))


def find_frame(whole: Frame, number: int) -> Frame:
    """The frame of that number; the whole where there is none."""
    frame = whole
    while frame.number != number:
        child = next((child for child in frame.below.values() if child.holds(number)), None)
        if child is None:
            return whole
        frame = child
    return frame


def layout_icicle(
    frame: Frame, whole: Frame, by_calls: bool = False, most_blocks: int = MOST_BLOCKS
) -> Icicle:
    """Blocks of `frame` over the full width and of what is below it, the widest of them."""
    whole_width, shown_width = whole.width(by_calls), frame.width(by_calls)
    if shown_width <= 0:
        return Icicle([], 0, 0)
    blocks: list[Block] = []
    waiting: list[tuple[float, int, int, float, Frame]] = [(-shown_width, frame.number, 0, 0.0, frame)]
    while waiting and len(blocks) < most_blocks:
        _, _, row, start, widest = heapq.heappop(waiting)
        width = widest.width(by_calls)
        x, extent = round(100 * start / shown_width, 3), round(100 * width / shown_width, 3)
        blocks.append(Block(widest, x, extent, row * ROW_HEIGHT, width / whole_width))
        for child in widest.children(by_calls) if row + 1 < MOST_ROWS else ():
            child_width = child.width(by_calls)
            if child_width >= LEAST_SHARE * shown_width:
                # The widest comes next, so what is left out is always narrower than what is drawn.
                heapq.heappush(waiting, (-child_width, child.number, row + 1, start, child))
            start += child_width
    blocks.sort(key=lambda block: (block.y, block.x))
    rows = max(block.y for block in blocks) // ROW_HEIGHT + 1
    return Icicle(blocks, rows * ROW_HEIGHT, frame.size - len(blocks))


@dataclass(slots=True)
class FunctionCost:
    """A function wherever it was called: `own` and `total` seconds and `calls` per step."""

    name: str
    own: float = 0.0
    total: float = 0.0
    calls: float = 0.0


def sum_function_costs(frame: Frame) -> list[FunctionCost]:
    """Every function in or below `frame`, the most expensive first; recursion is counted once."""
    by_name: dict[str, FunctionCost] = {}
    # How often each function is on the stack at the moment.
    entered: dict[str, int] = {}
    # A frame comes twice: to be entered, and after all below it to be left.
    waiting: list[tuple[Frame, bool]] = [(frame, True)]
    while waiting:
        current, enter = waiting.pop()
        name = current.name
        if not enter:
            entered[name] -= 1
            continue
        cost = by_name.setdefault(name, FunctionCost(name))
        cost.own += current.own
        cost.calls += current.calls
        cost.total += 0.0 if entered.get(name) else current.total
        entered[name] = entered.get(name, 0) + 1
        waiting.append((current, False))
        waiting += [(child, True) for child in current.below.values()]
    by_name.pop("", None)
    return sorted(by_name.values(), key=lambda cost: (-cost.own, cost.name))
