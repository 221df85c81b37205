"""What the sampler read during one repetition: memory, utilization, power and disk below each other, the
measured window shaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.charts import theme
from dashboard.charts.thinning import thin_to_extremes
from dashboard.sentences.formatting import numbers

# Pixels of a drawing, and of the legend and what stands below the axis.
ROW_HEIGHT, BESIDE = 180, 70
# Which channels share a drawing, by their unit, in the order of the drawings.
DRAWN_UNITS = ("bytes", "%", "W", "bytes/s")
# Of all channels together; more than the pixels of a wide drawing add nothing that could be seen.
MOST_POINTS, LEAST_POINTS = 30_000, 300
LARGEST_DRAWN = 1e38  # float32 halves what the page weighs and ends a little above
# Where a sparse channel isn't read for so many times as long as just before or after, its line has a gap,
LONGEST_JOINED = 3
# if for this part of that time nothing else was read either: the sampler itself was kept away. What costs
# much to read is read the less often the slower its last reading was.
UNWATCHED_SHARE = 0.5
# Of fewer readings nobody can say that the others were never meant to be: they stand by themselves.
LEAST_JOINED = 4
MARKER_SIZE = 4
ACRONYMS = {"cpu": "CPU", "gpu": "GPU", "pss": "PSS", "sm": "SM"}


@dataclass(frozen=True, slots=True)
class Channel:
    """Readings on a fixed grid: `start` and `interval` in seconds; None is a missing reading."""

    name: str
    unit: str
    start: float
    interval: float
    values: Sequence[float | None]
    device: int | None = None

    @property
    def label(self) -> str:
        """`memory PSS`, and of a device `GPU 0 memory`."""
        words = [ACRONYMS.get(word, word) for word in self.name.split("_")]
        if self.device is not None:
            words.insert(1, str(self.device))
        return " ".join(words)

    def readings(self) -> np.ndarray:
        """The values (n,), NaN where one is missing."""
        return np.array([np.nan if value is None else value for value in self.values], dtype=np.float64)

    def times(self, indices: np.ndarray) -> np.ndarray:
        """The seconds at which these readings were due."""
        return np.asarray(self.start + self.interval * indices)

    @property
    def is_rare(self) -> bool:
        """Whether some reading has no neighbour: it costs too much to be read each time."""
        return bool(isolated_readings(self.readings()).any())


def draw_telemetry(channels: Sequence[Channel], window: tuple[float, float] | None) -> theme.Figure | None:
    """None where no channel that was read is memory, utilization, power or disk; others stay in the table."""
    # What was never read, as a disk that a container doesn't show, has no drawing of its own.
    read = [channel for channel in channels if any(value is not None for value in channel.values)]
    rows = [[channel for channel in read if channel.unit == unit] for unit in DRAWN_UNITS]
    rows = [row for row in rows if row]
    if not rows:
        return None
    scales = [choose_row_scale(row) for row in rows]
    most = max(LEAST_POINTS, MOST_POINTS // sum(map(len, rows)))
    watched = watched_moments(read)
    traces = [
        _channel_trace(channel, number, order, scales[number], most, watched)
        for number, row in enumerate(rows)
        for order, channel in enumerate(row)
    ]
    drawn = theme.create_figure(
        traces, ROW_HEIGHT * len(rows) + BESIDE, showlegend=True, hovermode="x unified"
    )
    for number in range(len(rows)):
        _place_axes(drawn, scales[number].unit, number, len(rows))
    if window:
        _shade_window(drawn, window)
    return drawn


def _channel_trace(
    channel: Channel, row: int, order: int, scaled: numbers.Scale, most: int, watched: np.ndarray
) -> theme.Trace:
    readings = channel.readings()
    isolated = isolated_readings(readings)
    drawn = choose_readings(channel, most, watched)
    times = channel.times(drawn)
    sizes = MARKER_SIZE * isolated[drawn].astype(np.int32)
    hue = theme.HUES[(3 * row + order) % len(theme.HUES)]
    return theme.scatter_trace(
        x=times.astype(np.float32),
        y=np.clip(readings[drawn] / scaled.size, -LARGEST_DRAWN, LARGEST_DRAWN).astype(np.float32),
        name=channel.label,
        **({"mode": "lines+markers", "marker": {"size": sizes}} if sizes.any() else {"mode": "lines"}),
        line={"width": 1.6, "color": hue, "dash": ("solid", "dash", "dot")[order % 3]},
        xaxis="x",
        yaxis=_axis_name("y", row),
        connectgaps=False,
        hovertemplate="%{y:.4~g} " + scaled.unit,
    )


def choose_row_scale(row: Sequence[Channel]) -> numbers.Scale:
    """In what unit channels are drawn that share a drawing."""
    return numbers.choose_scale(row[0].unit, max(_largest_reading(channel) for channel in row))


def isolated_readings(readings: np.ndarray) -> np.ndarray:
    """Which readings (n,) have no neighbour: what costs much to read is read less often than the grid has it,
    and between two such readings nothing is missing."""
    known = ~np.isnan(readings)
    beside = np.zeros_like(known)
    beside[1:] |= known[:-1]
    beside[:-1] |= known[1:]
    return np.asarray(known & ~beside)


def watched_moments(channels: Iterable[Channel]) -> np.ndarray:
    """The seconds (m,), ascending, at which the sampler was there: of channels that are read each time."""
    times = [
        channel.times(np.flatnonzero(~np.isnan(channel.readings())))
        for channel in channels
        if not channel.is_rare
    ]
    return np.unique(np.concatenate(times)) if times else np.array([])


def choose_readings(channel: Channel, most: int, watched: np.ndarray) -> np.ndarray:
    """The indices of the readings that are drawn, about `most` of them; a missing one makes a gap.

    A channel that was read each time has its gap wherever a reading is missing. The line of one with isolated
    readings goes on, also where it began densely, save where it paused for much longer than beside it while
    nothing else was read either: `watched` (m,), in seconds. Without other channels every such pause counts.
    """
    readings = channel.readings()
    known = np.flatnonzero(~np.isnan(readings))
    are_few = len(known) < LEAST_JOINED and not (len(watched) and 2 * len(known) <= len(readings))
    if not channel.is_rare or are_few:
        return thin_to_extremes(readings, most)
    gaps = known[:-1][find_pauses(channel.times(known), watched)] + 1
    return np.sort(np.concatenate([known[thin_to_extremes(readings[known], most)], gaps]))


def find_pauses(times: np.ndarray, watched: np.ndarray) -> np.ndarray:
    """After which of a sparse channel's readings (n,), in seconds, it has a gap: bools (n - 1,)."""
    distances = np.diff(times)
    # At the ends there is a neighbour on one side alone.
    beside = np.maximum(np.append(0, distances[:-1]), np.append(distances[1:], 0))
    pauses = distances > LONGEST_JOINED * beside
    for index in np.flatnonzero(pauses) if len(watched) else ():
        inside = watched[(watched > times[index]) & (watched < times[index + 1])]
        unwatched = np.diff([times[index], *inside, times[index + 1]]).max()
        pauses[index] = unwatched > UNWATCHED_SHARE * distances[index]
    return np.asarray(pauses)


def _largest_reading(channel: Channel) -> float:
    return max((value for value in channel.values if value is not None), default=0.0)


def _place_axes(drawn: theme.Figure, unit: str, number: int, rows: int) -> None:
    gap = (0.0, 0.12, 0.09, 0.07)[rows - 1]
    height = (1 - gap * (rows - 1)) / rows
    top = 1 - number * (height + gap)
    drawn["layout"].update(
        {
            _axis_name("yaxis", number): {
                "domain": [max(0.0, top - height), top],
                "title": {"text": unit},
                "rangemode": "tozero",
            },
            "xaxis": {
                "anchor": _axis_name("y", number),
                "title": {"text": "seconds since the repetition began"},
                "showgrid": False,
                "hoverformat": ".2f",
                "unifiedhovertitle": {"text": "%{x:.2f} s"},
            },
        }
    )


def _shade_window(drawn: theme.Figure, window: tuple[float, float]) -> None:
    theme.add_shape(
        drawn,
        type="rect",
        x0=window[0],
        x1=window[1],
        y0=0,
        y1=1,
        xref="x",
        yref="paper",
        fillcolor=theme.WINDOW,
        line={"width": 0},
        layer="below",
    )


def _axis_name(name: str, row: int) -> str:
    return name if row == 0 else f"{name}{row + 1}"
