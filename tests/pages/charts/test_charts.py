"""Rows -> figures: what is drawn where."""

from __future__ import annotations

import base64
import itertools
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from dashboard.charts import histogram, machine_history, pairs, phases, repetitions, scaling, telemetry, theme
from dashboard.charts.sparkline import HEIGHT, layout_sparkline
from dashboard.charts.thinning import thin_to_extremes


def validate_figure(drawn: theme.Figure | None) -> Any:
    """The figure as plotly's own objects, which refuse a name or a value that plotly.js doesn't know."""
    assert drawn is not None
    return go.Figure(drawn)


def trace_named(drawn: Any, name: str) -> Any:
    return next(trace for trace in drawn.data if trace.name == name)


def test_json_of_a_figure_may_stand_in_a_script_tag() -> None:
    drawn = theme.figure_json(theme.create_figure([], 100, title={"text": "</script><script>alert(1)"}))
    assert "<" not in drawn
    assert json.loads(drawn)["layout"]["title"]["text"] == "</script><script>alert(1)"


def test_a_figure_with_a_misspelt_property_is_refused() -> None:
    trace = theme.scatter_trace(y=[1], markers={"size": 3})
    with pytest.raises(ValueError, match="markers"):
        validate_figure(theme.create_figure([trace], 100))


def test_a_flame_chart_and_the_look_of_all_figures_are_valid() -> None:
    drawn = validate_figure(
        phases.draw_flame_chart([timed_phase("learn", 0.5), timed_phase("learn/step", 0.3)])
    )
    assert list(drawn.data[0].y) == [0, 1]
    assert drawn.layout.template.layout.xaxis.gridcolor == theme.GRID


@pytest.mark.parametrize("kind", ["i1", "u2", "i4", "f4", "f8"])
def test_arrays_are_their_bytes(kind: str) -> None:
    array = np.arange(5).astype(kind)
    written = json.loads(theme.figure_json(theme.create_figure([{"y": array[::2]}], 100)))["data"][0]["y"]
    assert written["dtype"] == kind
    assert list(np.frombuffer(base64.b64decode(written["bdata"]), kind)) == [0, 2, 4]


@pytest.mark.parametrize(("largest", "kind"), [(7, "i4"), (2**31, "f8"), (-(2**40), "f8")])
def test_integers_of_64_bits_are_written_as_what_browsers_read(largest: int, kind: str) -> None:
    written = json.loads(theme.figure_json(theme.create_figure([{"y": np.array([1, largest])}], 100)))
    assert written["data"][0]["y"]["dtype"] == kind
    assert list(np.frombuffer(base64.b64decode(written["data"][0]["y"]["bdata"]), kind)) == [1, largest]


def timed_phase(path: str, total: float, own: float = 0.0) -> phases.Phase:
    return phases.Phase(path, total, own, total)


def test_phases_nest_by_their_paths_the_widest_first() -> None:
    totals = {"a": 0.3, "b": 0.7, "b/x": 0.1, "b/y": 0.5}
    laid = phases.layout_blocks([timed_phase(path, total) for path, total in totals.items()])
    assert [(block.phase.path, block.start, block.depth) for block in laid] == [
        ("b", 0.0, 0),
        ("b/y", 0.0, 1),
        ("b/x", 0.5, 1),
        ("a", 0.7, 0),
    ]


def test_a_phase_whose_parent_has_no_row_stands_outside_by_its_whole_path() -> None:
    (block,) = phases.layout_blocks([timed_phase("replay/push", 0.5)])
    assert (block.depth, block.name) == (0, "replay/push")


def test_what_no_phase_covers_comes_last_and_is_grey() -> None:
    laid = phases.layout_blocks([timed_phase(phases.UNATTRIBUTED, 0.9), timed_phase("learn", 0.1)])
    assert [block.hue for block in laid] == [0, -1]


def test_two_runs_are_compared_by_the_largest_difference() -> None:
    drawn = validate_figure(phases.draw_phase_comparison({"a": 1, "b": 1}, {"a": 1, "b": 2}, "s", "per step"))
    # Plotly draws a horizontal bar chart from below.
    assert list(drawn.data[0].y) == ["a", "b"]


def test_memory_and_utilization_have_a_drawing_each_and_gaps_where_a_reading_is_missing() -> None:
    channels = [
        telemetry.Channel("memory", "bytes", 0.0, 0.5, [1e6, None, 3e6]),
        telemetry.Channel("cpu_utilization", "%", 0.0, 0.5, [50.0, 60.0, 70.0]),
    ]
    drawn = validate_figure(telemetry.draw_telemetry(channels, (0.5, 1.0)))
    assert [trace.yaxis for trace in drawn.data] == ["y", "y2"]
    assert str(drawn.data[0].y[1]) == "nan"
    assert (drawn.layout.shapes[0].x0, drawn.layout.shapes[0].x1) == (0.5, 1.0)


def test_a_devices_power_has_a_drawing_and_the_device_its_number() -> None:
    channels = [
        telemetry.Channel("gpu_memory", "bytes", 0.0, 0.1, [1e9], 0),
        telemetry.Channel("gpu_power", "W", 0.0, 0.1, [437.0], 1),
        telemetry.Channel("disk_read", "bytes/s", 0.0, 0.1, [4e3]),
        telemetry.Channel("gpu_utilization", "%", 0.0, 0.1, [99.0], 0),
    ]
    drawn = validate_figure(telemetry.draw_telemetry(channels, None))
    assert [trace.name for trace in drawn.data] == [
        "GPU 0 memory",
        "GPU 0 utilization",
        "GPU 1 power",
        "disk read",
    ]
    axes = [drawn.layout[name] for name in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert [axis.title.text for axis in axes] == ["GB", "%", "W", "kB/s"]
    # They lie below each other, with room in between.
    assert all(upper.domain[0] > lower.domain[1] for upper, lower in itertools.pairwise(axes))


@pytest.mark.parametrize(
    ("window", "anchor", "place"), [((0.5, 1.5), "left", 0.5), ((3.0, 4.0), "right", 4.0)]
)
def test_the_windows_name_stands_where_there_are_readings(
    window: tuple[float, float], anchor: str, place: float
) -> None:
    channels = [telemetry.Channel("cpu_utilization", "%", 0.0, 0.5, [50.0] * 9)]
    drawn = telemetry.draw_telemetry(channels, window)
    assert drawn is not None
    repetitions.draw_bands(drawn, None, None, window)
    (named,) = validate_figure(drawn).layout.annotations
    assert (named.xanchor, named.x) == (anchor, place)


def test_other_channels_alone_draw_nothing() -> None:
    assert telemetry.draw_telemetry([telemetry.Channel("threads", "1", 0, 1, [1.0])], None) is None


@pytest.mark.parametrize(("count", "most"), [(11, 10), (1000, 300), (36_000, 10_000), (7, 7)])
def test_what_is_thinned_keeps_to_its_bound(count: int, most: int) -> None:
    values = np.sin(np.arange(count))
    values[count // 2 :: 7] = np.nan
    kept = thin_to_extremes(values, most)
    assert len(kept) <= most
    assert list(kept) == sorted(set(kept))
    assert (np.nanmin(values[kept]), np.nanmax(values[kept])) == (np.nanmin(values), np.nanmax(values))


def test_a_long_channel_keeps_its_peaks_and_its_gaps() -> None:
    readings: list[float | None] = [50.0] * 36_000
    readings[20_001], readings[7], readings[30_000:32_000] = 99.0, 1.0, [None] * 2_000
    drawn = validate_figure(
        telemetry.draw_telemetry([telemetry.Channel("cpu_utilization", "%", 0.0, 0.1, readings)], None)
    )
    (trace,) = drawn.data
    assert len(trace.y) < telemetry.MOST_POINTS
    assert (np.nanmin(trace.y), np.nanmax(trace.y)) == (1, 99)
    assert trace.x[np.nanargmax(trace.y)] == pytest.approx(2000.1)
    gap = trace.x[np.isnan(trace.y)]
    assert (gap.min(), gap.max()) == (pytest.approx(3000, abs=0.5), pytest.approx(3199.9, abs=0.5))


def test_a_channel_that_is_read_rarely_is_one_line_with_a_gap_where_it_was_not_read() -> None:
    """As the sampler reads PSS: at first each time, then every tenth."""
    readings: list[float | None] = [1e8, 1e8, *[None] * 398]
    readings[10:200:10] = [2e8] * 19
    readings[300:400:10] = [3e8] * 10
    drawn = validate_figure(
        telemetry.draw_telemetry([telemetry.Channel("memory_pss", "bytes", 0.0, 0.1, readings)], None)
    )
    (trace,) = drawn.data
    assert trace.mode == "lines+markers"
    assert list(trace.y[~np.isnan(trace.y)]) == pytest.approx([100] * 2 + [200] * 19 + [300] * 10)
    assert list(trace.x[np.isnan(trace.y)]) == pytest.approx([19.1], abs=0.01)
    assert trace.connectgaps is False


@pytest.mark.parametrize(
    ("places", "away", "gap"),
    [
        pytest.param([0, 10, 20, 330], None, [], id="a slow reading"),
        pytest.param([0, 10, 20, 330], (22, 329), [2.1], id="the sampler away"),
        pytest.param([0, 300], None, [], id="two readings"),
    ],
)
def test_a_rare_channel_has_a_gap_only_where_nothing_else_was_read(
    places: list[int], away: tuple[int, int] | None, gap: list[float]
) -> None:
    rare: list[float | None] = [1e8 if place in places else None for place in range(400)]
    memory: list[float | None] = [2e8] * 400
    if away:
        memory[slice(*away)] = [None] * (away[1] - away[0])
    names = {"memory": memory, "memory_pss": rare}
    channels = [telemetry.Channel(name, "bytes", 0.0, 0.1, values) for name, values in names.items()]
    drawn = telemetry.draw_telemetry(channels, None)
    assert drawn is not None
    repetitions.overlay_repetitions(drawn, channels, {1: channels})
    for trace in validate_figure(drawn).data:
        if trace.name.startswith("memory PSS"):
            assert list(trace.x[np.isnan(trace.y)]) == pytest.approx(gap)


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([*range(60), *range(70, 400, 10)], id="densely at first"),
        pytest.param([0, 1, 3, 6], id="few readings"),
    ],
)
def test_the_line_of_a_channel_that_is_read_ever_less_goes_on(places: list[int]) -> None:
    readings: list[float | None] = [None] * 400
    for place in places:
        readings[place] = 1e8
    drawn = telemetry.draw_telemetry([telemetry.Channel("memory_pss", "bytes", 0.0, 0.1, readings)], None)
    (trace,) = validate_figure(drawn).data
    assert list(trace.x) == pytest.approx([place / 10 for place in places])
    # What has no neighbour is seen by itself.
    assert trace.marker.size[-1] == telemetry.MARKER_SIZE


def test_a_logarithmic_axis_says_so() -> None:
    drawn = validate_figure(histogram.draw_step_times([1e-3, 2e-3, 4e-3], [5, 7], {}))
    assert drawn.layout.xaxis.title.text == "ms per step, logarithmic"


def test_a_histogram_leaves_out_the_empty_ends() -> None:
    drawn = validate_figure(
        histogram.draw_step_times([0.0, 1e-3, 2e-3, 4e-3, 8e-3], [0, 5, 7, 0], {"p50": 2e-3})
    )
    assert list(drawn.data[0].y) == [5, 7, 0]
    assert list(drawn.data[0].x) == pytest.approx([1, 2, 4])


def test_a_sparkline_of_noise_stays_flat_and_of_nothing_is_nothing() -> None:
    drawn = layout_sparkline([100.0, 100.5, 100.0])
    assert drawn is not None
    heights = [float(point.split(",")[1]) for point in drawn.points.split()]
    assert max(heights) - min(heights) < HEIGHT / 5
    assert layout_sparkline([]) is None


def test_channels_of_one_drawing_share_its_size() -> None:
    channels = [
        telemetry.Channel("memory", "bytes", 0.0, 0.5, [2e9, 3e9]),
        telemetry.Channel("memory_pss", "bytes", 0.0, 1.0, [1e8]),
        telemetry.Channel("disk_read", "bytes/s", 0.0, 0.5, [4e3, None]),
    ]
    drawn = validate_figure(telemetry.draw_telemetry(channels, None))
    assert trace_named(drawn, "memory PSS").y == pytest.approx([0.1])
    assert (drawn.layout.yaxis.title.text, drawn.layout.yaxis2.title.text) == ("GB", "kB/s")


def test_a_fit_is_a_straight_line_through_the_points() -> None:
    points = [(value, 1e-3 * value**2) for value in (100.0, 200.0, 400.0)]
    drawn = validate_figure(
        scaling.draw_growth(points, 2.0, "episodes", reference=1.0, title="", phases={"learn": points})
    )
    assert list(trace_named(drawn, "fit: 2.00").y) == pytest.approx([10, 160])
    assert list(trace_named(drawn, "in proportion").y) == pytest.approx([10, 40])
    assert drawn.layout.xaxis.tickvals == (100, 200, 400)
    assert list(trace_named(drawn, "learn").x) == [100, 200, 400]


def test_one_value_has_no_line() -> None:
    drawn = validate_figure(scaling.draw_growth([(100.0, 2.0)], None, "episodes", reference=1.0, title=""))
    assert [trace.name for trace in drawn.data] == ["measured"]


def drawn_pair(
    number: int, base: float, head: float, known: pairs.EffectEstimate | None = None
) -> pairs.DrawnPair:
    """Every third one is disturbed."""
    first, disturbed = number % 2 == 1, number % 3 == 0
    return pairs.DrawnPair(number, base, head, base_first=first, disturbed=disturbed, known=known)


def test_pairs_of_exponents_are_drawn_by_their_difference() -> None:
    known = pairs.EffectEstimate(*(math.exp(end) for end in (0.52, 0.4, 0.6)))
    drawn = validate_figure(pairs.draw_pairs([drawn_pair(1, -0.02, 0.5, known)], "1", "exponent", known))
    assert trace_named(drawn, "pairs").y == pytest.approx([0.52])
    assert drawn.layout.yaxis.ticksuffix == ""
    ends = [trace_named(drawn, name).y[0] for name in ("low", "interval", "mean")]
    assert ends == pytest.approx([0.4, 0.6, 0.52])


def test_the_interval_of_pairs_narrows_from_pair_to_pair() -> None:
    known = [
        None,
        pairs.EffectEstimate(1.2, 0.9, 1.5),
        pairs.EffectEstimate(1.25, 1.1, 1.4),
        pairs.EffectEstimate(1.25, 1.2, 1.3),
    ]
    rows = [drawn_pair(index + 1, 1.0, 1.2 + index / 50, found) for index, found in enumerate(known)]
    drawn = validate_figure(pairs.draw_pairs(rows, "s", known=known[-1]))
    assert trace_named(drawn, "pairs").y == pytest.approx([20, 22, 24, 26])
    assert trace_named(drawn, "interval").x == (2, 3, 4, 4.5)
    assert trace_named(drawn, "low").y == pytest.approx([-10, 10, 20, 20])
    assert trace_named(drawn, "interval").y == pytest.approx([50, 40, 30, 30])
    assert trace_named(drawn, "pairs").marker.symbol == ("circle", "diamond", "circle-open", "diamond")


def test_an_interval_that_only_the_last_pair_has_is_seen() -> None:
    known = pairs.EffectEstimate(1.2, 1.1, 1.3)
    rows = [drawn_pair(1, 1.0, 1.2), drawn_pair(2, 1.0, 1.2, known)]
    assert trace_named(validate_figure(pairs.draw_pairs(rows, "s", known=known)), "interval").x == (2, 2.5)


def test_pairs_whose_intervals_were_not_kept_show_the_last_one() -> None:
    drawn = validate_figure(
        pairs.draw_pairs(
            [drawn_pair(1, 1, 1.3), drawn_pair(2, 1, 1.3)], "s", known=pairs.EffectEstimate(1.3, 1.2, 1.4)
        )
    )
    assert list(trace_named(drawn, "mean").x) == [1, 2.5]
    assert trace_named(drawn, "low").y == pytest.approx([20, 20])


def test_pairs_without_ratios_are_drawn_in_their_unit() -> None:
    rows = [drawn_pair(1, -500, 1_500), drawn_pair(2, 0, 2_500)]
    drawn = validate_figure(pairs.draw_pairs(rows, "bytes", "difference"))
    assert trace_named(drawn, "pairs").y == pytest.approx([2.0, 2.5])
    assert drawn.layout.yaxis.title.text == "head minus base, kB"


def test_a_disturbed_pair_does_not_squeeze_the_others() -> None:
    rows = [drawn_pair(number, 1, 9 if number == 3 else 1.01 + number / 1000) for number in range(1, 6)]
    drawn = validate_figure(pairs.draw_pairs(rows, "s"))
    low, high = drawn.layout.yaxis.range
    assert low < 0 < high < 3
    assert trace_named(drawn, "pairs").y[2] == high


@pytest.mark.parametrize(("size", "reaches_zero"), [(1.02, True), (3.0, False)])
def test_an_axis_of_pairs_reaches_to_zero_where_that_costs_little(size: float, reaches_zero: bool) -> None:
    rows = [drawn_pair(number, 1, size + number / 500) for number in (1, 2, 4)]
    low, _ = validate_figure(pairs.draw_pairs(rows, "s")).layout.yaxis.range
    assert (low < 0) is reaches_zero


START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def calibration_marks(*values: float) -> list[machine_history.CalibrationMark]:
    """Of one run an hour; in the last one the loop drifted."""
    return [
        machine_history.CalibrationMark(
            START + timedelta(hours=number), value, number == len(values) - 1, number, f"/runs/{number}/"
        )
        for number, value in enumerate(values)
    ]


def test_calibration_that_hardly_varies_is_drawn_flat() -> None:
    drawn = validate_figure(machine_history.draw_calibration(calibration_marks(0.01, 0.01001, 0.00999)))
    low, high = drawn.layout.yaxis.range
    assert high - low > 1
    assert drawn.layout.yaxis.title.text == "ms"


def test_calibration_reaches_to_the_run_that_drifted() -> None:
    drawn = validate_figure(machine_history.draw_calibration(calibration_marks(0.01, 0.01, 0.03)))
    assert drawn.layout.yaxis.range[1] > 30
    (trace,) = drawn.data
    assert trace.text[2].startswith("<b>30 ms</b>, +200 % of the median<br>run 2, 2026-11-01 14:00 UTC")
    assert trace.text[2].endswith("changed its speed while it measured")


def test_sentinels_differ_in_shape_and_a_tainted_mark_is_hollow() -> None:
    marks = [
        machine_history.SentinelMark(START + timedelta(days=day), 0.01 + day / 1000, day == 1, day, "/")
        for day in range(2)
    ]
    lines = [machine_history.SentinelLine(f"<{hue}>", hue, 0.01, marks) for hue in range(2)]
    drawn = validate_figure(machine_history.draw_sentinels(lines))
    assert [trace.name for trace in drawn.data] == ["&lt;0&gt;", "&lt;1&gt;"]
    assert [trace.marker.symbol for trace in drawn.data] == [
        ("circle", "circle-open"),
        ("square", "square-open"),
    ]
    assert drawn.data[0].y == pytest.approx([0, 10])


def test_what_was_never_read_has_no_drawing() -> None:
    read, unread = (
        telemetry.Channel(name, unit, 0.0, 0.1, values)
        for name, unit, values in (("memory", "bytes", [1.0, 2.0]), ("disk_read", "bytes/s", [None, None]))
    )
    drawn = telemetry.draw_telemetry([read, unread], None)
    assert drawn is not None
    assert "yaxis2" not in drawn["layout"]
    assert telemetry.draw_telemetry([unread], None) is None


def test_near_percentiles_stand_on_two_lines() -> None:
    drawn = histogram.draw_step_times([0.01, 0.02, 0.03], [5, 5], {"p50": 0.01, "p95": 0.021, "p99": 0.022})
    first, second, third = drawn["layout"]["annotations"]
    assert (first["xanchor"], second["xanchor"], third["xanchor"]) == ("right", "left", "left")
    assert second["yshift"] != third["yshift"]
