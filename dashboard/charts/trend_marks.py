"""What a trend marks beside its line: steps, tags, upgrades of the environment, runs that left no value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from dashboard.charts import theme
from dashboard.charts.trend_axes import CommitAxis, ValueAxis

LONGEST_MARKER = 24
LONGEST_REASON = 120
# Of the drawing's height: a square there stands on its lower edge.
FAILURE_HEIGHT = 0.025
# By this name the page's script finds a label above the drawing: only there the width is known, and which
# labels overlap.
MARKER = "marker"


@dataclass(frozen=True, slots=True)
class TrendChange:
    """A step between two levels, `size` in words; `url` leads to its regression, if it has one. `muted`: it
    isn't the one that is looked at."""

    position: int
    before: float
    after: float
    size: str
    worse: bool
    url: str = ""
    muted: bool = False


@dataclass(frozen=True, slots=True)
class TrendMarker:
    """What changed around the code before the point at `position`, such as `kernel`; or the tag of the
    commit there."""

    position: int
    text: str
    is_tag: bool = False


@dataclass(frozen=True, slots=True)
class TrendFailure:
    """A run that left no value, and why."""

    position: int
    reason: str
    commit: str
    url: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TrendStep:
    """The commits between which the level changed."""

    last_good: int
    first_bad: int


def order_labels(changes: Iterable[TrendChange]) -> list[TrendChange]:
    """Where labels have too little room the last ones give way: first come those that the page is about, of
    them the newest, then the worst."""
    found = sorted(changes, key=lambda change: -change.position)
    newest = found[:1]

    def rank(change: TrendChange) -> tuple[bool, bool, bool, float]:
        return change.muted, change not in newest, not change.worse, -abs(change.after - change.before)

    return sorted(found, key=rank)


def change_arrow(
    change: TrendChange, near: Sequence[float], commits: CommitAxis, values: ValueAxis
) -> dict[str, object]:
    """Word, sign and arrow say what the colour says. Clear of the values `near` it, the first ones of the new
    level, which may stand far from that level."""
    colour = theme.MUTED if change.muted else theme.WORSE if change.worse else theme.BETTER
    above = change.after >= change.before
    heights = [change.after, *near]
    text = f"{'worse' if change.worse else 'better'} {change.size}"
    return {
        "x": commits.place_position(change.position),
        "y": values.scale_value(max(heights) if above else min(heights)),
        "text": text,
        "xanchor": commits.label_anchor(change.position),
        # The script opens it; the list beside the chart has the link for the keyboard.
        "name": change.url,
        "captureevents": bool(change.url),
        "font": {"color": colour, "size": 12},
        "arrowcolor": colour,
        "arrowhead": 2,
        "arrowsize": 1,
        "arrowwidth": 1.5,
        "ax": 0,
        "ay": -30 if above else 30,
        "standoff": 6,
        "bgcolor": theme.SURFACE,
        "borderpad": 2,
    }


def draw_marker(drawn: theme.Figure, marker: TrendMarker, commits: CommitAxis) -> None:
    """A line between two points: what is left and right of it was measured under other circumstances. That of
    a tag goes through its commit. The label stands above the drawing, where it covers no value."""
    x = commits.place_position(marker.position - (0 if marker.is_tag else 0.5))
    line = {"color": theme.FAINT, "width": 1, "dash": "solid" if marker.is_tag else "dash"}
    theme.add_shape(drawn, type="line", x0=x, x1=x, y0=0, y1=1, yref="paper", line=line, layer="below")
    text = shorten_label(marker.text)
    theme.add_annotation(
        drawn,
        x=x,
        y=1,
        yref="paper",
        name=MARKER,
        text=theme.escape_markup(f"#{text}" if marker.is_tag else text),
        showarrow=False,
        xanchor="left",
        yanchor="bottom",
        borderpad=0,
        font={"color": theme.INK if marker.is_tag else theme.MUTED, "size": 11},
    )


def failure_traces(
    failures: Sequence[TrendFailure], commits: CommitAxis, shown: Sequence[float]
) -> list[theme.Trace]:
    """At the bottom of the drawing, above the names of commits: a run without a value has no other place."""
    if not failures:
        return []
    height = shown[0] + FAILURE_HEIGHT * (shown[1] - shown[0])
    positions = [failure.position for failure in failures]
    return [
        {
            "type": "scatter",
            "x": commits.place_positions(positions),
            "y": np.full(len(failures), height),
            "name": "failed",
            "mode": "markers",
            "marker": {"color": theme.WORSE, "symbol": "square-open", "size": 8, "line": {"width": 1.5}},
            "text": [_failure_hover(failure) for failure in failures],
            "customdata": [failure.url for failure in failures],
            "meta": {"positions": positions},
            "hovertemplate": "%{text}<extra></extra>",
            "cliponaxis": False,
        }
    ]


def _failure_hover(failure: TrendFailure) -> str:
    reason = shorten_label(failure.reason, LONGEST_REASON)
    return f"<b>{theme.escape_markup(reason)}</b><br>{theme.escape_markup(failure.commit)}"


def shade_step(drawn: theme.Figure, step: TrendStep, commits: CommitAxis) -> None:
    """The commits of which one did it."""
    theme.add_shape(
        drawn,
        type="rect",
        x0=commits.place_position(step.last_good + 0.5),
        x1=commits.place_position(step.first_bad + 0.5),
        y0=0,
        y1=1,
        yref="paper",
        fillcolor=theme.WINDOW,
        line={"width": 0},
        layer="below",
    )


def shorten_label(text: str, most: int = LONGEST_MARKER) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
