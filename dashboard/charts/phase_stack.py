"""What a step is made of, over commits: its phases above each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from dashboard.charts import theme
from dashboard.charts.trend_axes import commit_axis, commit_ticks
from dashboard.sentences.formatting import numbers

HEIGHT = 400


@dataclass(frozen=True, slots=True)
class StackedRun:
    """A run at which the phases are drawn."""

    position: int
    commit: str
    url: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StackedPhase:
    """Its own time in each run, in seconds per step; None where the run has no such phase. `hue` is the place
    of its colour, -1 is grey."""

    name: str
    values: Sequence[float | None]
    hue: int


def draw_phase_stack(
    runs: Sequence[StackedRun], phases: Sequence[StackedPhase], *, by_date: bool = False
) -> theme.Figure:
    """At least one run, oldest first; the first phase lies at the bottom."""
    commits = commit_axis({run.position: run.at for run in runs}, by_date=by_date)
    positions = [run.position for run in runs]
    # A phase that a run doesn't have takes no room in it.
    heights = np.array([[value or 0.0 for value in phase.values] for phase in phases])
    scaled = numbers.choose_scale("s", float(heights.sum(axis=0).max(initial=0.0)))
    x = commits.place_positions(positions)
    traces: list[theme.Trace] = [
        {
            "type": "scatter",
            "x": x,
            "y": row / scaled.size,
            "name": theme.escape_markup(phase.name),
            "mode": "lines",
            "stackgroup": "phases",
            "line": {"width": 1, "color": theme.SURFACE},
            "fillcolor": theme.FAINT if phase.hue < 0 else theme.HUES[phase.hue % len(theme.HUES)],
            "text": [_phase_hover(phase, index, run) for index, run in enumerate(runs)],
            "customdata": [run.url for run in runs],
            "meta": {"positions": positions},
            "hovertemplate": "%{text}<extra></extra>",
        }
        for phase, row in zip(phases, heights, strict=True)
    ]
    described = (
        {"type": "date", "title": {"text": "date of the commit"}}
        if by_date
        else {**commit_ticks({run.position: run.commit for run in runs}), "title": {"text": "commit"}}
    )
    return theme.create_figure(
        traces,
        HEIGHT,
        margin={"l": 8, "r": 30, "t": 12, "b": 8},
        xaxis={**described, "range": list(commits.ends), "showgrid": False},
        yaxis={"title": {"text": f"{scaled.unit} per step"}, "rangemode": "tozero"},
    )


def _phase_hover(phase: StackedPhase, index: int, run: StackedRun) -> str:
    value = numbers.format_quantity(phase.values[index], "s")
    return f"<b>{theme.escape_markup(phase.name)}</b> {value}<br>{theme.escape_markup(run.commit)}"
