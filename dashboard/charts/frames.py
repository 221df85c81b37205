"""A profile's stacks as an icicle: the outermost function on top, each as wide as what it cost.

Laid out here and drawn by a template as SVG, so that it needs no script; the size is bounded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MOST = 600
MOST_ROWS = 44
# Narrower blocks can't be hit; the tables have them.
LEAST_SHARE = 0.0015
ROW = 21
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
        found = list(self.below.values())
        if len(found) > 1:
            found.sort(key=lambda frame: (-frame.width(by_calls), frame.name))
        return found

    def width(self, by_calls: bool) -> float:
        return self.total_calls if by_calls else self.total

    def way(self) -> list[Frame]:
        """From the whole to the frame above this one."""
        found: list[Frame] = []
        frame = self.above
        while frame:
            found.append(frame)
            frame = frame.above
        return found[::-1]


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
        here = self.width / 100
        return "wide" if here >= LABELLED_ON_PHONE else "middle" if here >= LABELLED else "narrow"

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


def tree(stacks: Iterable[Stack]) -> Frame:
    """All stacks below one frame that has no name; equal stacks are summed."""
    whole = Frame("")
    for stack in stacks:
        frame = whole
        _add(frame, stack)
        for name in stack.frames:
            frame = frame.below.setdefault(name, Frame(name, frame))
            _add(frame, stack)
        frame.own += stack.own
        frame.calls += stack.calls
    order = list(_walk(whole))
    for number, frame in enumerate(order):
        frame.number = number
    for frame in reversed(order):
        if frame.above:
            frame.above.size += frame.size
    return whole


def _add(frame: Frame, stack: Stack) -> None:
    frame.total += stack.own
    frame.total_calls += stack.calls
    frame.hue = stack.hue if frame.hue in (None, stack.hue) else MIXED


def _walk(frame: Frame) -> Iterable[Frame]:
    waiting = [frame]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(found.children(by_calls=False)))


def find(whole: Frame, number: int) -> Frame:
    """The frame of that number; the whole where there is none."""
    frame = whole
    while frame.number != number:
        inside = (one for one in frame.below.values() if one.number <= number < one.number + one.size)
        below = next(inside, None)
        if below is None:
            return whole
        frame = below
    return frame


def icicle(frame: Frame, whole: Frame, by_calls: bool = False) -> Icicle:
    """Blocks of `frame` over the full width and of what is below it, the widest MOST of them."""
    all_, here = whole.width(by_calls), frame.width(by_calls)
    if here <= 0:
        return Icicle([], 0, 0)
    blocks: list[Block] = []
    waiting: list[tuple[float, int, int, float, Frame]] = [(-here, frame.number, 0, 0.0, frame)]
    while waiting and len(blocks) < MOST:
        _, _, row, start, found = heapq.heappop(waiting)
        width = found.width(by_calls)
        blocks.append(
            Block(found, round(100 * start / here, 3), round(100 * width / here, 3), row * ROW, width / all_)
        )
        for child in found.children(by_calls) if row + 1 < MOST_ROWS else ():
            size = child.width(by_calls)
            if size >= LEAST_SHARE * here:
                # Whoever is widest comes next, so what is left out is always narrower than what is drawn.
                heapq.heappush(waiting, (-size, child.number, row + 1, start, child))
            start += size
    blocks.sort(key=lambda block: (block.y, block.x))
    rows = max(block.y for block in blocks) // ROW + 1
    return Icicle(blocks, rows * ROW, frame.size - len(blocks))


@dataclass(slots=True)
class Cost:
    """A function wherever it was called: `own` and `total` seconds and `calls` per step."""

    name: str
    own: float = 0.0
    total: float = 0.0
    calls: float = 0.0


def costs(frame: Frame) -> list[Cost]:
    """Every function in or below `frame`, the most expensive first; recursion is counted once."""
    found: dict[str, Cost] = {}
    open_: dict[str, int] = {}
    # A frame comes twice: to be entered, and after all below it to be left.
    waiting: list[tuple[Frame, bool]] = [(frame, True)]
    while waiting:
        here, enter = waiting.pop()
        if not enter:
            open_[here.name] -= 1
            continue
        cost = found.setdefault(here.name, Cost(here.name))
        cost.own += here.own
        cost.calls += here.calls
        cost.total += 0.0 if open_.get(here.name) else here.total
        open_[here.name] = open_.get(here.name, 0) + 1
        waiting.append((here, False))
        waiting += [(child, True) for child in here.below.values()]
    found.pop("", None)
    return sorted(found.values(), key=lambda cost: (-cost.own, cost.name))
