"""What a claim is worth over commits, as a picture for other places."""

from __future__ import annotations

from dashboard.charts.claim_history import HEIGHT as CHART_HEIGHT
from dashboard.charts.claim_history import WIDTH as CHART_WIDTH
from dashboard.charts.claim_history import ClaimHistory, DrawnPoint
from dashboard.charts.pictures.canvas import BAD, BAND, GOOD, GRID, INK, MUTED, Canvas, fit_text
from dashboard.charts.pictures.picture_ticks import LABEL_SIZE

TOP = 60
WIDTH, HEIGHT = CHART_WIDTH, TOP + CHART_HEIGHT
LEFT, RIGHT = 16, WIDTH - 16
TITLE_SIZE, CAPTION_SIZE = 15, 11
# By the tone of a verdict: more than claimed is no loss, but a square as on the page.
COLOURS = {"holds": GOOD, "refuted": BAD, "more": GOOD}
RADIUS = 4.5


def draw_claim_picture(canvas: Canvas, history: ClaimHistory | None, title: str, caption: str) -> bytes:
    """On a canvas of WIDTH and HEIGHT; without measurements the caption says so."""
    canvas.write_text((LEFT, 14), fit_text(title, TITLE_SIZE, RIGHT - LEFT), INK, TITLE_SIZE, "lt")
    canvas.write_text((LEFT, 38), fit_text(caption, CAPTION_SIZE, RIGHT - LEFT), MUTED, CAPTION_SIZE, "lt")
    if history is None:
        return canvas.encode()
    left, right = history.left, history.right
    if history.band is not None:
        top, bottom = TOP + history.band, TOP + history.band + history.band_height
        canvas.draw_area([(left, top), (right, top), (right, bottom), (left, bottom)], BAND)
    for tick in history.rows:
        canvas.draw_line([(left, TOP + tick.at), (right, TOP + tick.at)], GRID, 1)
        canvas.write_text((left - 6, TOP + tick.at), tick.text, MUTED, LABEL_SIZE, "rm")
    if history.no_difference is not None:
        height = TOP + history.no_difference
        canvas.draw_line([(left, height), (right, height)], MUTED, 1)
    canvas.draw_line([(row.x, TOP + row.y) for row in history.points], MUTED, 1)
    for row in history.points:
        _draw_measurement(canvas, row)
    for column in history.columns:
        canvas.write_text((column.at, HEIGHT - 20), column.text, MUTED, LABEL_SIZE, "mt")
    return canvas.encode()


def _draw_measurement(canvas: Canvas, row: DrawnPoint) -> None:
    """The interval, and the sign of the verdict: a disc holds, a ring is not known, else a square."""
    tone = row.point.tone
    colour, y = COLOURS.get(tone, MUTED), TOP + row.y
    canvas.draw_line([(row.x, TOP + row.low), (row.x, TOP + row.high)], colour, 2)
    if tone in ("holds", "unknown"):
        canvas.draw_dot((row.x, y), RADIUS, colour, hollow=tone == "unknown")
        return
    sides = (row.x - 4, row.x + 4), (y - 4, y + 4)
    (left, right), (top, bottom) = sides
    canvas.draw_area([(left, top), (right, top), (right, bottom), (left, bottom)], colour)
