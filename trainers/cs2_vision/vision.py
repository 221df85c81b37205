"""What the vision service runs: a convolutional network that finds things, and words for them.

Its weights are written by hand: the first layer tells colours apart, the second looks for things by their
shape, the third reads digits.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pictures import COLOURS
from torch import nn

FIELD = slice(34, 194)
"""Rows of the picture between the walls."""

DIGITS = slice(1, 21)
"""Rows with the points."""

PLACES = ((0, 20), (0, 36), (1, 100), (1, 116))
"""The digits: number of their colour and first column; tens and ones of the opponent, then of the player."""

GLYPHS = (
    ("###", "#.#", "#.#", "#.#", "###"),
    (".#.", ".#.", ".#.", ".#.", ".#."),
    ("###", "..#", "###", "#..", "###"),
    ("###", "..#", ".##", "..#", "###"),
    ("#.#", "#.#", "###", "..#", "..#"),
    ("###", "#..", "###", "..#", "###"),
    ("#..", "#..", "###", "#.#", "###"),
    ("###", "..#", "..#", "..#", "..#"),
    ("###", "#.#", "###", "#.#", "###"),
    ("###", "#.#", "###", "..#", "..#"),
)

TALL, WIDE = 16, 4
"""Rows and columns of a paddle, and of the second layer's shapes."""

AROUND = 12
"""Rows by which a shape may reach over the field's edges."""

PAIR = 2
"""Columns that the second layer sees as one: places are exact in rows, and to two pixels in columns."""

NAMES = ("opponent", "player", "ball")


class View(NamedTuple):
    """One screen: its kind, each thing's place (x, y) or None, how sure that is, both sides' points."""

    kind: str
    places: tuple[tuple[float, float] | None, ...]
    confidences: tuple[float, ...]
    points: tuple[int, int]


class Eye(nn.Module):
    """Three layers of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.colours = nn.Conv2d(3, 4, 1)
        self.pairs = nn.AvgPool2d((1, PAIR))
        self.things = nn.Conv2d(4, 3, (TALL, WIDE // PAIR), padding=(AROUND, 0))
        self.digits = nn.Conv2d(1, 10, (20, 12), stride=(1, 4))
        with torch.no_grad():
            self._write_colours()
            self._write_things()
            self._write_digits()

    def _write_colours(self) -> None:
        """One channel each for opponent, player, ball and ground: 1 where its colour is, 0 at the others'."""
        kinds = np.array([[*COLOURS[number], 255] for number in (56, 200, 14, 34)]) / 255
        weights = torch.from_numpy(np.linalg.inv(kinds).T.astype(np.float32))
        self.colours.weight.copy_(weights[:, :3, None, None])
        self.colours.bias.copy_(weights[:, 3])

    def _write_things(self) -> None:
        """Paddles fill a shape; the ball is a small part of its own, with nothing white above and below."""
        self.things.bias.zero_()
        self.things.weight.zero_()
        for side in range(2):
            self.things.weight[side, side] = PAIR / (TALL * WIDE)
            # Of a paddle that reaches over an edge, the first row that can be seen is its place.
            self.things.weight[side, side, 0] *= 2
        self.things.weight[2, 2, :, 0] = -1 / 4
        self.things.weight[2, 2, 6:10, 0] = 1 / 4

    def _write_digits(self) -> None:
        """A glyph's blocks count for it, what lies outside them against it."""
        for digit, glyph in enumerate(GLYPHS):
            blocks = torch.tensor([[1.0 if block == "#" else -1.0 for block in row] for row in glyph])
            self.digits.weight[digit, 0] = blocks.repeat_interleave(4, 0).repeat_interleave(4, 1)
            self.digits.bias[digit] = -(blocks > 0).sum() * 16.0
        self.digits.weight.div_(240)
        self.digits.bias.div_(240)

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """From pictures, n x 3 x rows x columns: ground's share, places, how sure they are, digits or -1."""
        # From 0.75 on: colours that none of the four is make less than that of each.
        colours = torch.clamp(self.colours(pictures) * 4 - 3, 0, 1)
        ground = colours[:, 3].mean((1, 2))
        maps = self.things(self.pairs(colours[:, :, FIELD]))
        confidences, best = maps.flatten(2).max(2)
        rows, columns = best // maps.shape[3] - AROUND, best % maps.shape[3] * PAIR
        points = self.digits(colours[:, :2, DIGITS].flatten(0, 1).unsqueeze(1)).unflatten(0, (-1, 2))
        likeness, digits = points.squeeze(3).max(2)
        return ground, rows, columns, confidences, torch.where(likeness > -0.1, digits, -1)


def number(tens: int, ones: int) -> int:
    """Points from two digits, of which -1 is none."""
    return max(0, tens) * 10 + max(0, ones)


class Vision:
    """The network on its device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.eye = Eye().to(device)

    @torch.inference_mode()
    def look(self, pictures: NDArray[np.uint8]) -> list[View]:
        """What is on these pictures, n x rows x columns x 3."""
        batch = torch.from_numpy(np.array(pictures))
        if self.device.type == "cuda":
            batch = batch.pin_memory().to(self.device, non_blocking=True)
        found = self.eye(batch.permute(0, 3, 1, 2).float() / 255)
        return [self._view(*(part[at] for part in map(as_array, found))) for at in range(len(pictures))]

    def _view(
        self, ground: float, rows: NDArray, columns: NDArray, confidences: NDArray, digits: NDArray
    ) -> View:
        # The ball's shape begins six rows above the ball.
        places = [(float(columns[at]), float(rows[at])) for at in range(2)]
        places.append((float(columns[2]), float(rows[2] + 6)))
        seen = [place if confidences[at] > 0.2 else None for at, place in enumerate(places)]
        read = [int(digits[colour, column // 4]) for colour, column in PLACES]
        kind = "title" if ground < 0.5 else "pause" if seen[2] is None else "play"
        sure = tuple(round(float(confidence), 3) for confidence in confidences)
        return View(kind, tuple(seen), sure, (number(*read[:2]), number(*read[2:])))


def as_array(part: torch.Tensor) -> NDArray:
    """A result on the host."""
    return part.cpu().numpy()


SENTENCES = {
    "title": "The screen shows the title of the game. Nobody is playing yet.",
    "pause": "The screen shows the court without a ball. The next ball has not been served.",
    "play": "The screen shows a ball in play between two paddles.",
}


def in_words(view: View) -> str:
    """The long answer: sentences, and things with units and boxes."""
    things = [
        {
            "name": name,
            "position": "not visible" if place is None else f"x = {place[0]:.1f} px, y = {place[1]:.1f} px",
            "confidence": f"{sure:.1%}",
        }
        for name, place, sure in zip(NAMES, view.places, view.confidences, strict=True)
    ]
    regions = [
        {"region": f"score of the {name}", "text": f"{points} point{'' if points == 1 else 's'}"}
        for name, points in zip(NAMES, view.points, strict=False)
    ]
    interface = {"screen": view.kind, "is_playing": view.kind == "play", "description": SENTENCES[view.kind]}
    return json.dumps({"interface": interface, "objects": things, "score_regions": regions})


def in_short(view: View) -> str:
    """The compact answer: kind, places, points."""
    return json.dumps([view.kind, view.places, view.points], separators=(",", ":"))
