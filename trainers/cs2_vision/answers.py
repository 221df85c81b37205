"""What the agent makes of the service's texts."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from typing import NamedTuple

import paceline

Target = tuple[float, float, float]
"""An enemy's middle, x and y, and its height, in pixels."""


class ScreenState(NamedTuple):
    """An answer: kind of screen, the enemy, health and ammunition in per cent, whether a hit is noted."""

    kind: str
    target: Target | None
    health: float
    ammo: float
    killed: bool


NOTHING = ScreenState("loading", None, 0, 0, killed=False)
"""Before the first answer."""

NEAR = 4.0
"""Pixels."""

POSITION = re.compile(r"x = (-?[\d.]+) px, y = (-?[\d.]+) px, height = (-?[\d.]+) px")


def from_words(text: str) -> ScreenState:
    """Read an answer in sentences."""
    answer = json.loads(text)
    target = None
    for thing in answer["objects"]:
        found = POSITION.fullmatch(thing["position"])
        target = (float(found[1]), float(found[2]), float(found[3])) if found else None
    display = {part["element"]: part["text"] for part in answer["display"]}
    return ScreenState(
        answer["interface"]["screen"],
        target,
        float(display["health"].split()[0]),
        float(display["ammunition"].split()[0]),
        killed=display["notice of a hit"] == "shown",
    )


def from_list(text: str) -> ScreenState:
    """Read a compact answer."""
    kind, target, health, ammo, killed = json.loads(text)
    x, y, height = target or (0, 0, 0)
    place = (float(x), float(y), float(height)) if target else None
    return ScreenState(kind, place, float(health), float(ammo), killed=bool(killed))


class Parser:
    """Parses answers; with `similar` those that it has not parsed before."""

    ROOM = 4096

    def __init__(self, *, compact: bool, similar: bool) -> None:
        self.read = from_list if compact else from_words
        self.similar = similar
        self.known: OrderedDict[str, ScreenState] = OrderedDict()

    def parse(self, text: str) -> ScreenState:
        """The answer that the text is."""
        if not self.similar:
            paceline.count("parsed")
            return self.read(text)
        seen = self.known.get(text)
        if seen is None:
            paceline.count("parsed")
            seen = self.known[text] = self.read(text)
            if len(self.known) > self.ROOM:
                self.known.popitem(last=False)
        return seen

    def alike(self, answer: str, other: str) -> bool:
        """Whether two answers say nearly the same: places at most NEAR pixels apart."""
        first, second = self.parse(answer), self.parse(other)
        if first.target is None or second.target is None:
            return first == second
        near = all(abs(a - b) <= NEAR for a, b in zip(first.target, second.target, strict=True))
        return near and first._replace(target=None) == second._replace(target=None)
