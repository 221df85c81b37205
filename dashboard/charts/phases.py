"""The phases of a step: a flame-like chart built from bars, and two runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dashboard.charts import theme
from dashboard.sentences.formatting import numbers

UNATTRIBUTED = "(unattributed)"
ROW_HEIGHT = 34
# For the axis and its title.
AXIS_HEIGHT = 46
# Thinner bars can't be read nor hit; the table beside has them.
LEAST_SHARE = 0.002


@dataclass(frozen=True, slots=True)
class Phase:
    """Seconds per step of one phase path, the phases nested in it included in `total`."""

    path: str
    total: float
    own: float
    share: float
    thread: str = "main"


@dataclass(frozen=True, slots=True)
class Block:
    """A bar of the flame chart: `start` and `width` in seconds per step, `depth` 0 is the outermost;
    `name` is its path below that of the bar above."""

    phase: Phase
    start: float
    width: float
    depth: int
    hue: int
    name: str


@dataclass(slots=True)
class _Node:
    phase: Phase
    children: list[_Node] = field(default_factory=list)


def layout_blocks(phases: Sequence[Phase]) -> list[Block]:
    """Lay phases out by their paths: children in their parent, the widest first."""
    laid: list[Block] = []
    start = 0.0
    for hue, root in enumerate(_widest_first(_build_tree(phases))):
        grey = root.phase.path == UNATTRIBUTED
        _place_node(root, start, 0, -1 if grey else hue % len(theme.HUES), "", laid)
        start += root.phase.total
    return laid


def phase_hues(phases: Sequence[Phase]) -> dict[str, int]:
    """The place of each path's colour among the hues, as the flame chart has it; -1 is grey."""
    return {block.phase.path: block.hue for block in layout_blocks(phases)}


def _build_tree(phases: Sequence[Phase]) -> list[_Node]:
    nodes = {phase.path: _Node(phase) for phase in phases}
    roots: list[_Node] = []
    for path, node in nodes.items():
        parent = next((nodes[above] for above in _ancestor_paths(path) if above in nodes), None)
        (parent.children if parent else roots).append(node)
    return roots


def _ancestor_paths(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1)]


def _widest_first(nodes: list[_Node]) -> list[_Node]:
    return sorted(nodes, key=lambda node: (node.phase.path == UNATTRIBUTED, -node.phase.total))


def _place_node(node: _Node, start: float, depth: int, hue: int, above: str, laid: list[Block]) -> None:
    path = node.phase.path
    laid.append(Block(node.phase, start, node.phase.total, depth, hue, path.removeprefix(above)))
    inner = start
    for child in _widest_first(node.children):
        _place_node(child, inner, depth + 1, hue, path + "/", laid)
        inner += child.phase.total


def draw_flame_chart(phases: Sequence[Phase]) -> theme.Figure:
    """The outermost phases on the top row, what is nested in them below; widths are time per step."""
    laid = [block for block in layout_blocks(phases) if block.phase.share >= LEAST_SHARE]
    deepest = max((block.depth for block in laid), default=0)
    end = max((block.start + block.width for block in laid), default=0.0)
    scaled = numbers.choose_scale("s", end)
    bars = theme.bar_trace(
        orientation="h",
        x=np.array([block.width for block in laid]) / scaled.size,
        base=np.array([block.start for block in laid]) / scaled.size,
        y=np.array([block.depth for block in laid], dtype=np.int16),
        width=0.92,
        marker={
            "color": [theme.FAINT if block.hue < 0 else theme.HUES[block.hue] for block in laid],
            "opacity": [1.0 if block.depth == 0 else 0.78 for block in laid],
            "line": {"color": theme.SURFACE, "width": 1.5},
        },
        text=[_block_label(block) for block in laid],
        textposition="inside",
        insidetextanchor="start",
        textangle=0,
        constraintext="inside",
        cliponaxis=True,
        textfont={"color": "var(--hue-ink)", "size": 12},
        customdata=[_block_hover(block) for block in laid],
        hovertemplate="%{customdata}<extra></extra>",
    )
    return theme.create_figure(
        [bars],
        (deepest + 1) * ROW_HEIGHT + AXIS_HEIGHT,
        # Too low a figure for plotly to find room for its axis by itself.
        margin={"l": 8, "r": 12, "t": 4, "b": AXIS_HEIGHT - 4},
        xaxis={
            "title": {"text": f"{scaled.unit} per step"},
            "range": [0, end / scaled.size],
            "showgrid": False,
        },
        yaxis={"visible": False, "range": [deepest + 0.5, -0.5], "fixedrange": True},
        uniformtext={"minsize": 11, "mode": "hide"},
        barmode="overlay",
    )


def _block_label(block: Block) -> str:
    """Only what fits: some 8 pixels a letter on a chart of about 900; a narrower page clips."""
    name = theme.escape_markup(block.name)
    letters = block.phase.share * 110
    full = f"{name}  {numbers.format_share(block.phase.share)}"
    return full if len(full) <= letters else name if len(name) <= letters else ""


def _block_hover(block: Block) -> str:
    phase = block.phase
    return (
        f"<b>{theme.escape_markup(phase.path)}</b><br>{numbers.format_quantity(phase.total, 's')} per step, "
        f"{numbers.format_share(phase.share)} of it<br>{numbers.format_quantity(phase.own, 's')} in itself"
    )


def draw_phase_comparison(
    old: Mapping[str, float],
    new: Mapping[str, float],
    unit: str,
    title: str,
    most: int = 12,
    names: tuple[str, str] = ("before", "after"),
) -> theme.Figure:
    """A value by phase on two sides, the largest difference on top.

    `title` names the value on the axis, `names` the sides.
    """
    paths = sorted(old.keys() | new.keys(), key=lambda path: -abs(new.get(path, 0) - old.get(path, 0)))[:most]
    paths.reverse()
    scaled = numbers.choose_scale(unit, max([*old.values(), *new.values(), 0.0]))
    traces = [
        _comparison_trace(paths, new, scaled.size, unit, names[1], theme.HUES[0]),
        _comparison_trace(paths, old, scaled.size, unit, names[0], theme.FAINT),
    ]
    return theme.create_figure(
        traces,
        len(paths) * 40 + 84,
        barmode="group",
        showlegend=True,
        legend={"traceorder": "reversed"},
        xaxis={"title": {"text": f"{scaled.unit} {title}"}, "rangemode": "tozero"},
        yaxis={"tickfont": {"family": theme.MONO, "size": 12, "color": theme.INK}, "fixedrange": True},
    )


def _comparison_trace(
    paths: list[str], values: Mapping[str, float], size: float, unit: str, name: str, colour: str
) -> theme.Trace:
    return theme.bar_trace(
        orientation="h",
        name=name,
        y=[theme.escape_markup(path) for path in paths],
        x=np.array([values.get(path, 0.0) for path in paths]) / size,
        marker={"color": colour},
        text=[numbers.format_quantity(values.get(path), unit) for path in paths],
        hovertemplate="%{y}: %{text}<extra>" + name + "</extra>",
        textposition="none",
    )
