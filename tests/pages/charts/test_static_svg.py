"""A figure as SVG in the page: what lies where, and what is left to the script."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from dashboard.charts import theme
from dashboard.charts.baseline_line import TrendBaseline
from dashboard.charts.limit_lines import TrendLimit
from dashboard.charts.phase_stack import StackedPhase, StackedRun, draw_phase_stack
from dashboard.charts.static_svg import HIGH, WIDE, choose_step, draw_static_svg
from dashboard.charts.trend import Trend, draw_trend
from dashboard.charts.trend_marks import TrendChange, TrendFailure, TrendMarker, TrendStep
from tests.pages.charts.test_trend import STEP, trend_points


def draw_line(x: list[float], y: list[float], mode: str = "lines") -> str:
    trace = theme.scatter_trace(
        x=x, y=y, mode=mode, line={"color": "red", "width": 1}, marker={"color": "blue", "size": 4}
    )
    commits = {"range": [0, 4], "tickvals": [], "ticktext": []}
    return draw_static_svg(theme.create_figure([trace], 400, xaxis=commits, yaxis={"range": [0, 2]}))


def paths_of(still: str) -> list[str]:
    return [path.attrib["d"] for path in ElementTree.fromstring(still).iter("path")]  # noqa: S314 - of our own


def test_values_lie_where_the_axes_say() -> None:
    assert paths_of(draw_line([0, 2, 4], [2, 1, 0])) == [
        f"M0 0l{WIDE // 2} {HIGH // 2} {WIDE // 2} {HIGH // 2}"
    ]


def test_a_value_that_is_missing_is_a_gap() -> None:
    assert paths_of(draw_line([0, 1, 2, 3], [0, 0, np.nan, 0])) == [
        f"M0 {HIGH}l{WIDE // 4} 0M{3 * WIDE // 4} {HIGH}"
    ]


def test_dots_are_not_stretched() -> None:
    line, dots = paths_of(draw_line([1, 2], [1, 1], "lines+markers"))
    assert line.startswith("M500 500l")
    assert dots == "M500 500h0M1000 500h0"


def test_all_that_a_trend_marks_is_in_it() -> None:
    points = trend_points(0.001, 0.001, 0.0014, 0.0014, tainted=frozenset({3}))
    trend = Trend(
        points,
        "s",
        changes=[STEP],
        markers=[TrendMarker(1, "torch")],
        failures=[TrendFailure(2, "crash", "c2", "/runs/9/")],
        limits=[TrendLimit(0, None, 0.0015)],
        baseline=TrendBaseline(0.001, "v1"),
        step=TrendStep(1, 2),
    )
    still = draw_static_svg(draw_trend(trend))
    shown = "".join(ElementTree.fromstring(still).itertext())  # noqa: S314 - of our own
    assert all(text in shown for text in ("worse +40 %", "\N{MULTIPLICATION SIGN}", "□"))
    assert all(f"c{position}" in shown for position in range(4))
    assert "var(--chart-line)" in still


def test_labels_with_too_little_room_give_way_to_the_newest_and_the_worst() -> None:
    """Seven changes five commits apart, the third one the largest; and one to a level outside."""
    levels = (1.000, 1.001, 1.002, 1.009, 1.010, 1.011, 1.012, 1.013)
    points = trend_points(1.2, *(level for level in levels for _ in range(5)))
    changes = [
        TrendChange(6 + 5 * index, before, after, f"{index}", worse=True)
        for index, (before, after) in enumerate(pairwise(levels))
    ]
    changes.append(TrendChange(3, 1.0, 9.0, "outside", worse=True))
    still = draw_static_svg(draw_trend(Trend(points, "s", changes=changes)))
    texts = ElementTree.fromstring(still).iter("text")  # noqa: S314 - of our own
    labels = [label for label in texts if "arrow" in label.get("class", "")]
    on_phones = [label.text for label in labels if "second" not in label.attrib["class"]]
    assert {label.text for label in labels} == {f"worse {index}" for index in range(7)}
    assert on_phones[:2] == ["worse 6", "worse 2"]
    assert len(on_phones) == 4


def test_dates_are_named() -> None:
    still = draw_static_svg(draw_trend(Trend(trend_points(1.0, 2.0, 3.0), "s", by_date=True)))
    assert "2026-11-02" in still


def test_texts_of_a_repository_are_escaped() -> None:
    axis = {"range": [0, 1], "tickvals": [0], "ticktext": ["<script>"]}
    still = draw_static_svg(theme.create_figure([], 400, xaxis=axis, yaxis={"range": [0, 1]}))
    assert "&lt;script&gt;" in still
    assert "<script" not in still


def test_what_has_no_range_is_left_to_the_script() -> None:
    stack = draw_phase_stack([StackedRun(0, "c0", "/runs/1/")], [StackedPhase("learn", [0.5], 0)])
    assert draw_static_svg(stack) == ""


@pytest.mark.parametrize(("least", "step"), [(0.011, 0.02), (1.0, 1.0), (0.3, 0.5), (7.0, 10.0), (2.0, 2.0)])
def test_the_grid_stands_at_round_values(least: float, step: float) -> None:
    assert choose_step(least) == pytest.approx(step)


def test_a_long_line_costs_a_page_little() -> None:
    long = draw_static_svg(
        draw_trend(Trend(trend_points(*np.random.default_rng(7).normal(1, 0.01, 400)), "s"))
    )
    assert len(long) < 15_000
