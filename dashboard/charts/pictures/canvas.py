"""What pictures are drawn on: one drawing as SVG or as PNG, for places that run no script.

Coordinates are the picture's own pixels. Texts have Pillow's anchors: `lt` is the left top, `rm` the right
middle.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Protocol
from xml.sax.saxutils import escape, quoteattr

from PIL import Image, ImageDraw, ImageFont

BACKGROUND, INK, MUTED, GRID = "#ffffff", "#1b1f24", "#57606a", "#e5e8ec"
GOOD, BAD, DOUBTFUL, BAND = "#2563c4", "#c0392b", "#b6bcc4", "#dbe6f8"
FONTS = "Verdana, 'DejaVu Sans', Geneva, sans-serif"
# A PNG is drawn at twice its size and made smaller, which smooths its edges.
SMOOTHING = 2
# Few colours: a palette makes it a fifth as large.
COLOURS = 64
# Browsers draw their fonts a little wider than the one that is measured here.
WIDER = 1.12
ANCHORS = {"l": "start", "m": "middle", "r": "end"}
BASELINES = {"t": 0.8, "m": 0.35, "b": -0.2}
# What Pillow's own font lacks, as it is written without it: `9.30 to 2.13`, `380 us`.
SPELLINGS = {
    "→": "to",
    "µ": "u",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{EN DASH}": "-",
    "—": "-",
    "≥": ">=",
    "≤": "<=",
    "\N{MINUS SIGN}": "-",
    "\N{FRACTION SLASH}": "/",
}

# A character that no font has, and the size in which its box is compared with others.
NO_CHARACTER, TRIED_SIZE = "\uffff", 24

At = tuple[float, float]


class Canvas(Protocol):
    def draw_line(self, points: Sequence[At], colour: str, width: float) -> None: ...

    def draw_area(self, points: Sequence[At], colour: str) -> None: ...

    def draw_dot(self, at: At, radius: float, colour: str, *, hollow: bool = False) -> None: ...

    def write_text(self, at: At, text: str, colour: str, size: int, anchor: str) -> None: ...

    def encode(self) -> bytes: ...


class SvgCanvas:
    """`title` is what a screen reader says of the picture."""

    content_type = "image/svg+xml"

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label={quoteattr(title)}>'
            f"<title>{escape(title)}</title>"
            f'<rect width="{width}" height="{height}" rx="4" fill="{BACKGROUND}"/>'
        ]

    def draw_line(self, points: Sequence[At], colour: str, width: float) -> None:
        self._parts.append(
            f'<polyline points="{format_points(points)}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}" stroke-linejoin="round"/>'
        )

    def draw_area(self, points: Sequence[At], colour: str) -> None:
        self._parts.append(f'<polygon points="{format_points(points)}" fill="{colour}"/>')

    def draw_dot(self, at: At, radius: float, colour: str, *, hollow: bool = False) -> None:
        paint = f'fill="none" stroke="{colour}"' if hollow else f'fill="{colour}"'
        self._parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius}" {paint}/>')

    def write_text(self, at: At, text: str, colour: str, size: int, anchor: str) -> None:
        y, shown = at[1] + BASELINES[anchor[1]] * size, escape(replace_unprintable(text))
        self._parts.append(
            f'<text x="{at[0]:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" '
            f'font-family="{FONTS}" text-anchor="{ANCHORS[anchor[0]]}">{shown}</text>'
        )

    def encode(self) -> bytes:
        return "".join([*self._parts, "</svg>"]).encode()


class PngCanvas:
    """`enlarged`: how many pixels of the PNG one of the picture's has in each direction."""

    content_type = "image/png"

    def __init__(self, width: int, height: int, enlarged: int = 1) -> None:
        self._scale = SMOOTHING * enlarged
        self._image = Image.new("RGB", (width * self._scale, height * self._scale), BACKGROUND)
        self._draw = ImageDraw.Draw(self._image)

    def draw_line(self, points: Sequence[At], colour: str, width: float) -> None:
        self._draw.line(self._scaled(points), fill=colour, width=round(width * self._scale), joint="curve")

    def draw_area(self, points: Sequence[At], colour: str) -> None:
        self._draw.polygon(self._scaled(points), fill=colour)

    def draw_dot(self, at: At, radius: float, colour: str, *, hollow: bool = False) -> None:
        ((x, y),) = self._scaled([at])
        reach = radius * self._scale
        box = (x - reach, y - reach, x + reach, y + reach)
        if hollow:
            self._draw.ellipse(box, outline=colour, width=self._scale)
        else:
            self._draw.ellipse(box, fill=colour)

    def write_text(self, at: At, text: str, colour: str, size: int, anchor: str) -> None:
        font = load_font(size * self._scale)
        (place,) = self._scaled([at])
        self._draw.text(place, spell_for_png(text), fill=colour, font=font, anchor=anchor)

    def encode(self) -> bytes:
        # A picture is asked for again and again: a finer filter and palette cost several times as much.
        smaller = self._image.reduce(SMOOTHING)
        file = io.BytesIO()
        smaller.quantize(COLOURS, method=Image.Quantize.FASTOCTREE).save(file, "PNG")
        return file.getvalue()

    def _scaled(self, points: Sequence[At]) -> list[At]:
        return [(x * self._scale, y * self._scale) for x, y in points]


def format_points(points: Sequence[At]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def replace_unprintable(text: str) -> str:
    """XML holds no control characters, however they are escaped."""
    return "".join(character if character.isprintable() else "�" for character in text)


def spell_for_png(text: str) -> str:
    """The text without what Pillow's font would draw as a box, as far as other letters can say it."""
    return "".join(spell_character(character) for character in text)


@cache
def spell_character(character: str) -> str:
    """An accented letter loses its accent, also where that is a character of its own; `½` becomes `1/2`."""
    if is_drawn(character):
        return character
    parts = unicodedata.normalize("NFKD", SPELLINGS.get(character, character))
    drawn = "".join(SPELLINGS.get(part, part) for part in parts if not unicodedata.combining(part))
    return drawn if all(map(is_drawn, drawn)) else character


def is_drawn(character: str) -> bool:
    """Whether Pillow's font has the character."""
    font = load_font(TRIED_SIZE)
    return bytes(font.getmask(character)) != bytes(font.getmask(NO_CHARACTER))


@cache
def load_font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Few sizes are used, and each costs milliseconds to load."""
    return ImageFont.load_default(size)


def text_width(text: str, size: int) -> float:
    return float(load_font(size).getlength(text))


def fit_text(text: str, size: int, room: float) -> str:
    """The text, or its beginning with an ellipsis where it is wider than the room."""
    while text and text_width(text, size) * WIDER > room:
        text = text.rstrip("…")[:-1] + "…" if len(text) > 1 else ""
    return text
