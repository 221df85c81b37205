"""A trend as it is drawn: what lies where, what is told by shape, and what a long line keeps."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from dashboard.charts.baseline_line import TrendBaseline
from dashboard.charts.limit_lines import TrendLimit
from dashboard.charts.phase_stack import StackedPhase, StackedRun, draw_phase_stack
from dashboard.charts.thinning import thin_line
from dashboard.charts.trend import MOST_MARKED, Trend, TrendLine, TrendPoint, draw_trend
from dashboard.charts.trend_axes import commit_ticks
from dashboard.charts.trend_marks import FAILURE_HEIGHT, TrendChange, TrendFailure, TrendMarker, TrendStep
from dashboard.pages.series.trend import MOST_DRAWN, MOST_TAINTED_DRAWN, choose_drawn
from dashboard.querysets.trends import TrendRow
from dashboard.sentences.formatting.numbers import DASH
from tests.pages.charts.test_charts import trace_named, validate_figure

START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
STEP = TrendChange(2, 0.001, 0.0014, "+40 %", worse=True, url="/regressions/1/")


def trend_points(*values: float, tainted: frozenset[int] = frozenset()) -> list[TrendPoint]:
    """One commit a day."""
    return [
        TrendPoint(
            position=index,
            value=value,
            low=0.98 * value,
            high=1.02 * value,
            samples=[value] * 3,
            tainted=index in tainted,
            commit=f"c{index}",
            subject="<b>&",
            url=f"/runs/{index}/",
            at=START + timedelta(days=index),
            doubt="the machine was busy" if index in tainted else "",
        )
        for index, value in enumerate(values)
    ]


def drawn_trend(points: list[TrendPoint], unit: str = "s", **fields: Any) -> Any:
    return validate_figure(draw_trend(Trend(points, unit, **fields)))


def test_a_trend_is_drawn_in_the_unit_that_its_values_reach() -> None:
    drawn = drawn_trend(trend_points(0.001, 0.001, 0.0014))
    assert list(trace_named(drawn, "value").y) == pytest.approx([1, 1, 1.4])
    assert drawn.layout.yaxis.title.text == "ms"


def test_every_repetition_is_a_dot_while_dots_can_be_told_apart() -> None:
    assert list(trace_named(drawn_trend(trend_points(1.0, 2.0)), "repetitions").x) == [0, 0, 0, 1, 1, 1]
    many = drawn_trend(trend_points(*[1.0] * (MOST_MARKED + 1)))
    assert "repetitions" not in {trace.name for trace in many.data}
    assert trace_named(many, "value").mode == "lines"


def test_levels_end_where_a_change_begins() -> None:
    drawn = drawn_trend(trend_points(0.001, 0.001, 0.0014, 0.0014), changes=[STEP])
    level = trace_named(drawn, "level")
    assert list(level.y[[0, 1, 3, 4]]) == pytest.approx([1, 1, 1.4, 1.4])
    assert list(level.x[[1, 3]]) == [1.5, 1.5]


def test_a_change_says_its_direction_in_words_and_where_it_leads() -> None:
    (arrow,) = drawn_trend(trend_points(0.001, 0.001, 0.0014), changes=[STEP]).layout.annotations
    # No link of its own: in a drawing it is a stop of the keyboard without a name.
    assert (arrow.text, arrow.name, arrow.captureevents) == ("worse +40 %", "/regressions/1/", True)


@pytest.mark.parametrize(("position", "anchor"), [(2, "left"), (20, "center"), (39, "right")])
def test_the_label_of_a_step_is_not_cut_off_at_an_end(position: int, anchor: str) -> None:
    step = replace(STEP, position=position)
    (arrow,) = drawn_trend(trend_points(*[0.001] * 40), changes=[step]).layout.annotations
    assert arrow.xanchor == anchor


def test_names_of_commits_side_by_side_do_not_overlap() -> None:
    evenly = commit_ticks(dict.fromkeys(range(17), "abcdef0"))
    assert evenly["tickvals"] == [1, 4, 7, 10, 13, 16]
    assert commit_ticks(dict.fromkeys((1, 2, 13), "abcdef0"))["tickvals"] == [2, 13]


def test_an_arrow_stands_clear_of_the_line() -> None:
    (arrow,) = drawn_trend(trend_points(0.001, 0.001, 0.003, 0.0014), changes=[STEP]).layout.annotations
    assert arrow.y == pytest.approx(3)


def test_a_tainted_run_stands_beside_the_line_and_says_why() -> None:
    drawn = drawn_trend(trend_points(1.0, 5.0, 1.0, tainted=frozenset({1})), "1")
    assert list(trace_named(drawn, "value").x) == [0, 2]
    tainted = trace_named(drawn, "tainted")
    assert (tainted.marker.symbol, list(tainted.x)) == ("x-thin-open", [1])
    assert tainted.text[0].endswith("tainted, kept out of judgement: the machine was busy")
    # It would squeeze the line: it is drawn at the edge.
    edge = drawn.layout.yaxis.range[1]
    assert tainted.y[0] == pytest.approx(edge)
    assert edge < 5


def test_a_failed_run_stands_at_the_foot_of_its_commit() -> None:
    failure = TrendFailure(1, "run 7 failed: crash. <exit 1>", "c1", "/runs/7/")
    drawn = drawn_trend(trend_points(1.0, 1.0, 1.0), failures=[failure])
    failed = trace_named(drawn, "failed")
    low, high = drawn.layout.yaxis.range
    assert list(failed.x) == [1]
    assert list(failed.y) == [pytest.approx(low + FAILURE_HEIGHT * (high - low))]
    assert failed.text == ("<b>run 7 failed: crash. &lt;exit 1&gt;</b><br>c1",)
    assert failed.customdata == ("/runs/7/",)


def test_a_series_without_intervals_has_no_band() -> None:
    bare = TrendPoint(0, 1.0, None, None, [], tainted=False, commit="c", subject="", url="/")
    assert "interval" not in {trace.name for trace in drawn_trend([bare], "1").data}


def test_a_flat_series_is_not_drawn_as_mountains() -> None:
    for reference in (None, 100.0):
        low, high = drawn_trend(trend_points(100.0, 100.1), "1", reference=reference).layout.yaxis.range
        assert high - low > 10


def test_text_of_a_repository_is_text_in_a_figure() -> None:
    assert "&lt;b&gt;&amp;" in trace_named(drawn_trend(trend_points(1.0), "1"), "value").text[0]


def test_a_bound_is_drawn_over_the_runs_that_it_held_for() -> None:
    limits = [TrendLimit(index, None, 0.0012 if index < 2 else 0.0013) for index in range(3)]
    drawn = drawn_trend(trend_points(0.001, 0.001, 0.0014), limits=limits)
    lines = [(line.x0, line.x1, line.y0) for line in drawn.layout.shapes]
    assert lines == [(-0.5, 1.5, pytest.approx(1.2)), (1.5, pytest.approx(2.6), pytest.approx(1.3))]
    assert [text.text for text in drawn.layout.annotations] == ["limit: at most 1.30 ms"]


def test_a_near_bound_widens_the_axis_and_a_far_one_does_not() -> None:
    near, far = (TrendLimit(0, None, bound) for bound in (110.0, 10_000.0))
    points = trend_points(100.0, 101.0)
    assert drawn_trend(points, "1", limits=[near]).layout.yaxis.range[1] > 110
    assert drawn_trend(points, "1", limits=[far]).layout.yaxis.range[1] < 120


def test_changes_in_percent_are_drawn_from_each_lines_own_reference() -> None:
    line = TrendLine("pool b", trend_points(4.0, 5.0), reference=4.0)
    baseline = TrendBaseline(1.5, "v1")
    drawn = drawn_trend(trend_points(2.0, 3.0), reference=2.0, lines=[line], baseline=baseline)
    assert list(trace_named(drawn, "value").y) == pytest.approx([0, 50])
    assert list(trace_named(drawn, "pool b").y) == pytest.approx([0, 25])
    assert drawn.layout.shapes[0].y0 == pytest.approx(-25)
    assert trace_named(drawn, "pool b").text[1].startswith("<b>5 s</b>, +25 % ")


def test_lines_differ_by_their_dashes() -> None:
    lines = [TrendLine(name, trend_points(1.0, 2.0)) for name in "abcd"]
    drawn = drawn_trend(trend_points(1.0, 2.0), lines=lines)
    assert len({trace_named(drawn, name).line.dash for name in "abcd"}) == 4


def test_by_date_everything_lies_at_the_date_of_its_commit() -> None:
    points = trend_points(0.001, 0.001, 0.0014)
    markers = [TrendMarker(1, "torch"), TrendMarker(2, "v1", is_tag=True)]
    drawn = drawn_trend(points, changes=[STEP], markers=markers, by_date=True)
    days = [1000 * (START + timedelta(days=day)).timestamp() for day in (0, 0.5, 1.5, 2)]
    assert drawn.layout.xaxis.type == "date"
    assert list(trace_named(drawn, "value").x[[0, 2]]) == [days[0], days[3]]
    assert [shape.x0 for shape in drawn.layout.shapes] == [days[1], days[3]]
    assert trace_named(drawn, "level").x[1] == days[2]
    assert drawn.layout.annotations[0].x == days[3]
    assert trace_named(drawn, "value").meta["positions"] == [0, 1, 2]


def test_labels_of_markers_stand_above_the_drawing() -> None:
    markers = [TrendMarker(1, "torch"), TrendMarker(2, "v1", is_tag=True)]
    labels = drawn_trend(trend_points(1.0, 1.0, 1.0), markers=markers).layout.annotations
    assert [(label.text, label.y, label.yanchor) for label in labels] == [
        ("torch", 1, "bottom"),
        ("#v1", 1, "bottom"),
    ]


def test_the_step_that_is_looked_at_is_shaded_and_the_others_are_grey() -> None:
    other = TrendChange(1, 0.0012, 0.001, "-20 %", worse=False, url="/regressions/2/", muted=True)
    step = TrendStep(last_good=1, first_bad=2)
    drawn = drawn_trend(trend_points(0.0012, 0.001, 0.0014), changes=[other, STEP], step=step)
    # What the page is about comes first: it has a label before the others take the room.
    assert [arrow.font.color for arrow in drawn.layout.annotations] == ["var(--worse)", "var(--ink-muted)"]
    assert (drawn.layout.shapes[0].x0, drawn.layout.shapes[0].x1) == (1.5, 2.5)


def test_phases_are_stacked_and_what_is_missing_takes_no_room() -> None:
    runs = [StackedRun(position, f"c{position}", "/runs/1/") for position in (3, 4)]
    phases = [StackedPhase("learn", [0.001, 0.002], 0), StackedPhase("<act>", [None, 0.001], 1)]
    drawn = validate_figure(draw_phase_stack(runs, phases))
    assert [list(trace.y) for trace in drawn.data] == [[1, 2], [0, 1]]
    assert {trace.stackgroup for trace in drawn.data} == {"phases"}
    assert drawn.data[1].text == (f"<b>&lt;act&gt;</b> {DASH}<br>c3", "<b>&lt;act&gt;</b> 1 ms<br>c4")


@pytest.mark.parametrize("count", [1, 7, 600, 601, 2_000, 10_000])
def test_no_part_of_a_long_line_loses_its_extremes(count: int) -> None:
    noise = np.random.default_rng(count)
    values = np.cumsum(noise.normal(size=count))
    kept = thin_line(values, 600, np.array([count // 3]))
    assert len(kept) <= max(count if count <= 600 else 0, 601)
    assert list(kept) == sorted(set(kept.tolist()))
    assert {0, count - 1, count // 3} <= set(kept.tolist())
    # Of any part that is wider than two stretches, both extremes lie within one stretch of those drawn.
    width = 2 * -(-count // 150)
    for start in noise.integers(0, max(1, count - width), size=30):
        part = values[start : start + width]
        drawn = [values[index] for index in kept if start - width <= index < start + 2 * width]
        assert min(drawn) <= part.min() and max(drawn) >= part.max()  # noqa: PT018


@pytest.mark.parametrize("seed", range(5))
def test_a_thinned_series_hides_no_extreme_and_no_change(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    rows = [
        TrendRow(position, position, chance.gauss(1, 0.01), chance.random() < 0.05, None, None)
        for position in range(10_000)
    ]
    changes = sorted(chance.sample(range(1, 10_000), 40))
    clean = [row for row in rows if not row.tainted]
    drawn = choose_drawn(rows, changes)
    drawn_clean = [row for row in drawn if not row.tainted]
    assert len(drawn) <= MOST_DRAWN + MOST_TAINTED_DRAWN + 2 * len(changes)
    for choose in (min, max):
        assert choose(clean, key=lambda row: row.value) in drawn
        worst = choose((row for row in rows if row.tainted), key=lambda row: row.value)
        assert worst in drawn
    assert drawn_clean[0] == clean[0] and drawn_clean[-1] == clean[-1]  # noqa: PT018
    for change in changes:
        after = next((row for row in clean if row.position >= change), None)
        before = next(row for row in reversed(clean) if row.position < change)
        assert before in drawn and (after is None or after in drawn)  # noqa: PT018
