"""What the agent makes of the service's texts."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import paceline

Place = tuple[float, float]
"""x and y in pixels; y counts from the field's upper wall."""


class Seen(NamedTuple):
    """An answer: the kind of screen, places of what was found, points of the opponent and of the player."""

    kind: str
    opponent: Place | None
    player: Place | None
    ball: Place | None
    points: tuple[int, int]


WHOLE = Seen._fields
"""The parts of an answer."""

NOTHING = Seen("title", None, None, None, (0, 0))
"""Before the first answer."""

NEAR = 4.0
"""Pixels."""

POSITION = re.compile(r"x = (-?[\d.]+) px, y = (-?[\d.]+) px")


def from_words(text: str) -> Seen:
    """Read an answer in sentences."""
    said = json.loads(text)
    places: dict[str, Place | None] = {}
    for thing in said["objects"]:
        found = POSITION.fullmatch(thing["position"])
        places[thing["name"]] = (float(found[1]), float(found[2])) if found else None
    points = {
        region["region"].split()[-1]: int(region["text"].split()[0]) for region in said["score_regions"]
    }
    return Seen(
        said["interface"]["screen"],
        places["opponent"],
        places["player"],
        places["ball"],
        (points["opponent"], points["player"]),
    )


def from_list(text: str) -> Seen:
    """Read a compact answer."""
    kind, (opponent, player, ball), points = json.loads(text)
    opponent, player, ball = (place and tuple(place) for place in (opponent, player, ball))
    return Seen(kind, opponent, player, ball, tuple(points))


class Parser:
    """Parses answers; with `similar` those that it has not parsed before."""

    ROOM = 4096

    def __init__(self, *, compact: bool, similar: bool) -> None:
        self.read = from_list if compact else from_words
        self.similar = similar
        self.known: OrderedDict[str, Seen] = OrderedDict()

    def parse(self, text: str) -> Seen:
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

    def alike(self, parts: tuple[str, ...]) -> Callable[[str, str], bool]:
        """What tells whether two answers put the same into these parts, places nearly the same."""

        def same(answer: str, other: str) -> bool:
            first, second = self.parse(answer), self.parse(other)
            return all(near(part, getattr(first, part), getattr(second, part)) for part in parts)

        return same


def near(part: str, value: Any, other: Any) -> bool:
    """Whether two parts are equal, or places at most NEAR pixels apart in each direction."""
    if part in ("kind", "points") or value is None or other is None:
        return value == other
    return abs(value[0] - other[0]) <= NEAR and abs(value[1] - other[1]) <= NEAR
