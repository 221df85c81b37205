"""A badge for a README: what it is of on the left, how it stands on the right, as SVG."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from dashboard.charts.pictures.canvas import FONTS, WIDER, fit_text, replace_unprintable, text_width

HEIGHT = 20
TEXT_SIZE = 11
PADDING = 6
LONGEST_TEXT = 280
LABEL_COLOUR = "#4b525b"
# White on each has a contrast of 4.5 or more.
GOOD, BAD, DOUBTFUL, UNKNOWN = "#1f7a3f", "#b3261e", "#8a5a00", "#5f6770"


def draw_badge(label: str, value: str, colour: str) -> bytes:
    label, value = (fit_text(replace_unprintable(text), TEXT_SIZE, LONGEST_TEXT) for text in (label, value))
    widths = [round(text_width(text, TEXT_SIZE) * WIDER) + 2 * PADDING for text in (label, value)]
    total = sum(widths)
    title = f"{label}: {value}"
    texts = "".join(
        f'<text x="{middle}" y="14" textLength="{width - 2 * PADDING}">{escape(text)}</text>'
        for text, middle, width in (
            (label, widths[0] / 2, widths[0]),
            (value, widths[0] + widths[1] / 2, widths[1]),
        )
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{HEIGHT}" role="img" '
        f"aria-label={quoteattr(title)}><title>{escape(title)}</title>"
        f'<clipPath id="round"><rect width="{total}" height="{HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#round)"><rect width="{total}" height="{HEIGHT}" fill="{LABEL_COLOUR}"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="{HEIGHT}" fill="{colour}"/></g>'
        f'<g fill="#fff" text-anchor="middle" font-family="{FONTS}" font-size="{TEXT_SIZE}">{texts}</g></svg>'
    ).encode()
